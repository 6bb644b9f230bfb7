"""What a running `up` tells the other commands on this machine, in a file of its state directory."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tallyhook.errors import UsageError
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import Settings


@dataclass(frozen=True, slots=True)
class RunningPipeline:
    """A pipeline that takes traffic.

    Args:
        webhooks_url: where signed events are posted.
        key: the local signing key, whose public half the pipeline knows.
        database_url: libpq URI.
        merchant_id: whose events the door takes; None: anybody's.
        public_keys_file: the state directory's file of public keys, which the door reads again when it changes; None:
            the door has other keys.
    """

    webhooks_url: str
    key: SigningKey
    database_url: SecretStr
    schema: str
    merchant_id: str | None
    public_keys_file: Path | None


def described_file(state_dir: Path) -> Path:
    """JSON of mode 0600, there while the pipeline takes traffic."""
    return state_dir / "run" / "pipeline.json"


def own_keys_file(settings: Settings, state_dir: Path) -> Path | None:
    """The state directory's file of public keys, which the door reads; None where the settings give other keys.

    Those are their owner's: no local key is added to them.
    """
    if settings.ingress.public_keys is None and settings.ingress.public_keys_file is None:
        return state_dir / "keys" / "public_keys"
    return None


def read_running(state_dir: Path) -> RunningPipeline:
    """What the `up` on this state directory says of itself; raises UsageError when none takes traffic."""
    path = described_file(state_dir)
    try:
        said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        keys_file = said["public_keys_file"]
        return RunningPipeline(
            webhooks_url=f"{said['ingress_url']}/webhooks",
            key=SigningKey.from_text(said["signing_key"]),
            database_url=SecretStr(said["database_url"]),
            schema=said["schema"],
            merchant_id=said["merchant_id"],
            public_keys_file=Path(keys_file) if keys_file else None,
        )
    except FileNotFoundError:
        raise UsageError(
            f"no pipeline takes traffic on state directory {state_dir}: start `tallyhook up`, name another with "
            "--state-dir, or give --target and a key"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise UsageError(f"{path} cannot be read: {type(failure).__name__}") from failure
