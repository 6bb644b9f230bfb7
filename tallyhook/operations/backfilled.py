"""How an event that the gateway's API lists becomes a record, just as if the door had taken it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ingress.envelope import BadEnvelope, Envelope, Fields, is_number, is_text, read
from ingress.records import event_headers, fields_of
from schemas.headers import Header
from schemas.topics import TopicNames
from tallyhook.settings import Settings

Place = Literal["events", "test events", "dead letters"]


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What is published.

    Args:
        place: which of the installation's topics; `topic` is its name.
        event_id, event_type, object_id: as far as they can be read.
        why: the reason and the detail of a dead letter; empty for an event.
    """

    place: Place
    topic: str
    key: bytes | None
    value: bytes
    headers: list[Header]
    event_id: str | None
    event_type: str | None
    object_id: str | None
    why: str = ""


class Maker:
    """Makes records for one installation; nobody vouches for them but the API, so that `ce_keyid` is empty.

    Args:
        merchant: the account.merchant_id that is taken; None takes any.
        takes_test_events: whether the topic for `livemode: false` exists.
    """

    def __init__(self, settings: Settings, merchant: str | None, *, takes_test_events: bool) -> None:
        self._installation, self._ingress = settings.installation, settings.ingress
        self._names = TopicNames(settings.installation.topic_prefix)
        self._test_events = TopicNames(settings.installation.test_prefix).events
        self._merchant, self._takes_test_events = merchant, takes_test_events

    def merchant(self, raw: bytes) -> str | None:
        """Whose event it is; None where the envelope cannot be used."""
        try:
            return read(raw, max_id_bytes=self._ingress.max_id_bytes).merchant
        except BadEnvelope:
            return None

    def record(self, raw: bytes, now: datetime) -> Backfilled:
        """The record of one event's JSON; what the door would set aside is a dead letter here too."""
        received_at = now.astimezone(UTC).isoformat().replace("+00:00", "Z")
        try:
            envelope = read(raw, max_id_bytes=self._ingress.max_id_bytes)
            place, topic = self._place(envelope)
        except BadEnvelope as bad:
            return self._dead_letter(raw, bad, received_at)
        headers = event_headers(
            envelope, source=self._ingress.source, received_at=received_at, origin="backfill", key_id=""
        )
        names = (envelope.id, envelope.type, envelope.object_id)
        return Backfilled(place, topic, envelope.object_id.encode(), raw, headers, *names)

    def _place(self, envelope: Envelope) -> tuple[Place, str]:
        if self._merchant is not None and envelope.merchant != self._merchant:
            detail = f"account.merchant_id is not {self._merchant}, whose events are backfilled"
            raise BadEnvelope("envelope_merchant", detail, fields_of(envelope))
        if envelope.livemode == self._installation.livemode:
            return "events", self._names.events
        if not envelope.livemode and self._takes_test_events:
            return "test events", self._test_events
        detail = f"livemode is {str(envelope.livemode).lower()}, and no topic of this installation takes that"
        raise BadEnvelope("wrong_livemode", detail, fields_of(envelope))

    def _dead_letter(self, raw: bytes, bad: BadEnvelope, received_at: str) -> Backfilled:
        headers: list[Header] = [
            ("ce_stage", "ingress"),
            ("ce_reason", bad.reason),
            ("ce_detail", bad.detail),
            ("ce_receivedat", received_at),
            ("ce_origin", "backfill"),
            ("ce_keyid", ""),
        ]
        fields = bad.fields
        texts = {
            "ce_id": self._text(fields.id),
            "ce_type": self._text(fields.type),
            "ce_merchant": self._text(fields.merchant),
            "ce_subject": self._text(fields.object_id),
        }
        headers += [(name, value) for name, value in texts.items() if value is not None]
        headers += _numbers(fields)
        key = texts["ce_subject"] or texts["ce_id"]
        return Backfilled(
            place="dead letters",
            topic=self._names.dead_letters,
            key=None if key is None else key.encode(),
            value=raw,
            headers=headers,
            event_id=texts["ce_id"],
            event_type=texts["ce_type"],
            object_id=texts["ce_subject"],
            why=f"{bad.reason}: {bad.detail}",
        )

    def _text(self, value: object) -> str | None:
        return value if is_text(value, self._ingress.max_id_bytes) else None


def _numbers(fields: Fields) -> list[Header]:
    made: list[Header] = []
    if is_number(fields.sequence):
        made.append(("ce_sequence", str(fields.sequence)))
    if isinstance(fields.livemode, bool):
        made.append(("ce_livemode", "true" if fields.livemode else "false"))
    return made
