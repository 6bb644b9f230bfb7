"""Record limits: what the door accepts and what the sink writes must fit into the topics."""

from collections.abc import Iterator, Mapping, Sequence

from ingress.endpoints import Endpoint
from ingress.topics import record_overhead_bytes
from schemas.effects import EFFECTS
from schemas.topics import TopicNames
from tallyhook.operations.doctor.broker import Topic
from tallyhook.operations.doctor.findings import Finding
from tallyhook.operations.doctor.topics import set_config
from tallyhook.settings import Settings

_LIMIT = "max.message.bytes"


def examine(settings: Settings, found: Mapping[str, Topic], endpoints: Sequence[Endpoint]) -> Iterator[Finding]:
    """Topics whose record limit is below a body or a payload.

    Args:
        endpoints: those of the door; without any, TALLYHOOK_INGRESS_MAX_BODY_BYTES counts.
    """
    overhead_bytes = record_overhead_bytes(settings.ingress.max_id_bytes)
    yield from _bodies(settings, found, endpoints, overhead_bytes)
    names = TopicNames(settings.installation.topic_prefix)
    wanted_bytes = settings.sink.max_payload_bytes + overhead_bytes
    for name in (*(names.effect(effect) for effect in EFFECTS), names.balance_entries):
        limit_bytes = _limit_bytes(found, name)
        if limit_bytes is not None and limit_bytes < wanted_bytes:
            yield Finding(
                "payload_limit",
                "breaks",
                ("P1", "P8"),
                f"topic {name}",
                f"{_LIMIT}={limit_bytes}",
                f"at least {wanted_bytes}: TALLYHOOK_SINK_MAX_PAYLOAD_BYTES={settings.sink.max_payload_bytes} and"
                f" {overhead_bytes} for key and headers",
                "an effect that is larger can never be sent, and those behind it wait",
                set_config(settings, name, f"{_LIMIT}={wanted_bytes}"),
            )


def _bodies(
    settings: Settings, found: Mapping[str, Topic], endpoints: Sequence[Endpoint], overhead_bytes: int
) -> Iterator[Finding]:
    installation = settings.installation
    names, test_names = TopicNames(installation.topic_prefix), TopicNames(installation.test_prefix)
    holding = [names.events, names.state_changes, names.dead_letters]
    if installation.livemode:
        holding.append(test_names.events)
    limits = {name: limit for name in holding if (limit := _limit_bytes(found, name)) is not None}
    if not limits:
        return
    bodies = {f"endpoint {one.name}: max_body_bytes": one.max_body_bytes for one in endpoints}
    bodies = bodies or {"TALLYHOOK_INGRESS_MAX_BODY_BYTES": settings.ingress.max_body_bytes}
    largest, body_bytes = max(bodies.items(), key=lambda pair: pair[1])
    wanted_bytes = body_bytes + overhead_bytes
    low = [name for name, limit_bytes in limits.items() if limit_bytes < wanted_bytes]
    if low:
        yield Finding(
            "record_limit",
            "breaks",
            ("P1",),
            f"{'topics' if len(low) > 1 else 'topic'} {', '.join(low)}",
            f"{largest}={body_bytes}, but " + ", ".join(f"{_LIMIT} of {name}={limits[name]}" for name in limits),
            f"{_LIMIT} of at least {wanted_bytes}: the body and {overhead_bytes} for key and headers",
            "larger events of the gateway are refused with 413 until it gives them up",
            " && ".join(set_config(settings, name, f"{_LIMIT}={wanted_bytes}") for name in low)
            + f", or TALLYHOOK_INGRESS_MAX_BODY_BYTES={max(1024, min(limits.values()) - overhead_bytes)}",
        )


def _limit_bytes(found: Mapping[str, Topic], name: str) -> int | None:
    told = found[name].config.get(_LIMIT) if name in found else None
    return None if told is None else int(told)
