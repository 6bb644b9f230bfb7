"""Where is posted: what is no URL is refused in words, and a host that cannot be is an answer."""

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.posting import Poster


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080/webhooks",
        "http://",
        "http://[::1/webhooks",
        "http://127.0.0.1:x/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1/ก",
        "http://127.0.0.1/a b",
        "http://a b/",
        "http://127.0.0.1/\udcff",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    """The message can be printed anywhere."""
    with pytest.raises(UsageError, match=r"^--url ") as refused:
        Poster(url)
    assert str(refused.value).isascii()


def test_a_host_that_cannot_be_is_no_answer() -> None:
    """An empty label: the resolver is not even asked."""
    answer = Poster("http://a..invalid/").post(b"", {})
    assert (answer.status, answer.accepted) == (0, False)
