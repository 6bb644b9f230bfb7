"""What tests of the whole sink give it, and how they judge what it made of that."""

from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import Delivery, deposit


def applied(road: Road) -> int:
    """How many events are in the inbox."""
    return int(road.one("SELECT count(*) FROM pg_webhook_inbox"))


def sound(road: Road, deposits: int) -> None:
    """Each deposit credited once, the balances are the entries' sums, and the numbers have no gap."""
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == deposits
    assert (
        road.rows(
            "SELECT user_id FROM pg_user_balances FULL JOIN (SELECT user_id, sum(amount_minor) AS total"
            " FROM pg_user_balance_entries GROUP BY user_id) e USING (user_id)"
            " WHERE total IS DISTINCT FROM balance_minor"
        )
        == []
    )
    assert road.rows("SELECT partition FROM pg_outbox GROUP BY partition HAVING max(seq) + 1 <> count(*)") == []
    assert (
        road.rows("SELECT partition FROM pg_webhook_inbox GROUP BY partition HAVING max(arrival_seq) + 1 <> count(*)")
        == []
    )
    assert road.rows("SELECT * FROM quarantined_events") == []


def lives(road: Road, number: int, start: int = 0) -> list[Delivery]:
    """Two events for each of so many deposits of ten users, with their correlations."""
    keys = [f"dep-{n}" for n in range(start, start + number)]
    for n, key in enumerate(keys):
        road.correlate(key, user=f"usr-{n % 10}")
    return [deposit(f"{key}-{v}", key, v, status) for v, status in ((1, "open"), (2, "settled")) for key in keys]
