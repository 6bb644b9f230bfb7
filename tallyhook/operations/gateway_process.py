"""The simulated gateway as one more process of the pipeline, supervised like a stage."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tallyhook.operations.stage_process import StageProcess
from tallyhook.settings import GatewaySimSettings, Settings, variable_of


class GatewayProcess:
    """Delivers to the pipeline's door, and answers its API until it is stopped.

    It goes on where it was, after a crash and after a stop of the pipeline; a few events may come once more.

    Args:
        env: the stages' environment.
        target: URL of the webhooks.
        key_file: the secret key it signs with.
        journal_file: what it has delivered.
        keyring_file: the state directory's file of public keys; None: the door has other keys.
        api_key: taken where the settings give none.
        host: where its health pages answer.
        choose_port: gives the port before each start.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        env: Mapping[str, str],
        target: str,
        key_file: Path,
        journal_file: Path,
        keyring_file: Path | None,
        api_key: str,
        host: str,
        choose_port: Callable[[], int],
        log_path: Path,
    ) -> None:
        given = settings.gateway_sim.api_key
        self.api_key = given.get_secret_value() if given is not None else api_key
        argv = [sys.executable, "-m", "tallyhook", "gateway", "--serve", "--target", target]
        argv += ["--key-file", str(key_file), "--journal", str(journal_file)]
        if keyring_file is not None:
            argv += ["--keyring-file", str(keyring_file)]
        if settings.ingress.merchant_id is not None:
            argv += ["--merchant", settings.ingress.merchant_id]
        self.process = StageProcess(
            "gateway",
            argv,
            {**env, variable_of(GatewaySimSettings, "api_key"): self.api_key},
            host=host,
            port_variable=variable_of(GatewaySimSettings, "port"),
            choose_port=choose_port,
            log_path=log_path,
        )
