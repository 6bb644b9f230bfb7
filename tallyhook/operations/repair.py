"""How an event that was set aside becomes a record of `events` again: the same bytes, headers made anew from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ingress.envelope import BadEnvelope, Envelope, read
from ingress.records import event_headers
from schemas.headers import Header
from schemas.topics import TopicNames
from tallyhook.operations.quarantine import Stored
from tallyhook.settings import Settings


@dataclass(frozen=True, slots=True)
class Redriven:
    """What is published.

    Args:
        key: the object's id, so that it goes where its other events went.
        value: the bytes as they were kept.
    """

    event_id: str
    object_id: str
    version: int | None
    value: bytes
    headers: list[Header]

    @property
    def key(self) -> bytes:
        """The record's key."""
        return self.object_id.encode()


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a row cannot be sent again as it is, and what is left to do."""

    why: str


class Repair:
    """Makes records out of rows, for one installation.

    Everything that the bytes tell is read from them again, the way the door reads it: the stored headers may be what
    was wrong. Only what the bytes cannot tell comes from the headers: when it was received, which key vouched for it.
    """

    def __init__(self, settings: Settings) -> None:
        self._names = TopicNames(settings.installation.topic_prefix)
        self._livemode = settings.installation.livemode
        self._merchant = settings.ingress.merchant_id
        self._max_id_bytes = settings.ingress.max_id_bytes
        self._source = settings.ingress.source

    def record(self, row: Stored) -> Redriven | Unusable:
        """The record of a row, or why there can be none."""
        if row.event.source_topic == self._names.deposit_correlations:
            return Unusable("it is a correlation and no event: write the right one to pg_deposit_correlations")
        if "ce_keyid" not in row.headers:
            return Unusable("no header tells that the door took it: its signature was never checked here")
        try:
            envelope = read(row.raw, max_id_bytes=self._max_id_bytes)
        except BadEnvelope as bad:
            return Unusable(f"its envelope is still unusable ({bad})")
        refused = self._refused(row, envelope)
        if refused is not None:
            return Unusable(refused)
        return Redriven(envelope.id, envelope.object_id, envelope.version, row.raw, self._headers(row, envelope))

    def _refused(self, row: Stored, envelope: Envelope) -> str | None:
        if envelope.livemode is not self._livemode:
            return f"livemode is {str(envelope.livemode).lower()}, which this installation does not work for"
        if row.event.stage != "ingress":
            return None
        # The door's own check comes before any other stage's, so only what the door refused has not passed it.
        if self._merchant is None and row.event.reason == "envelope_merchant":
            return "it belongs to another merchant: set TALLYHOOK_INGRESS_MERCHANT_ID to the one that is to be taken"
        if self._merchant not in (None, envelope.merchant):
            return "account.merchant_id is not TALLYHOOK_INGRESS_MERCHANT_ID"
        return None

    def _headers(self, row: Stored, envelope: Envelope) -> list[Header]:
        made = event_headers(
            envelope,
            source=row.headers.get("ce_source") or self._source,
            received_at=_received_at(row.headers, row.event.at),
            origin="redrive",
            key_id=row.headers["ce_keyid"],
        )
        # What the door carried beside its own: the proof, whatever its headers are called, and the trace.
        return made + [(name, value) for name, value in row.headers.items() if not _is_ours(name)]


def _is_ours(name: str) -> bool:
    return name.startswith("ce_") or name == "content-type"


def _received_at(headers: Mapping[str, str], set_aside_at: datetime) -> str:
    """When the door had it; where no header tells that, when it was set aside, which was soon after."""
    kept = headers.get("ce_receivedat", "")
    try:
        moment = datetime.fromisoformat(kept)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not 2000 <= moment.year < 9999:
        return set_aside_at.isoformat()
    return kept
