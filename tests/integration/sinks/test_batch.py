"""One transaction a batch: what is seen, what advances, what is numbered."""

import pytest

from sinks.batch import Applier
from sinks.errors import CountDiffers
from sinks.plan import Plan
from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, body, deposit, overpayment

INBOX = "SELECT event_id, verdict, reason FROM pg_webhook_inbox ORDER BY partition, arrival_seq"
OUTBOX = "SELECT seq, type, dedupe_key, version FROM pg_outbox WHERE partition = %s ORDER BY seq"


@pytest.fixture
def applier(road: Road) -> Applier:
    """An applier that owns partitions 0 and 1."""
    return road.applier(0, 1)


@pytest.fixture
def feed(applier: Applier) -> Feed:
    """Deliveries in partition 0."""
    return Feed(applier)


def test_a_life_in_one_batch_is_that_of_the_same_life_in_many(road: Road, applier: Applier) -> None:
    """Where the batches end makes no difference to rows, effects and numbers."""
    life = [("open", 1), ("slip_received", 2), ("settled", 3), ("reversed", 4)]
    road.correlate("dep-one", "dep-many", user="usr-1")
    one, many = Feed(applier, 0), Feed(applier, 1)
    one.apply(*(deposit(f"one-{version}", "dep-one", version, status) for status, version in life))
    for status, version in life:
        many.apply(deposit(f"many-{version}", "dep-many", version, status))
    types = "SELECT seq, type, version FROM pg_outbox WHERE partition = %s ORDER BY seq"
    assert road.rows(types, (0,)) == road.rows(types, (1,))
    columns = "SELECT pg_version, status, credited_user_at IS NOT NULL, reversed_at IS NOT NULL FROM pg_deposits"
    assert road.rows(columns) == [(4, "reversed", True, True)] * 2
    assert road.one("SELECT balance_minor FROM pg_user_balances") == 0


def test_an_older_version_changes_nothing_and_is_late(road: Road, feed: Feed) -> None:
    """Expired v6 that lands after settled v9 has no effect, in the same batch and apart."""
    road.correlate("dep-1", "dep-2")
    feed.apply(deposit("a9", "dep-1", 9, "settled"), deposit("a6", "dep-1", 6, "expired"))
    feed.apply(deposit("b9", "dep-2", 9, "settled"))
    feed.apply(deposit("b6", "dep-2", 6, "expired"))
    assert road.rows("SELECT pg_version, status FROM pg_deposits") == [(9, "settled")] * 2
    assert road.rows(INBOX) == [
        ("a9", "advanced", None),
        ("a6", "late", "older_version"),
        ("b9", "advanced", None),
        ("b6", "late", "older_version"),
    ]
    assert road.one("SELECT count(*) FROM pg_outbox WHERE type = 'fail_order'") == 0


def test_a_replay_of_the_stream_is_no_redelivery(road: Road, feed: Feed) -> None:
    """The same source read again leaves no trace; another source of the same event is a redelivery, once."""
    road.correlate("dep-1")
    event = deposit("evt-1", "dep-1", 1, "settled")
    first = feed.apply(event)
    replayed = feed.apply(event, replayed_from=0)
    again = feed.apply(event, event)
    feed.apply(event, replayed_from=1)
    assert (first.verdicts["advanced"], replayed.replayed, again.verdicts["redelivered"]) == (1, 1, 2)
    assert road.rows("SELECT event_id, source_offset, verdict FROM redeliveries ORDER BY source_offset") == [
        ("evt-1", 1, "redelivered"),
        ("evt-1", 2, "redelivered"),
    ]
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 1


def test_a_record_behind_the_position_is_passed_over(road: Road, feed: Feed) -> None:
    """Records that were applied are taken and do nothing, even under another event id."""
    road.correlate("dep-1")
    feed.apply(deposit("evt-1", "dep-1", 1, "open"))
    feed.next_offset = 0
    result = feed.apply(deposit("evt-2", "dep-1", 2, "settled"))
    assert (result.taken, road.one("SELECT count(*) FROM pg_webhook_inbox")) == (1, 1)


def test_holes_in_the_offsets_are_fine(road: Road, feed: Feed) -> None:
    """Transaction markers take offsets; the position is the one after the last record."""
    road.correlate("dep-1")
    feed.apply(deposit("evt-1", "dep-1", 1, "open"))
    feed.next_offset = 17
    feed.apply(deposit("evt-2", "dep-1", 2, "settled"))
    assert road.one("SELECT next_offset FROM sink_offsets WHERE partition = 0") == 18


def test_numbers_have_no_gaps_and_follow_the_commits(road: Road, applier: Applier) -> None:
    """Outbox and inbox are numbered from 0 without a gap in each partition, over batches and redeliveries."""
    feeds = [Feed(applier, 0), Feed(applier, 1)]
    ids = [f"dep-{number}" for number in range(30)]
    road.correlate(*ids)
    for batch in (ids[first : first + 7] for first in range(0, len(ids), 7)):
        records = []
        for number, key in enumerate(batch):
            life = [
                deposit(f"{key}-{v}", key, v, status) for v, status in ((1, "open"), (2, "settled"), (2, "settled"))
            ]
            records += feeds[number % 2].records(*life)
        applier.apply(records)
    for partition in (0, 1):
        for table, column in (("pg_outbox", "seq"), ("pg_webhook_inbox", "arrival_seq")):
            statement = f"SELECT {column} FROM {table} WHERE partition = {partition} ORDER BY 1"
            numbers = [row[0] for row in road.connection.execute(statement.encode()).fetchall()]
            assert numbers == list(range(len(numbers)))
            assert numbers


def test_each_entry_has_its_effect_and_the_balance_after_it(road: Road, feed: Feed) -> None:
    """A user's entries carry the running balance, across deposits and batches, in order."""
    road.correlate("dep-1", "dep-2", "dep-3", user="usr-1")
    feed.apply(
        deposit("a", "dep-1", 1, "settled", amount_minor=100),
        deposit("b", "dep-2", 1, "settled", amount_minor=1000),
        deposit("c", "dep-1", 2, "reversed", amount_minor=100),
    )
    feed.apply(deposit("d", "dep-3", 1, "settled", amount_minor=7))
    rows = road.rows("SELECT payload FROM pg_outbox WHERE type = 'balance_entry' ORDER BY seq")
    assert [(row["amount_minor"], row["balance_after_minor"]) for (row,) in rows] == [
        (100, 100),
        (1000, 1100),
        (-100, 1000),
        (7, 1007),
    ]
    assert rows[0][0] == {
        "entry_key": "deposit:dep-1:credit",
        "user_id": "usr-1",
        "amount_minor": 100,
        "balance_after_minor": 100,
        "pg_deposit_id": "dep-1",
        "our_order_id": "ord-dep-1",
    }
    assert road.one("SELECT balance_minor FROM pg_user_balances") == 1007


def test_the_outbox_row_tells_its_cause(road: Road, feed: Feed) -> None:
    """An effect names its event, its object's version and when the event came to the door."""
    road.correlate("dep-1")
    feed.apply(deposit("evt-1", "dep-1", 3, "settled", amount_minor=500, partial=True))
    row = road.rows(
        "SELECT aggregatetype, aggregateid, topic, payload, dedupe_key, causation_id, version, received_at::text"
        " FROM pg_outbox WHERE type = 'release_goods'"
    )
    payload = {"order_id": "ord-dep-1", "partial": True, "received": 500, "ordered": 500}
    key, received = "deposit:dep-1:release_goods", "2026-05-01 10:00:00+00"
    assert row == [("deposit", "dep-1", "release_goods", payload, key, "evt-1", 3, received)]


def test_the_debit_repeats_the_credit(road: Road, feed: Feed) -> None:
    """The reversal's snapshot names another amount: the entry counts, and the difference is counted."""
    road.correlate("dep-1")
    feed.apply(deposit("a", "dep-1", 1, "settled", amount_minor=1000))
    result = feed.apply(deposit("b", "dep-1", 2, "reversed", amount_minor=990))
    assert result.reversal_differs == 1
    assert road.rows("SELECT amount_minor FROM pg_user_balance_entries ORDER BY 1") == [(-1000,), (1000,)]


def test_a_deposit_stays_credited_after_the_inbox_was_pruned(road: Road, feed: Feed) -> None:
    """Without inbox and outbox the rows alone keep every event of a life from acting again."""
    road.correlate("dep-1")
    life = [deposit(f"evt-{v}", "dep-1", v, status) for v, status in ((1, "open"), (2, "settled"), (3, "reversed"))]
    feed.apply(*life)
    road.execute("DELETE FROM pg_webhook_inbox")
    road.execute("DELETE FROM pg_outbox")
    result = feed.apply(*life, deposit("evt-4", "dep-1", 4, "settled"))
    assert road.rows("SELECT amount_minor FROM pg_user_balance_entries ORDER BY 1") == [(-10_000,), (10_000,)]
    assert (result.verdicts["late"], sum(result.effects.values())) == (3, 0)


def test_kinds_without_rules_go_to_the_inbox_only(road: Road, feed: Feed) -> None:
    """With a version `advanced`, without one `immutable`; nothing else is written."""
    refund = {"id": "rfd-1", "object": "refund_order", "version": 4, "status": "open"}
    notice = {"id": "ntc-1", "object": "notice", "amount_minor": 5}
    feed.apply(
        Delivery("w", "rfd-1", 4, "open", body("w", "refund.created", refund), kind="refund_order"),
        Delivery("b", "ntc-1", None, "", body("b", "notice.posted", notice), kind="notice"),
    )
    assert road.rows(INBOX) == [("w", "advanced", "no_handler"), ("b", "immutable", "no_handler")]
    assert (
        road.one("SELECT event -> 'data' -> 'object' ->> 'amount_minor' FROM pg_webhook_inbox WHERE event_id = 'b'")
        == "5"
    )
    assert road.one("SELECT count(*) FROM pg_outbox") == 0


def test_the_signed_bytes_are_kept(road: Road, feed: Feed) -> None:
    """The inbox holds the text byte for byte, Thai and emoji too, and the jsonb column reads it."""
    road.correlate("dep-1")
    event = deposit("evt-1", "dep-1", 1, "rejected", rejection={"display_th": "สลิปไม่ชัด 😿 é"})
    feed.apply(event)
    assert road.one("SELECT event_raw FROM pg_webhook_inbox").encode() == event.body
    assert road.one("SELECT payload ->> 'reason' FROM pg_outbox") == "สลิปไม่ชัด 😿 é"


def test_absent_members_are_null_and_never_json_null(road: Road, feed: Feed) -> None:
    """A snapshot is whole: what a newer one leaves out becomes SQL NULL."""
    road.correlate("dep-1")
    flag = overpayment("clm-1")
    feed.apply(deposit("a", "dep-1", 1, "open", fee_breakdown=[{"x": 1}], overpayment=flag, is_terminal=False))
    feed.apply(deposit("b", "dep-1", 2, "open", fee_breakdown=None))
    assert road.rows(
        "SELECT fee_breakdown IS NULL, overpayment IS NULL, is_terminal IS NULL, ordered_amount_minor IS NULL"
        " FROM pg_deposits"
    ) == [(True, True, True, True)]
    assert road.rows("SELECT claim_id, observed_deposit_version FROM pg_deposit_overpayment_flags") == [("clm-1", 1)]


def test_a_row_that_rose_meanwhile_keeps_its_version(road: Road, applier: Applier, feed: Feed) -> None:
    """Another writer raises the version between the look and the write: the batch is decided anew, and is late."""
    road.correlate("dep-1")
    feed.apply(deposit("a", "dep-1", 1, "open"))
    statements = applier._statements
    write = statements.write

    def write_after_another(topic: str, plan: Plan) -> None:
        road.execute("UPDATE pg_deposits SET pg_version = 7, status = 'theirs' WHERE pg_version = 1")
        write(topic, plan)

    statements.write = write_after_another  # type: ignore[method-assign]
    result = feed.apply(deposit("b", "dep-1", 2, "settled"))
    assert result.repeated == {"conflict": 1}
    assert road.rows(INBOX)[-1] == ("b", "late", "older_version")
    assert road.rows("SELECT pg_version, status FROM pg_deposits") == [(7, "theirs")]
    assert road.rows("SELECT * FROM pg_user_balance_entries") == []


def test_the_guard_counts_its_rows(road: Road, applier: Applier, feed: Feed) -> None:
    """A row that somebody else moved meanwhile rolls the batch back; it is decided anew on what is there then."""
    road.correlate("dep-1")
    feed.apply(deposit("a", "dep-1", 1, "open"))
    # The row is not written, as when somebody else had moved it since it was read.
    road.execute("CREATE FUNCTION pass_over() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
    road.execute("CREATE TRIGGER pass_over BEFORE UPDATE ON pg_deposits FOR EACH ROW EXECUTE FUNCTION pass_over()")
    with pytest.raises(CountDiffers, match="write_deposits changed 0 rows instead of 1"):
        feed.apply(deposit("b", "dep-1", 2, "settled"))
    assert road.rows(INBOX) == [("a", "advanced", None)]
    assert road.rows("SELECT pg_version FROM pg_deposits") == [(1,)]
    road.execute("DROP TRIGGER pass_over ON pg_deposits")
    feed.next_offset = 1
    assert feed.apply(deposit("b", "dep-1", 2, "settled")).verdicts["advanced"] == 1
