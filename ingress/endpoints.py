"""An endpoint: a path, and everything that decides what it accepts."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingress.keyring import Keyring
from ingress.schemes import Scheme

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one gateway account posts to.

    Args:
        name: the last part of its path.
        scheme_name: the scheme as a setting calls it.
        scheme: how a request is proved.
        keyring: whose signatures count.
        merchant: the account.merchant_id it takes; None takes any.
        max_body_bytes: largest body, where the topics take that much.
        max_id_bytes: longest text in the envelope.
        source: ce_source of its events, a URI reference.
    """

    name: str
    scheme_name: str
    scheme: Scheme
    keyring: Keyring
    merchant: str | None
    max_body_bytes: int
    max_id_bytes: int
    source: str

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it is reached; the default one by the short path too."""
        own = f"/webhooks/{self.name}"
        return ("/webhooks", own) if self.name == DEFAULT else (own,)


def by_path(endpoints: Sequence[Endpoint]) -> dict[str, Endpoint]:
    """The endpoints by path."""
    return {path: endpoint for endpoint in endpoints for path in endpoint.paths}
