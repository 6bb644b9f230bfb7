"""Puts the simulated gateway together from options, settings and a running `up`."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from tallyhook.cli.gateway_play import Play
from tallyhook.cli.signing_options import signing_key
from tallyhook.clock import SystemClock
from tallyhook.errors import SettingsError, UsageError
from tallyhook.gateway.check import Check
from tallyhook.gateway.plan import Mischief
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.signing import SigningKey
from tallyhook.gateway.simulator import Api, Merchant, Setup
from tallyhook.gateway.world.generate import generate
from tallyhook.gateway.world.model import World
from tallyhook.gateway.world.named import scenario_named
from tallyhook.operations.running_pipeline import RunningPipeline, read_running
from tallyhook.settings import DatabaseSettings, GatewaySimSettings, Settings, load_component, variable_of

DEFAULT_STATE_DIR: Final = Path(".tallyhook")
DEFAULT_MERCHANT: Final = "mch_sim"

_OPTIONS: Final = {"host": "api-host", "port": "api-port", "rotate_after_hours": "rotate-after"}
"""Options that are not called like their setting."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options that no setting stands for.

    Args:
        target: None: the running pipeline's door.
        key, key_file: neither: the running pipeline's key.
        state_dir: of the running pipeline; None: the default one, where there is no target.
        scenario: a small world by its name; None: a random one.
        open_ends: whether a random one has lives that end in disagreement.
        check_seconds: longest wait of the check; None: no check.
    """

    target: str | None
    key: str | None
    key_file: Path | None
    state_dir: Path | None
    merchant_id: str | None
    scenario: str | None
    open_ends: bool
    unsubscribed: frozenset[str]
    keyring_file: Path | None
    database_url: str | None
    check_seconds: float | None
    serve: bool
    journal_file: Path | None


def play_of(
    settings: Settings, given: Mapping[str, object], wishes: Wishes, *, ready_file: Path | None, as_json: bool
) -> Play:
    """The run that was asked for; raises UsageError before anything is sent.

    Args:
        given: options by the name of the setting they stand for; None where they were not given.
    """
    sim = _with_options(settings.gateway_sim, given)
    by_state_dir = wishes.target is None or wishes.state_dir is not None
    running = read_running(wishes.state_dir or DEFAULT_STATE_DIR) if by_state_dir else None
    setup = _setup(sim, wishes, running, _merchant(settings, wishes, running))
    world = _world(sim, wishes, running.merchant_id if running is not None else settings.ingress.merchant_id)
    play = Play(world, setup, ready_file=ready_file, as_json=as_json)
    if wishes.check_seconds is not None:
        if setup.merchant is None:
            raise UsageError("--check needs a database: give TALLYHOOK_DATABASE_URL or --state-dir")
        if wishes.unsubscribed:
            raise UsageError("--check knows no world without the types of --unsubscribe: leave one of them out")
        play.check = Check(
            world,
            setup.merchant.database,
            setup.merchant.schema,
            patience_seconds=wishes.check_seconds,
            clock=SystemClock(),
            stopped=play.stopped,
        )
    return play


def _world(sim: GatewaySimSettings, wishes: Wishes, known_merchant: str | None) -> World:
    merchant_id = wishes.merchant_id or known_merchant or DEFAULT_MERCHANT
    if wishes.scenario is not None:
        return scenario_named(wishes.scenario, sim.seed, merchant_id=merchant_id)
    return generate(
        sim.seed,
        sim.objects,
        merchant_id=merchant_id,
        span_hours=sim.span_hours,
        withhold=sim.withhold,
        open_ends=wishes.open_ends,
    )


def _with_options(settings: GatewaySimSettings, given: Mapping[str, object]) -> GatewaySimSettings:
    """The settings under the options that were given; raises UsageError that names the option and its bounds."""
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        checked = load_component(GatewaySimSettings, **chosen)
    except SettingsError as failure:
        text = str(failure)
        for name in chosen:
            option = _OPTIONS.get(name, name).replace("_", "-")
            text = text.replace(f"{variable_of(GatewaySimSettings, name)}=", f"--{option} ")
        raise UsageError(text) from None
    return settings.model_copy(update={name: getattr(checked, name) for name in chosen})


def _key(wishes: Wishes, running: RunningPipeline | None) -> SigningKey:
    """The key that was given, else the running pipeline's."""
    if running is not None and wishes.key is None and wishes.key_file is None:
        return running.key
    return signing_key(wishes.key, wishes.key_file)


def _merchant(settings: Settings, wishes: Wishes, running: RunningPipeline | None) -> Merchant | None:
    """Where correlations go: the option, the running pipeline, the settings; None where there is no database."""
    if wishes.database_url is not None:
        given = load_component(DatabaseSettings, url=SecretStr(wishes.database_url))
        return Merchant(given, running.schema if running is not None else settings.installation.schema_name)
    if running is not None:
        return Merchant(DatabaseSettings(url=running.database_url), running.schema)
    return Merchant(settings.database, settings.installation.schema_name) if settings.database.url is not None else None


def _setup(
    sim: GatewaySimSettings, wishes: Wishes, running: RunningPipeline | None, merchant: Merchant | None
) -> Setup:
    target = wishes.target
    if target is None and running is not None:
        target = running.webhooks_url
    hours, keyring_file = sim.rotate_after_hours, wishes.keyring_file
    if keyring_file is None and hours is not None and running is not None:
        keyring_file = running.public_keys_file
    return Setup(
        target=target or "",
        key=_key(wishes, running),
        api=Api(
            sim.host,
            sim.port,
            sim.api_key.get_secret_value() if sim.api_key is not None else secrets.token_urlsafe(32),
            sim.api_fault_share,
        ),
        time_factor=sim.time_factor,
        schedule=RetrySchedule.from_text(sim.retry_seconds),
        concurrency=sim.concurrency,
        mischief=Mischief(reorder=sim.reorder, duplicates=sim.duplicates),
        unsubscribed=wishes.unsubscribed,
        rotate_after=None if hours is None else timedelta(hours=hours),
        keyring_file=keyring_file,
        merchant=merchant,
        serve=wishes.serve,
        journal_file=wishes.journal_file,
    )
