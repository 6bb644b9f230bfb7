"""The product's worker, whose consumer is told at its bootstrap that there are no brokers.

A fenced broker answers so for a moment. aiokafka's group coordination then ends with an AssertionError and never joins
the group. Usage: python -m tests.integration.streams.programs.no_brokers FLAG; FLAG is a file that marks it as done.
"""

import sys
from pathlib import Path
from typing import Any

from aiokafka.cluster import ClusterMetadata

from tests.integration.streams.programs import product

THE_CONSUMER = 2  # the producer's client comes first


def answer_without_brokers_once(flag: Path) -> None:
    """The first metadata answer of the consumer's client names no broker; only where FLAG does not exist yet."""
    update, clients = ClusterMetadata.update_metadata, []

    def shorn(self: Any, metadata: Any) -> Any:
        if id(self) not in clients:
            clients.append(id(self))
            if len(clients) == THE_CONSUMER and not flag.exists():
                flag.touch()
                metadata.brokers = []
        return update(self, metadata)

    ClusterMetadata.update_metadata = shorn


if __name__ == "__main__":
    answer_without_brokers_once(Path(sys.argv[1]))
    product.main()
