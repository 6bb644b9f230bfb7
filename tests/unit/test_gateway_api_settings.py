"""The settings of the gateway's API, and of gaps."""

from pathlib import Path

import pytest

from tallyhook.errors import SettingsError
from tallyhook.settings import GapsSettings, GatewayApiSettings, load_component


@pytest.fixture(autouse=True)
def no_settings_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test starts with the defaults."""
    for name in ("TALLYHOOK_GATEWAY_API_URL", "TALLYHOOK_GATEWAY_API_KEY", "TALLYHOOK_GAPS_LOST_AFTER_HOURS"):
        monkeypatch.delenv(name, raising=False)


def test_the_key_comes_from_a_file_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And is shown nowhere."""
    file = tmp_path / "key"
    file.write_text("key-in-a-file\n")
    monkeypatch.setenv("TALLYHOOK_GATEWAY_API_KEY_FILE", str(file))
    monkeypatch.setenv("TALLYHOOK_GATEWAY_API_URL", "https://api.example/base/")
    settings = load_component(GatewayApiSettings)
    assert settings.key is not None
    assert settings.key.get_secret_value() == "key-in-a-file"
    assert settings.url == "https://api.example/base"
    assert "key-in-a-file" not in repr(settings)


@pytest.mark.parametrize(
    "url",
    [
        "api.example",
        "ftp://api.example",
        "https://",
        "https://user@api.example",
        "https://api.example/?x=1",
        "https://api.example/#x",
        "https://api.example:99999",
        "https://[::1",
    ],
)
def test_an_address_that_is_none(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Told when the settings are read, not at the first request."""
    monkeypatch.setenv("TALLYHOOK_GATEWAY_API_URL", url)
    with pytest.raises(SettingsError, match="http:// or https:// with a host"):
        load_component(GatewayApiSettings)


def test_fractions_of_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests and demonstrations need them."""
    monkeypatch.setenv("TALLYHOOK_GAPS_LOST_AFTER_HOURS", "0.25")
    settings = load_component(GapsSettings)
    assert (settings.normal_hours, settings.lost_after_hours) == (92.0, 0.25)
