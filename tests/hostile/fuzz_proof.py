"""Any three headers over any body: refused by a typed refusal, or vouched for where the signature is really there."""

from collections.abc import Callable

from tests.hostile.fuzzing import fuzz

PARTS = 4


def prepare() -> Callable[[bytes], None]:
    """The property, with the scheme instrumented."""
    from tests.hostile.test_proof_headers import BODY, ID, NOT_AUTHENTIC, SIGNATURE, TIMESTAMP, outcome

    good = (ID, TIMESTAMP, SIGNATURE, BODY)

    def check(raw: bytes) -> None:
        parts = tuple(raw.split(b"\x1f", PARTS - 1))
        message_id, timestamp, signature, body = parts + good[len(parts) :]
        found = outcome(message_id, timestamp, signature, body)
        signed = (message_id, timestamp, body) == (ID, TIMESTAMP, BODY) and SIGNATURE in signature.split(b" ")
        if found == "k1" and not signed:
            raise AssertionError("vouched for without its signature")
        if found not in NOT_AUTHENTIC | {"k1", "timestamp"}:
            raise AssertionError(found)

    return check


def seeds() -> list[bytes]:
    """The good proof, and some that are nearly so."""
    from tests.hostile.test_proof_headers import BODY, ID, SIGNATURE, TIMESTAMP

    found = [SIGNATURE, b"v1,abc " + SIGNATURE, SIGNATURE + b" v1a,AAAA", SIGNATURE.rstrip(b"="), b"v1a,", b""]
    return [b"\x1f".join((ID, TIMESTAMP, signature, BODY)) for signature in found]


if __name__ == "__main__":
    fuzz(prepare, seeds)
