"""Endpoints from variables and from a file: what they become, and how a fault is named."""

from pathlib import Path

import pytest

from ingress import endpoint_settings
from ingress.endpoint_settings import read_endpoints
from ingress.endpoints import Endpoint, by_path
from ingress.schemes.raw_body import RawBody
from ingress.schemes.standard_webhooks import StandardWebhooks
from tallyhook.errors import SettingsError
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import IngressSettings, describe

ONE = SigningKey(bytes(range(32)))
MINIMAL = '[[endpoint]]\nname = "shop"\nkeyring = "keys"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two usable files of keys."""
    (tmp_path / "keys").write_text(f"k1={ONE.public_text()}\n")
    (tmp_path / "keys.toml").write_text(f'[[key]]\nid = "t1"\npublic = "{ONE.public_text()}"\n')
    return tmp_path


def read(folder: Path, content: str, **settings: object) -> tuple[Endpoint, ...]:
    """The endpoints of a file with this content."""
    path = folder / "endpoints.toml"
    path.write_text(content)
    return read_endpoints(IngressSettings.model_validate({"endpoints_file": path, **settings}))


def test_one_endpoint_from_variables() -> None:
    """It is called default and is reached by the short path too."""
    settings = IngressSettings(public_keys=ONE.public_text(), merchant_id="mer_1", max_body_bytes=5000)

    (endpoint,) = read_endpoints(settings)

    assert (endpoint.name, endpoint.merchant, endpoint.max_body_bytes) == ("default", "mer_1", 5000)
    assert set(by_path([endpoint])) == {"/webhooks", "/webhooks/default"}


def test_many_endpoints_from_a_file(folder: Path) -> None:
    """Each with its own scheme, keys, merchant and limits; what is left out is as the variables say."""
    content = (
        f'[[endpoint]]\nname = "shop"\nscheme = "standard-webhooks"\nkeyring = "{folder}/keys.toml"\n'
        'merchant = "mer_1"\ntolerance_seconds = 345600\nmax_body_bytes = 1024\n'
        '[[endpoint]]\nname = "raw.2"\nscheme = "raw-body"\nkeyring = "keys"\nsignature_header = "X-Signature"\n'
        'signature_encoding = "hex"\n' + MINIMAL.replace("shop", "default")
    )

    shop, raw, default = read(folder, content, merchant_id="mer_9", max_body_bytes=9000)

    assert (shop.merchant, shop.max_body_bytes, [key.id for key in shop.keyring.keys]) == ("mer_1", 1024, ["t1"])
    assert (raw.merchant, raw.max_body_bytes, [key.id for key in raw.keyring.keys]) == ("mer_9", 9000, ["k1"])
    assert isinstance(shop.scheme, StandardWebhooks)
    assert isinstance(raw.scheme, RawBody)
    assert raw.scheme.headers == ("x-signature",)
    paths = {"/webhooks/shop", "/webhooks/raw.2", "/webhooks", "/webhooks/default"}
    assert set(by_path([shop, raw, default])) == paths


def test_both_stand_side_by_side(folder: Path) -> None:
    """The file adds to the endpoint of the variables."""
    names = [endpoint.name for endpoint in read(folder, MINIMAL, public_keys=ONE.public_text())]

    assert names == ["default", "shop"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": holds no table [[endpoint]]"),
        ("[[endpoint]", ": not TOML (at line 1, column "),
        (MINIMAL + "x = 1\n", ", [[endpoint]] 1, x: is unknown; known are keyring, max_body_bytes, merchant, name, "),
        ('title = ""\n' + MINIMAL, ", title: is unknown"),
        ('[[endpoint]]\nkeyring = "keys"\n', ", [[endpoint]] 1, name: is missing"),
        ('[[endpoint]]\nname = "a"\n', ", [[endpoint]] 1, keyring: is missing"),
        (MINIMAL.replace("shop", "a/b"), ", [[endpoint]] 1, name: must be 1 to 64"),
        (MINIMAL.replace("shop", "..") + "", ", [[endpoint]] 1, name: must be 1 to 64"),
        (MINIMAL + 'scheme = "hmac"\n', ", [[endpoint]] 1, scheme: must be standard-webhooks or raw-body"),
        (MINIMAL + "scheme = 1\n", ", [[endpoint]] 1, scheme: must be"),
        (MINIMAL + 'merchant = ""\n', ", [[endpoint]] 1, merchant: must be a text"),
        (MINIMAL + "tolerance_seconds = 0\n", ", [[endpoint]] 1, tolerance_seconds: must be 1..400000 (seconds)"),
        (MINIMAL + "tolerance_seconds = true\n", ", [[endpoint]] 1, tolerance_seconds: must be"),
        (MINIMAL + "max_body_bytes = 8388609\n", ", [[endpoint]] 1, max_body_bytes: must be 1024..8388608 (bytes)"),
        (MINIMAL + 'signature_header = "x-s"\n', ", [[endpoint]] 1, signature_header: must be left out"),
        (MINIMAL + 'signature_encoding = "hex"\n', ", [[endpoint]] 1, signature_encoding: must be left out"),
        (MINIMAL + 'scheme = "raw-body"\n', ", [[endpoint]] 1, signature_header: is missing"),
        (
            MINIMAL + 'scheme = "raw-body"\nsignature_header = "Content-Type"\n',
            ", [[endpoint]] 1, signature_header: has a meaning",
        ),
        (
            MINIMAL + 'scheme = "raw-body"\nsignature_header = "ce_id"\n',
            ", [[endpoint]] 1, signature_header: must be the name",
        ),
        (
            MINIMAL + 'scheme = "raw-body"\nsignature_header = "x-s"\ntolerance_seconds = 300\n',
            ", [[endpoint]] 1, tolerance_seconds: must be left out",
        ),
        (MINIMAL + MINIMAL, ", [[endpoint]] 2, name: shop is given twice"),
        (MINIMAL.replace("keys", "nothing"), ", [[endpoint]] 1, keyring="),
        (MINIMAL.replace("keys", "endpoints.toml"), ", [[endpoint]] 1, keyring: "),
        (MINIMAL * 65, ": 65 tables [[endpoint]]; at most 64"),
    ],
)
def test_a_fault_is_named_with_file_table_and_member(folder: Path, content: str, message: str) -> None:
    """Exit code 2; whoever reads it knows where to look."""
    with pytest.raises(SettingsError) as caught:
        read(folder, content)

    assert str(caught.value).startswith(f"{folder / 'endpoints.toml'}{message}")
    assert caught.value.exit_code == 2


def test_the_name_of_the_variables_endpoint_is_taken(folder: Path) -> None:
    """Two endpoints on one path: which keys would count?"""
    with pytest.raises(SettingsError, match=r"default is given twice .*TALLYHOOK_INGRESS_PUBLIC_KEYS"):
        read(folder, MINIMAL.replace("shop", "default"), public_keys=ONE.public_text())


def test_a_missing_file_is_a_wrong_setting(tmp_path: Path) -> None:
    """The message names variable and path."""
    with pytest.raises(SettingsError, match=r"TALLYHOOK_INGRESS_ENDPOINTS_FILE=.*nothing: No such file"):
        read_endpoints(IngressSettings(endpoints_file=tmp_path / "nothing"))


def test_without_any_endpoint_all_three_ways_are_named() -> None:
    """A door that no one can pass is a mistake of the settings."""
    with pytest.raises(SettingsError, match=r"PUBLIC_KEYS, .*PUBLIC_KEYS_FILE or .*ENDPOINTS_FILE"):
        read_endpoints(IngressSettings())


def test_the_bounds_are_those_of_the_variables() -> None:
    """An endpoint of the file cannot be wider or narrower than the one of the variables."""
    bounds = {row.variable: row.bounds for row in describe()}

    for variable, (low, high) in {
        "TALLYHOOK_INGRESS_TOLERANCE_SECONDS": endpoint_settings.TOLERANCE_SECONDS,
        "TALLYHOOK_INGRESS_MAX_BODY_BYTES": endpoint_settings.BODY_BYTES,
    }.items():
        assert f"{low}..{high}" == bounds[variable]
