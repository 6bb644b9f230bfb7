"""`tallyhook quarantine`: found, shown as it was kept, and closed by hand with a name and a reason."""

import base64

import pytest

from sinks.quarantine import QuarantinedRow
from sinks.records import Source
from tests.integration.operations.operated import Operated

EVIL = b'{"id":"evt_3","note":"\x1b]0;owned\x07 \xe0\xb8\x81 \xff \xe2\x80\xae"}\n'


@pytest.fixture
def three(quiet: Operated) -> Operated:
    """Three rows: of the sink, of the door, and one that nobody could read."""
    quiet.set_aside(
        [
            QuarantinedRow(
                "sinks",
                "money_rule",
                "received is not min(transferred, ordered)",
                "evt_1",
                "dep_1",
                b'{"id":"evt_1"}',
                [("ce_id", b"evt_1"), ("ce_type", b"deposit.settled"), ("ce_keyid", b"k1")],
                Source("t.events", 0, 7),
            ),
            QuarantinedRow(
                "ingress", "envelope_id", "id is not a text", None, None, b"{}", [], Source("t.dead-letters", 1, 0)
            ),
            QuarantinedRow(
                "sinks",
                "record_headers",
                "bad \x1b[31m",
                "evt_3",
                "dep\x9b3",
                EVIL,
                [],
                Source("t.state-changes", 2, 9),
            ),
        ]
    )
    return quiet


def ids(found: dict[str, list[dict[str, int]]]) -> list[int]:
    """Which rows a list has."""
    return [row["id"] for row in found["events"]]


def test_each_condition_narrows_the_list(three: Operated) -> None:
    """Reason, stage, type, state, time, page; total tells what the limit left out."""
    assert ids(three.json("quarantine", "list")) == [1, 2, 3]
    assert ids(three.json("quarantine", "list", "--reason", "money_rule")) == [1]
    assert ids(three.json("quarantine", "list", "--stage", "ingress")) == [2]
    assert ids(three.json("quarantine", "list", "--type", "deposit.settled")) == [1]
    assert ids(three.json("quarantine", "list", "--state", "redriven")) == []
    three.rows("UPDATE quarantined_events SET at = now() - interval '2 days' WHERE id = 1 RETURNING id")
    assert ids(three.json("quarantine", "list", "--since", "25h")) == [2, 3]
    assert ids(three.json("quarantine", "list", "--until", "1d")) == [1]
    page = three.json("quarantine", "list", "--after", "1", "--limit", "1")
    assert (page["total"], ids(page)) == (2, [2])
    text = three.command("quarantine", "list", "--limit", "2").stdout
    assert "2 of 3; the next ones: --after 2" in text


def test_the_list_has_the_reason_in_words(three: Operated) -> None:
    """Thai, English and the next step stand beside the code."""
    row = three.json("quarantine", "list", "--reason", "money_rule")["events"][0]
    assert row["reason_en"].startswith("The amounts contradict each other")
    assert "ยอดเงินขัดแย้งกัน" in row["reason_th"]
    assert row["next_step"].startswith("Compare with the gateway's order")
    assert (row["source_topic"], row["source_partition"], row["source_offset"]) == ("t.events", 0, 7)


def test_a_code_or_a_moment_that_is_none_is_wrong_usage(three: Operated) -> None:
    """Exit code 2, and the message says what would be right."""
    wrong = three.command("quarantine", "list", "--reason", "no_such")
    assert (wrong.returncode, "money_rule" in wrong.stderr) == (2, True)
    wrong = three.command("quarantine", "list", "--since", "yesterday")
    assert (wrong.returncode, "12h" in wrong.stderr) == (2, True)


def test_what_is_shown_cannot_speak_to_the_terminal(three: Operated) -> None:
    """Escapes, bells and what turns text around are written out; Thai stays Thai."""
    for arguments in (("show", "3"), ("list",)):
        shown = three.command("quarantine", *arguments).stdout
        assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}
        assert "bad \\x1b[31m" in shown
    body = three.command("quarantine", "show", "3").stdout
    assert '"note":"\\x1b]0;owned\\x07 ก \\xff \\u202e"}' in body


def test_the_bytes_come_out_as_they_were_kept(three: Operated) -> None:
    """`--raw` writes them and nothing else; the JSON has them in base64."""
    written = three.command("quarantine", "show", "3", "--raw")
    assert (written.returncode, written.raw) == (0, EVIL)
    shown = three.json("quarantine", "show", "3")
    assert base64.b64decode(shown["raw_base64"]) == EVIL
    assert shown["headers"] == {}
    in_thai = three.command("quarantine", "show", "1", "--lang", "th").stdout
    assert "ยอดเงินขัดแย้งกัน" in in_thai
    assert "ce_keyid" in in_thai


def test_a_row_that_does_not_exist_is_a_no(three: Operated) -> None:
    """Exit code 1 with the number."""
    shown = three.command("quarantine", "show", "99")
    assert (shown.returncode, "99" in shown.stderr) == (1, True)


def test_closing_is_all_or_nothing_and_once(three: Operated) -> None:
    """An unknown row closes none; a closed one keeps its first actor and note; the bytes never change."""
    before = three.rows("SELECT id, md5(raw), headers FROM quarantined_events ORDER BY id")
    states = "SELECT id, state, actor, note FROM quarantined_events ORDER BY id"
    why = ("--reason", "ticket 12", "--actor", "nok")
    refused = three.command("quarantine", "resolve", "1", "99", "98", "--discard", *why)
    assert (refused.returncode, "98, 99" in refused.stderr) == (1, True)
    assert {row[1] for row in three.rows(states)} == {"open"}

    closed = three.json("quarantine", "resolve", "1", "2", "--discard", *why)
    assert [row["changed"] for row in closed] == [True, True]
    closed = three.json("quarantine", "resolve", "2", "3", "--accept", "--reason", "paid by hand", "--actor", "lek")
    assert [(row["id"], row["changed"], row["actor"]) for row in closed] == [(2, False, "nok"), (3, True, "lek")]
    assert three.rows(states) == [
        (1, "discarded", "nok", "discarded: ticket 12"),
        (2, "discarded", "nok", "discarded: ticket 12"),
        (3, "discarded", "lek", "accepted, handled by hand: paid by hand"),
    ]
    assert three.rows("SELECT id, md5(raw), headers FROM quarantined_events ORDER BY id") == before
    assert ids(three.json("quarantine", "list")) == []


def test_closing_needs_a_reason_a_name_and_one_way(three: Operated) -> None:
    """Exit code 2 and nothing changed."""
    why = ("--reason", "x", "--actor", "nok")
    for arguments in (
        ("1", *why),
        ("1", "--discard", "--accept", *why),
        ("1", "--discard", "--reason", " ", "--actor", "nok"),
        ("1", "--discard", "--reason", "x", "--actor", "n" * 201),
        ("1", "--discard", "--actor", "nok"),
        ("0", "--discard", *why),
    ):
        assert three.command("quarantine", "resolve", *arguments).returncode == 2, arguments
    assert ids(three.json("quarantine", "list")) == [1, 2, 3]
