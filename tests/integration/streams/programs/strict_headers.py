"""The product's worker with aiokafka's own reading of header names."""

from streams import faust_headers
from tests.integration.streams.programs import product

if __name__ == "__main__":
    faust_headers.read_any_name = lambda: None
    product.main()
