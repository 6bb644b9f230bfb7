"""The endpoints as the settings describe them: one by environment variables, many in a TOML file."""

import re
from collections.abc import Sequence
from pathlib import Path

from ingress.endpoints import DEFAULT, Endpoint
from ingress.keyring import Keyring
from ingress.public_keys import KeyringError
from ingress.schemes import Scheme
from ingress.schemes.raw_body import ENCODINGS, RawBody
from ingress.schemes.standard_webhooks import StandardWebhooks
from ingress.toml_tables import Table, tables_of
from schemas.door import ENDPOINT_NAME
from tallyhook.errors import SettingsError
from tallyhook.settings import IngressSettings

FILE = "TALLYHOOK_INGRESS_ENDPOINTS_FILE"
STANDARD_WEBHOOKS, RAW_BODY = "standard-webhooks", "raw-body"
SCHEMES = (STANDARD_WEBHOOKS, RAW_BODY)

# The same bounds as those of TALLYHOOK_INGRESS_TOLERANCE_SECONDS and _MAX_BODY_BYTES.
TOLERANCE_SECONDS = (1, 400_000)
BODY_BYTES = (1024, 8_388_608)
MAX_ENDPOINTS = 64
MAX_FILE_BYTES = 262_144

_NAME = re.compile(ENDPOINT_NAME)
_NAME_MEANING = "1 to 64 letters, digits, '.', '_' or '-', a letter or digit first"
_PATH = re.compile(r"[^\x00-\x1f]{1,4096}")
_MERCHANT = re.compile(r"[^\x00-\x1f\x7f]{1,512}")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_TAKEN_HEADERS = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "expect", "host", "traceparent"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)


def read_endpoints(settings: IngressSettings) -> tuple[Endpoint, ...]:
    """Every endpoint, at least one; raises SettingsError that names file, table and member, or the variable.

    What a table leaves out (merchant, tolerance_seconds, max_body_bytes) is as the variables say.
    """
    found: list[Endpoint] = []
    listed = settings.public_keys is not None or settings.public_keys_file is not None
    if listed or settings.endpoints_file is None:
        found.append(_from_variables(settings))
    if settings.endpoints_file is not None:
        found += _from_file(settings.endpoints_file, settings, {endpoint.name for endpoint in found})
    return tuple(found)


def _from_variables(settings: IngressSettings) -> Endpoint:
    return Endpoint(
        name=DEFAULT,
        scheme_name=STANDARD_WEBHOOKS,
        scheme=_standard_webhooks(settings, settings.tolerance_seconds),
        keyring=Keyring(settings.public_keys, settings.public_keys_file),
        merchant=settings.merchant_id,
        max_body_bytes=settings.max_body_bytes,
        max_id_bytes=settings.max_id_bytes,
        source=settings.source,
    )


def _from_file(path: Path, settings: IngressSettings, taken: set[str]) -> list[Endpoint]:
    try:
        with path.open("rb") as source:
            content = source.read(MAX_FILE_BYTES + 1)
    except OSError as failure:
        raise SettingsError(f"{FILE}={path}: {failure.strerror}") from None
    found = []
    for table in tables_of(content, path, "endpoint", max_bytes=MAX_FILE_BYTES, max_tables=MAX_ENDPOINTS):
        endpoint = _from_table(table, path.parent, settings)
        if endpoint.name in taken:
            raise table.wrong("name", f"{endpoint.name} is given twice{_way_out(endpoint.name, settings)}")
        taken.add(endpoint.name)
        found.append(endpoint)
    return found


def _way_out(name: str, settings: IngressSettings) -> str:
    if name != DEFAULT or (settings.public_keys is None and settings.public_keys_file is None):
        return ": give one of them another name"
    given = "TALLYHOOK_INGRESS_PUBLIC_KEYS" + ("" if settings.public_keys is not None else "_FILE")
    return f" ({given} makes one, too): give the one in the file another name, or leave the variable out"


def _from_table(table: Table, folder: Path, settings: IngressSettings) -> Endpoint:
    name = table.text("name", _NAME, _NAME_MEANING)
    scheme_name = table.choice("scheme", SCHEMES)
    scheme = _scheme(table, scheme_name, settings)
    keyring = table.text("keyring", _PATH, "the path of a file")
    merchant = table.text("merchant", _MERCHANT, "a text of 1 to 512 characters, none of them a control character")
    max_body_bytes = table.whole("max_body_bytes", *BODY_BYTES, unit="bytes")
    table.finish()
    if name is None:
        raise table.wrong("name", f"is missing: {_NAME_MEANING}")
    if keyring is None:
        raise table.wrong("keyring", "is missing: the path of a file of public keys")
    try:
        # A path that is not absolute is meant from the file that names it, wherever the process was started.
        keys = Keyring(None, folder / keyring, f"{table.place}, keyring")
    except KeyringError as failure:
        where = f"{table.place}, keyring"
        raise SettingsError(str(failure) if str(failure).startswith(where) else f"{where}: {failure}") from None
    return Endpoint(
        name=name,
        scheme_name=scheme_name,
        scheme=scheme,
        keyring=keys,
        merchant=settings.merchant_id if merchant is None else merchant,
        max_body_bytes=settings.max_body_bytes if max_body_bytes is None else max_body_bytes,
        max_id_bytes=settings.max_id_bytes,
        source=settings.source,
    )


def _scheme(table: Table, name: str, settings: IngressSettings) -> Scheme:
    tolerance_seconds = table.whole("tolerance_seconds", *TOLERANCE_SECONDS, unit="seconds")
    header = table.text("signature_header", _HEADER, "the name of a header: letters, digits and '-', at most 64")
    encoding = table.choice("signature_encoding", ENCODINGS)
    if name == STANDARD_WEBHOOKS:
        _refuse_present(table, ("signature_header", "signature_encoding"), f"scheme {name} fixes it")
        chosen = settings.tolerance_seconds if tolerance_seconds is None else tolerance_seconds
        return _standard_webhooks(settings, chosen)
    _refuse_present(table, ("tolerance_seconds",), f"scheme {name} signs no timestamp, so no age can be judged")
    if header is None:
        raise table.wrong("signature_header", f"is missing: scheme {name} finds the signature there")
    if header.lower() in _TAKEN_HEADERS:
        raise table.wrong("signature_header", "has a meaning of its own in HTTP")
    return RawBody(header=header.lower(), encoding=encoding, max_signatures=settings.max_signatures)


def _refuse_present(table: Table, names: Sequence[str], why: str) -> None:
    for name in names:
        if table.has(name):
            raise table.wrong(name, f"must be left out: {why}")


def _standard_webhooks(settings: IngressSettings, tolerance_seconds: int) -> StandardWebhooks:
    return StandardWebhooks(
        tolerance_seconds=tolerance_seconds,
        max_signatures=settings.max_signatures,
        max_id_bytes=settings.max_id_bytes,
    )
