"""Any bytes on a connection, cut anywhere: read, waited for or refused; what enters leaves; nothing forged counts."""

from collections.abc import Callable

from tests.hostile.fuzzing import fuzz


def prepare() -> Callable[[bytes], None]:
    """The property, with the reader instrumented."""
    from tests.hostile.test_header_lines import BODY, authentic_in_pieces

    def check(raw: bytes) -> None:
        step, wire = (raw[0] or 1), raw[1:]
        if set(authentic_in_pieces(wire, step)) - {BODY}:
            raise AssertionError("a body was vouched for that nobody signed")

    return lambda raw: check(raw) if raw else None


def seeds() -> list[bytes]:
    """Good requests, spelled in every way that the tests know."""
    from tests.hostile.test_header_lines import BODY, SOUND, bent, wire_of

    made = [wire_of([*SOUND[:at], way, *SOUND[at + 1 :]]) for at in range(len(SOUND)) for way in bent(SOUND[at])]
    chunked = [line for line in SOUND if not line.startswith(b"content-length")] + [b"transfer-encoding: chunked"]
    made.append(wire_of(chunked, b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)))
    made.append(wire_of(SOUND) * 3)
    return [b"\xff" + wire for wire in made] + [b"\x07" + wire for wire in made[-2:]]


if __name__ == "__main__":
    fuzz(prepare, seeds)
