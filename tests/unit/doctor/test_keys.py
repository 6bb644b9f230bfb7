"""Keyrings: who vouches now, who will soon not, and who ends too early for what is sent again."""

from datetime import UTC, datetime
from pathlib import Path

from tallyhook.gateway.signing import SigningKey
from tallyhook.operations.doctor import keys
from tallyhook.operations.doctor.findings import Finding
from tallyhook.settings import IngressSettings

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def keyring(folder: Path, *windows: str) -> IngressSettings:
    """A file of keys k0, k1, ...; a window is the rest of its TOML table."""
    path = folder / "keys.toml"
    tables = [
        f'[[key]]\nid = "k{number}"\npublic = "{SigningKey.generate().public_text()}"\n{window}\n'
        for number, window in enumerate(windows)
    ]
    path.write_text("\n".join(tables), encoding="utf-8")
    return IngressSettings(public_keys_file=path, merchant_id="mer_1")


def looked_at(settings: IngressSettings, *, livemode: bool = True) -> list[Finding]:
    """What is found of these settings on the first of June."""
    endpoints, without = keys.endpoints_of(settings)
    return [*without, *keys.examine(endpoints, livemode=livemode, now=NOW)]


def ids(settings: IngressSettings, *, livemode: bool = True) -> list[str]:
    """The ids of what is found."""
    return [finding.id for finding in looked_at(settings, livemode=livemode)]


def test_a_key_for_ever_is_no_danger(tmp_path: Path) -> None:
    """One key without an end, of one merchant."""
    assert ids(keyring(tmp_path, "")) == []


def test_a_key_that_ends_within_14_days_is_named_with_who_follows(tmp_path: Path) -> None:
    """On the 14th day it is time enough; a successor is named, and its absence too."""
    assert ids(keyring(tmp_path, "not_after = 2026-06-15T00:00:00Z")) == []
    (alone,) = looked_at(keyring(tmp_path, "not_after = 2026-06-14T23:59:59Z"))
    assert (alone.id, alone.severity) == ("key_ending", "warning")
    assert "k0" in alone.subject
    assert "no key vouches" in alone.found
    (followed,) = looked_at(keyring(tmp_path, "not_after = 2026-06-08T00:00:00Z", ""))
    assert "then k1 vouches" in followed.found


def test_no_key_that_vouches_now_breaks_no_loss(tmp_path: Path) -> None:
    """All ended, all to come, or all for test events alone."""
    for window in ("not_after = 2026-05-31T00:00:00Z", "not_before = 2026-06-02T00:00:00Z", "test_only = true"):
        (found,) = looked_at(keyring(tmp_path, window))
        assert (found.id, found.severity, found.promises) == ("keys_none_valid", "breaks", ("P1",))
    assert ids(keyring(tmp_path, "test_only = true"), livemode=False) == []


def test_a_retired_key_stays_for_31_days_beside_its_successor(tmp_path: Path) -> None:
    """What is sent again may carry its first signature."""
    successor = "not_before = 2026-05-20T00:00:00Z"
    assert ids(keyring(tmp_path, "not_after = 2026-06-20T00:00:00Z", successor)) == []
    (short,) = looked_at(keyring(tmp_path, "not_after = 2026-06-19T00:00:00Z", successor))
    assert short.id == "key_overlap"
    assert short.wanted.startswith("until 2026-06-20")
    assert ids(keyring(tmp_path, "not_after = 2026-05-25T00:00:00Z", successor)) == ["key_overlap"]


def test_settings_that_cannot_be_used_are_told_from_none(tmp_path: Path) -> None:
    """A broken file breaks a promise; a machine without the door's settings is only not looked at."""
    assert ids(IngressSettings(public_keys_file=tmp_path / "absent", merchant_id="m")) == ["keys_unusable"]
    assert ids(IngressSettings(public_keys="whpk_no", merchant_id="m")) == ["keys_unusable"]
    assert ids(IngressSettings()) == ["keys_unset"]


def test_an_endpoint_without_a_merchant_is_warned_of(tmp_path: Path) -> None:
    """The same gateway signs for other accounts too."""
    anybody = keyring(tmp_path, "").model_copy(update={"merchant_id": None})
    assert ids(anybody) == ["merchant_any"]
