"""An endpoint: a path, and everything that decides what it accepts."""

from dataclasses import dataclass

from ingress.keyring import Keyring
from ingress.schemes import Scheme
from ingress.schemes.standard_webhooks import StandardWebhooks
from tallyhook.settings import IngressSettings

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one gateway account posts to.

    Args:
        name: the last part of its path.
        scheme: how a request is proved.
        keyring: whose signatures count.
        merchant: the account.merchant_id it takes; None takes any.
        max_id_bytes: longest text in the envelope.
        source: ce_source of its events, a URI reference.
    """

    name: str
    scheme: Scheme
    keyring: Keyring
    merchant: str | None
    max_id_bytes: int
    source: str


def from_settings(settings: IngressSettings) -> dict[str, Endpoint]:
    """The endpoints by path; raises SettingsError when one has no usable key."""
    endpoint = Endpoint(
        name=DEFAULT,
        scheme=StandardWebhooks(
            tolerance_seconds=settings.tolerance_seconds,
            max_signatures=settings.max_signatures,
            max_id_bytes=settings.max_id_bytes,
        ),
        keyring=Keyring(settings.public_keys, settings.public_keys_file),
        merchant=settings.merchant_id,
        max_id_bytes=settings.max_id_bytes,
        source=settings.source,
    )
    return {"/webhooks": endpoint, f"/webhooks/{DEFAULT}": endpoint}
