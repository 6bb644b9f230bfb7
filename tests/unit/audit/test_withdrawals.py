"""What must come of a withdrawal's events, by the gateway's worked examples and the rules between them."""

from dataclasses import replace

import pytest

from tallyhook.operations.audit.expected import DOUBT
from tallyhook.operations.audit.stored_event import InboxEvent
from tallyhook.operations.audit.withdrawal_events import Fill, Tombstone
from tallyhook.operations.audit.withdrawals import Facts, Withdrawal, doubtful_row
from tests.unit.audit.withdrawal_samples import REVERSED_AT, WHOLE, event, fill, filled, reversal, taken_back

FULL = {"filled_minor": 100_000, "remaining_minor": 0}
TOMBSTONE = Tombstone("a", "BANK_RECALL", "btxn_a", "btxn_a_back", REVERSED_AT, None, 30_000, "settled")


def life(*events: InboxEvent, **known: object) -> Withdrawal:
    """A withdrawal after these events."""
    made = Withdrawal("wdr", **known)  # type: ignore[arg-type]  # the fields of Withdrawal
    made.apply_all(events)
    return made


def outcome(made: Withdrawal) -> list[tuple[str, str | None]]:
    """Verdict and reason in the order of application."""
    return [(judgement.verdict, judgement.reason) for judgement in made.outcome.judgements]


def keys(made: Withdrawal) -> list[str]:
    """The dedupe keys of the effects in order."""
    return [effect.dedupe_key for effect in made.outcome.effects]


def faults(made: Withdrawal) -> list[tuple[str, str]]:
    """Events that must not be in the inbox as they are, and why."""
    return [(failed.event_id, why) for failed, why in made.outcome.unreadable]


def row(made: Withdrawal, *names: str) -> list[object]:
    """Columns of the row."""
    assert made.row is not None
    return [made.row[name] for name in names]


def test_chunks_out_of_order_leave_the_newest_totals_and_are_all_kept() -> None:
    """Examples C and D: totals of the highest version, every chunk kept, closed once."""
    made = life(
        event(1, "open", WHOLE),
        filled(5, "b", filled_minor=60_000, remaining_minor=40_000),
        filled(3, "a", filled_minor=30_000, remaining_minor=70_000),
        event(8, "settled", FULL),
        event(9, "settled", FULL),
    )
    assert outcome(made) == [
        *(("advanced", None), ("advanced", None), ("late", "late_fact"), ("advanced", None)),
        ("advanced", "already_closed"),
    ]
    assert row(made, "pg_version", "filled_minor", "remaining_minor", "closed") == [9, 100_000, 0, True]
    assert sorted(made.fills) == ["a", "b"]
    assert keys(made) == ["evt_1:update_local_status", "evt_5:show_progress", "withdrawal:wdr:close_withdrawal"]
    assert made.outcome.effects[1].payload == {"ticket": "ref", "filled_minor": 60_000, "amount_total_minor": 100_000}


def test_an_expiry_half_way_gives_back_what_was_not_paid() -> None:
    """Example E: 71,872 stay debited, 803 of the fee go back; once."""
    half = {"filled_minor": 70_000, "remaining_minor": 0, "refunded_minor": 30_000, "fee_recognized_minor": 1_872}
    made = life(event(1, "open", WHOLE), event(2, "expired", half), event(3, "canceled", half))
    assert outcome(made)[1:] == [("advanced", None), ("advanced", "already_refunded")]
    assert made.outcome.effects[1].payload == {
        "withdrawal_id": "wdr",
        "ticket": "ref",
        "refunded_minor": 30_000,
        "fee_unused_minor": 803,
        "release_minor": 30_803,
        "debited_minor": 71_872,
    }


def test_a_reversal_before_its_chunk_marks_it_and_is_compensated_once() -> None:
    """Example F, also where the same reversal comes again by another event."""
    made = life(event(1, "open", WHOLE), taken_back(4, "a"), filled(3, "a"), taken_back(5, "a", "rejected"))
    assert outcome(made)[1:] == [("advanced", None), ("late", "late_fact"), ("advanced", "already_compensated")]
    assert made.fills["a"].reversed_at == REVERSED_AT
    assert keys(made)[1:] == [
        "withdrawal-fill:a:reverse:compensate_reversed_fill",
        "withdrawal:wdr:release_user_lock",
    ]


def test_a_reversal_opens_the_order_and_a_settled_one_for_good() -> None:
    """Closed, taken back by an event that is itself settled: it is not closed again. Not so by another one."""
    settled = event(2, "settled", FULL)
    for status, reason, closed in (
        ("settled", "reversed_after_settlement", False),
        ("under_dispute", "already_closed", True),
    ):
        made = life(event(1, "open", WHOLE), settled, taken_back(3, "a", status), event(4, "settled", FULL))
        assert outcome(made)[-1] == ("advanced", reason)
        assert row(made, "closed", "close_enqueued") == [closed, True]
        assert keys(made).count("withdrawal:wdr:close_withdrawal") == 1


def test_what_came_before_the_row_follows_the_event_that_built_it() -> None:
    """In order of arrival; what is set once is of the first that has it, and a late event may bring it."""
    made = life(
        filled(2, "a", filled_minor=30_000),
        event(9, "settled", parked=True),
        event(7, "brand_new", {"max_splits": 7, "metadata": {"ticket": "", "payout_id": "p"}}),
        event(4, "open", {"amount_total_minor": 100_000, "remaining_minor": 70_000}),
        event(3, "open", WHOLE),
    )
    assert [judgement.event.event_id for judgement in made.outcome.judgements] == ["evt_4", "evt_2", "evt_7", "evt_3"]
    assert outcome(made) == [
        *(("advanced", None), ("late", "late_fact"), ("advanced", None), ("late", "older_version")),
    ]
    assert row(made, "status", "filled_minor", "remaining_minor") == ["brand_new", 0, 70_000]
    assert row(made, "our_ref", "max_splits", "fee_total_minor") == ["p", 7, 2_675]
    assert faults(made) == []


def test_what_cannot_be_in_the_inbox_is_told() -> None:
    """Applied without a row, waiting with a snapshot that suffices, contradictions, and sums beyond bigint."""
    assert faults(life(event(1, "open"))) == [("evt_1", "nothing had built the row that it needs")]
    assert faults(life(event(1, "open", WHOLE, parked=True))) == [
        ("evt_1", "it waits for a snapshot, and brings one that suffices")
    ]
    begun = (event(1, "open", WHOLE), filled(2, "a"), taken_back(3, "b"))
    beyond = {"refunded_minor": 2**63 - 1, "fee_recognized_minor": 0}
    for wrong, why in (
        (event(4, "open", kind="filled", beside={"fill": fill("a", 1)}), "known with other content"),
        (event(4, "open", kind="filled", beside={"fill": fill("b", 1)}), "taken back with other content"),
        (
            event(4, "open", kind="fill_reversed", beside=reversal("b", reason_code="ACCOUNT_FROZEN")),
            "known with other content",
        ),
        (
            event(4, "open", kind="fill_reversed", beside=reversal("c", balance_transaction_id="btxn_b")),
            "belongs to the reversal of chunk b",
        ),
        (
            event(4, "open", kind="fill_reversed", beside=reversal("a") | {"fill": fill("a", 1)}),
            "was paid out with other content",
        ),
        (event(4, "expired", beyond), "beyond bigint"),
    ):
        made = life(*begun, wrong)
        ((event_id, told),) = faults(made)
        assert (event_id, why in told) == ("evt_4", True), told
        assert row(made, "pg_version") == [3]


@pytest.mark.parametrize(
    ("noted", "effects"),
    [(("advanced", None), ["withdrawal:wdr:close_withdrawal"]), (("advanced", "already_closed"), [])],
)
def test_after_pruning_what_was_done_once_is_taken_from_the_note(
    noted: tuple[str, str | None], effects: list[str]
) -> None:
    """Whether it was closed before only a pruned event knew; columns that no kept event had are in doubt."""
    made = life(event(9, "settled", {"remaining_minor": 0}, noted=noted), row=doubtful_row())
    assert (outcome(made), keys(made)) == ([noted], effects)
    assert row(made, "pg_version", "remaining_minor", "filled_minor", "closed") == [9, 0, DOUBT, True]
    late = life(event(9, "settled", noted=("late", "older_version")), row=doubtful_row())
    assert outcome(late) == [("late", "older_version")]
    assert row(late, "pg_version") == [DOUBT]


def test_after_pruning_the_reversals_that_are_stored_count() -> None:
    """A settled one keeps the order from being closed; known again, its event tells nothing about a refund."""
    unseen = Facts({}, {"a": TOMBSTONE})
    made = life(
        event(8, "settled", {"remaining_minor": 0}), taken_back(9, "a", "expired"), row=doubtful_row(), unseen=unseen
    )
    assert outcome(made) == [("advanced", "reversed_after_settlement"), ("advanced", "already_compensated")]
    (refund,) = made.outcome.effects
    assert (refund.topic, refund.certain, refund.payload["release_minor"]) == ("refund_unfilled", False, DOUBT)


def test_pruned_events_that_waited_follow_the_kept_one_that_built_the_row() -> None:
    """What is set once stays known, the rest is in doubt again; their reversal marks the chunk."""
    chunk = Fill("a", None, 30_000, None, None, None, "btxn_a")
    built = event(5, "settled", dict(WHOLE) | FULL, kind="filled", beside={"fill": fill("a")})
    made = life(built, unseen=Facts({}, {"a": TOMBSTONE}))
    assert keys(made) == ["withdrawal:wdr:close_withdrawal"]
    assert row(made, "pg_version", "closed", "filled_minor", "our_ref") == [DOUBT, DOUBT, DOUBT, "ref"]
    assert made.fills == {"a": replace(chunk, reversed_at=REVERSED_AT)}


def test_an_imported_withdrawal_goes_on_from_where_it_was() -> None:
    """Closed and refunded before: neither leaves again."""
    imported = dict.fromkeys(doubtful_row()) | {"pg_version": 5, "status": "settled", "amount_total_minor": 100_000}
    imported |= {"remaining_minor": 0, "filled_minor": 100_000, "closed": True, "close_enqueued": True}
    imported |= {"refund_enqueued": True, "lock_released": False, "our_ref": "old"}
    made = life(event(4, "open"), event(6, "settled"), event(7, "expired"), event(8, "rejected"), row=imported)
    assert outcome(made) == [
        *(("late", "older_version"), ("advanced", "already_closed"), ("advanced", "already_refunded")),
        ("advanced", None),
    ]
    assert [effect.payload for effect in made.outcome.effects] == [{"withdrawal_id": "wdr", "ticket": "old"}]
