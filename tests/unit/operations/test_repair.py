"""What is set aside becomes a record of `events` again only where the bytes and their proof allow it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from schemas.headers import decode
from tallyhook.operations.quarantine import QuarantinedEvent, Stored
from tallyhook.operations.repair import Redriven, Repair, Unusable
from tallyhook.settings import IngressSettings, Installation, Settings, load

SET_ASIDE_AT = datetime(2026, 5, 2, 3, 4, 5, tzinfo=UTC)
RECEIVED_AT = "2026-05-01T10:00:00Z"


def settings(merchant: str | None = None, *, livemode: bool = True) -> Settings:
    """An installation whose door takes one merchant, or any."""
    own = Installation(topic_prefix="t", livemode=livemode)
    return replace(load(), installation=own, ingress=IngressSettings(merchant_id=merchant, source="/other"))


def body(**members: Any) -> bytes:
    """An event with a sound envelope, members replaced."""
    event = {
        "id": "evt_1",
        "type": "deposit.open",
        "livemode": True,
        "created_at": "2026-05-01T09:59:59Z",
        "sequence": 4,
        "account": {"merchant_id": "mer_1"},
        "data": {"object": {"id": "dep_1", "object": "deposit_order", "version": 3, "status": "open"}},
    }
    return json.dumps(event | members).encode()


def stored(raw: bytes, stage: str = "sinks", reason: str = "money_rule", **headers: str | None) -> Stored:
    """A row; headers given as None are absent."""
    kept = {"ce_keyid": "k1", "ce_receivedat": RECEIVED_AT, "ce_source": "/gateway"} | headers
    event = QuarantinedEvent(
        1, stage, reason, "", None, None, None, "t.events", 0, 0, 1, SET_ASIDE_AT, "open", None, None, len(raw)
    )
    return Stored(event, raw, {name: value for name, value in kept.items() if value is not None})


def test_everything_that_the_bytes_tell_comes_from_them() -> None:
    """Stored headers that lie do not travel on; the moment of receipt, the key and the proof do."""
    row = stored(
        body(),
        ce_id="evt_other",
        ce_subject="dep_other",
        ce_version="99",
        ce_origin="webhook",
        ce_verdict="late",
        ce_stage="sinks",
        traceparent="00-1-2-01",
        **{"x-signature": "abc", "content-type": "text/html"},
    )
    made = Repair(settings()).record(row)
    assert isinstance(made, Redriven)
    assert (made.key, made.value, made.version) == (b"dep_1", row.raw, 3)
    read = decode([(name, value) for name, value in made.headers])
    assert (read.id, read.subject, read.version, read.origin) == ("evt_1", "dep_1", 3, "redrive")
    assert (read.received_at, read.key_id, read.source) == (RECEIVED_AT, "k1", "/gateway")
    names = [name for name, _ in made.headers]
    assert len(names) == len(set(names))
    assert {name for name in names if not name.startswith("ce_")} == {"content-type", "traceparent", "x-signature"}
    assert dict(made.headers)["content-type"] == "application/json"


@pytest.mark.parametrize("kept", [None, "", "yesterday", "2026-05-01T10:00:00", "1987-01-01T00:00:00Z"])
def test_a_moment_of_receipt_that_is_none_becomes_that_of_setting_aside(kept: str | None) -> None:
    """The inbox needs a moment that it can keep."""
    made = Repair(settings()).record(stored(body(), ce_receivedat=kept, ce_source=None))
    assert isinstance(made, Redriven)
    read = decode(made.headers)
    assert (read.received_at, read.source) == ("2026-05-02T03:04:05+00:00", "/other")


def test_what_no_key_vouched_for_is_not_let_in() -> None:
    """Redrive makes no event of what a foreign writer put into a topic; a backfilled event has an empty key."""
    refused = Repair(settings()).record(stored(body(), ce_keyid=None))
    assert refused == Unusable("no header tells that the door took it: its signature was never checked here")
    assert isinstance(Repair(settings()).record(stored(body(), ce_keyid="", ce_origin="backfill")), Redriven)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "envelope_not_json"),
        (body(id=""), "envelope_id"),
        (body(livemode="true"), "envelope_livemode"),
        (body(data={"object": {"id": "d", "object": "deposit_order", "version": "91"}}), "envelope_version"),
    ],
)
def test_an_envelope_that_is_still_unusable(raw: bytes, reason: str) -> None:
    """The reason is the one that the door would give."""
    refused = Repair(settings()).record(stored(raw, "ingress", reason))
    assert isinstance(refused, Unusable)
    assert f"({reason}: " in refused.why


def test_the_other_mode_stays_out() -> None:
    """A test event never becomes a live one, nor the other way round."""
    for livemode in (True, False):
        assert isinstance(Repair(settings(livemode=not livemode)).record(stored(body(livemode=livemode))), Unusable)
        assert isinstance(Repair(settings(livemode=livemode)).record(stored(body(livemode=livemode))), Redriven)


@pytest.mark.parametrize(
    ("stage", "reason", "merchant", "passes"),
    [
        ("ingress", "envelope_merchant", None, False),
        ("ingress", "envelope_merchant", "mer_2", False),
        ("ingress", "envelope_merchant", "mer_1", True),
        ("ingress", "envelope_id", "mer_2", False),
        ("ingress", "envelope_id", None, True),
        ("sinks", "money_rule", "mer_2", True),
    ],
)
def test_another_merchant_needs_the_setting(stage: str, reason: str, merchant: str | None, passes: bool) -> None:
    """What the door refused is checked as the door does; what had passed it is not checked again."""
    made = Repair(settings(merchant)).record(stored(body(), stage, reason))
    assert isinstance(made, Redriven) is passes


def test_a_correlation_is_no_event() -> None:
    """Even where it looks like one."""
    row = stored(body())
    of_correlations = replace(row, event=replace(row.event, source_topic="t.deposit-correlations"))
    assert isinstance(Repair(settings()).record(of_correlations), Unusable)
