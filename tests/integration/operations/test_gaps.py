"""`tallyhook gaps`: what is missing, how old it is, and what need not come."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.operations.operated import Operated

OPEN = "SELECT first_sequence, last_sequence FROM sequence_gaps WHERE state = 'open' ORDER BY 1"


def put_gap(
    place: Operated, first: int, last: int, hours: float, merchant: str = "mer_1", state: str = "open"
) -> datetime:
    """A gap as the keeper writes it, opened so many hours ago; a head that holds it."""
    opened_at = datetime.now(UTC) - timedelta(hours=hours)
    place.connection.execute(
        "INSERT INTO sequence_heads (merchant_id, first_seen, highest_seen) VALUES (%s, 0, %s)"
        " ON CONFLICT (merchant_id) DO UPDATE SET highest_seen = greatest(sequence_heads.highest_seen, %s)",
        (merchant, last + 1, last + 1),
    )
    place.connection.execute(
        "INSERT INTO sequence_gaps (merchant_id, first_sequence, last_sequence, opened_at, state, closed_at)"
        " VALUES (%s, %s, %s, %s, %s, CASE WHEN %s <> 'open' THEN now() END)",
        (merchant, first, last, opened_at, state, state),
    )
    return opened_at


def test_each_gap_has_its_age_and_what_that_means(quiet: Operated) -> None:
    """Under 92 hours is normal, from then on late, over four days lost; something lost is exit code 1."""
    put_gap(quiet, 10, 10, 91.9)
    put_gap(quiet, 20, 24, 92.1)
    told = quiet.json("gaps")
    assert [(gap["first"], gap["last"], gap["count"], gap["standing"]) for gap in told["gaps"]] == [
        (20, 24, 5, "late"),
        (10, 10, 1, "normal"),
    ]
    assert told["open"] == {"ranges": 2, "numbers": 6}
    assert told["late"] == {"ranges": 1, "numbers": 5}
    assert told["lost"] == {"ranges": 0, "numbers": 0}
    assert told["merchants"] == [{"merchant": "mer_1", "first_seen": 0, "highest_seen": 25}]
    put_gap(quiet, 30, 39, 96.1)
    told = quiet.json("gaps", code=1)
    assert (told["lost"], told["late"]) == ({"ranges": 1, "numbers": 10}, {"ranges": 2, "numbers": 15})
    done = quiet.command("gaps")
    assert done.returncode == 1
    assert "30-39" in done.stdout
    assert (
        "missing: 16 numbers in 3 ranges; of these late or lost: 15 numbers in 2 ranges; lost: 10 numbers in 1 range"
        in (done.stdout)
    )
    assert "backfill --gaps" in done.stdout


def test_when_a_gap_is_lost_is_a_setting(quiet: Operated) -> None:
    """In fractions of an hour too."""
    put_gap(quiet, 1, 1, 0.01)
    assert quiet.json("gaps")["gaps"][0]["standing"] == "normal"
    told = quiet.json("gaps", code=1, TALLYHOOK_GAPS_LOST_AFTER_HOURS="0.001")
    assert told["gaps"][0]["standing"] == "lost"
    assert (told["late"], told["lost"]) == ({"ranges": 1, "numbers": 1}, {"ranges": 1, "numbers": 1})
    late = quiet.json("gaps", TALLYHOOK_GAPS_NORMAL_HOURS="0.001")
    assert late["gaps"][0]["standing"] == "late"


def test_nothing_is_missing(quiet: Operated) -> None:
    """Before anything was seen, and when everything was; that nobody keeps the numbers is told."""
    done = quiet.command("gaps")
    assert (done.returncode, done.stdout) == (0, "no event was seen yet\n")
    assert "no sink keeps the numbers" in done.stderr
    put_gap(quiet, 5, 5, 1, state="unlisted")
    done = quiet.command("gaps")
    assert (done.returncode, done.stdout) == (0, "merchant mer_1: seen from 0 to 6\nnothing is missing\n")
    assert [gap["standing"] for gap in quiet.json("gaps", "--all")["gaps"]] == ["unlisted"]


def test_an_ignored_range_is_cut_out_of_what_is_open(quiet: Operated) -> None:
    """Across several gaps; what lies beyond stays open and as old as it was."""
    opened_at = put_gap(quiet, 10, 19, 100)
    put_gap(quiet, 30, 39, 100)
    put_gap(quiet, 50, 50, 100)
    told = quiet.json("gaps", "ignore", "15-33", "--reason", "outage", "--actor", "nok")
    assert told == {"merchant": "mer_1", "ranges": 2, "numbers": 9}
    assert quiet.rows(OPEN) == [(10, 14), (34, 39), (50, 50)]
    ignored = (
        "SELECT first_sequence, last_sequence, actor, reason, opened_at FROM sequence_gaps WHERE state = 'ignored'"
    )
    assert quiet.rows(ignored + " ORDER BY 1")[0] == (15, 19, "nok", "outage", opened_at)
    assert [row[:2] for row in quiet.rows(ignored + " ORDER BY 1")] == [(15, 19), (30, 33)]
    done = quiet.command("gaps", "ignore", "12", "--reason", "outage", "--actor", "nok")
    assert done.stdout == "ignored: 1 number in 1 range of merchant mer_1\n"
    assert quiet.rows(OPEN) == [(10, 11), (13, 14), (34, 39), (50, 50)]
    assert quiet.rows("SELECT DISTINCT opened_at FROM sequence_gaps WHERE first_sequence < 20") == [(opened_at,)]
    quiet.command("gaps", "ignore", "0-9223372036854775807", "--reason", "all", "--actor", "nok")
    assert quiet.rows(OPEN) == []
    shown = quiet.command("gaps", "--all").stdout
    assert "nok: outage" in shown


def test_numbers_beyond_every_smaller_type(quiet: Operated) -> None:
    """Around the limits of 16, 31 and 63 bits."""
    for last in (32_767, 2_147_483_647, (1 << 63) - 2):
        put_gap(quiet, last - 1, last, 1)
        told = quiet.json("gaps", "ignore", f"{last}", "--reason", "r", "--actor", "a")
        assert told["numbers"] == 1
    assert quiet.rows(OPEN) == [
        (32_766, 32_766),
        (2_147_483_646, 2_147_483_646),
        ((1 << 63) - 3, (1 << 63) - 3),
    ]


def test_what_is_not_open_cannot_be_ignored(quiet: Operated) -> None:
    """Exit code 1, and nothing has changed."""
    put_gap(quiet, 10, 12, 1, state="unlisted")
    done = quiet.command("gaps", "ignore", "11", "--reason", "r", "--actor", "a")
    assert done.returncode == 1
    assert "nothing was changed" in done.stderr
    assert quiet.rows("SELECT first_sequence, last_sequence, state FROM sequence_gaps") == [(10, 12, "unlisted")]


@pytest.mark.parametrize("numbers", ["x", "5-", "9-8", "-1", "99999999999999999999", "1-2-3", "๕"])
def test_a_range_that_is_none(quiet: Operated, numbers: str) -> None:
    """Wrong usage, before anything is looked at."""
    done = quiet.command("gaps", "ignore", "--reason", "r", "--actor", "a", "--", numbers)
    assert done.returncode == 2, done.stdout + done.stderr


def test_of_several_merchants_one_is_named(quiet: Operated) -> None:
    """By option or by the door's setting; the list is of all or of one."""
    put_gap(quiet, 1, 1, 1)
    put_gap(quiet, 1, 2, 200, merchant="mer_2")
    arguments = ("gaps", "ignore", "1", "--reason", "r", "--actor", "a")
    done = quiet.command(*arguments)
    assert done.returncode == 2
    assert "mer_1, mer_2" in done.stderr
    assert quiet.json("gaps", code=1)["ranges"] == 2
    assert quiet.json("gaps", "--merchant", "mer_1")["ranges"] == 1
    assert quiet.json(*arguments, TALLYHOOK_INGRESS_MERCHANT_ID="mer_2")["merchant"] == "mer_2"
    assert quiet.json(*arguments, "--merchant", "mer_1")["merchant"] == "mer_1"
    assert quiet.rows(OPEN) == [(2, 2)]


def test_an_installation_for_test_events_keeps_no_sequence(quiet: Operated) -> None:
    """It never sees the numbers of the live ones."""
    done = quiet.command("gaps", TALLYHOOK_LIVEMODE="false")
    assert done.returncode == 2
    assert "keeps no sequence" in done.stderr


def test_more_than_is_shown(quiet: Operated) -> None:
    """The sums are of all."""
    for first in range(0, 60, 2):
        put_gap(quiet, first, first, 1)
    told = quiet.json("gaps", "--limit", "7")
    assert (len(told["gaps"]), told["ranges"], told["open"]["numbers"]) == (7, 30, 30)
    assert "shown: 7 of 30 ranges" in quiet.command("gaps", "--limit", "7").stdout


@pytest.mark.parametrize("command", ["gaps", "backfill --gaps", "reconcile"])
def test_a_merchant_that_is_a_slip(quiet: Operated, command: str) -> None:
    """Others are known and the named one is not: that is no peace, and the known ones are named."""
    put_gap(quiet, 10, 12, 100)
    done = quiet.command(
        *command.split(),
        *("--merchant", "mer_l"),
        TALLYHOOK_GATEWAY_API_URL="http://127.0.0.1:9",
        TALLYHOOK_GATEWAY_API_KEY="any",
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "--merchant 'mer_l' is not known here; known are mer_1" in done.stderr
