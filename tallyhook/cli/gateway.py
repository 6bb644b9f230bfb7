"""`tallyhook gateway`: the simulated gateway."""

import typer

from tallyhook import logs
from tallyhook.cli import gateway_options as options
from tallyhook.cli.output import JsonOption, errors
from tallyhook.cli.signing_options import KeyFileOption, KeyOption
from tallyhook.settings import load


def gateway(
    target: options.TargetOption = None,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    state_dir: options.StateDirOption = None,
    merchant: options.MerchantOption = None,
    scenario: options.ScenarioOption = None,
    open_ends: options.OpenEndsOption = False,
    seed: options.SeedOption = None,
    objects: options.ObjectsOption = None,
    span_hours: options.SpanOption = None,
    withhold: options.WithholdOption = None,
    time_factor: options.TimeFactorOption = None,
    reorder: options.ReorderOption = None,
    duplicates: options.DuplicatesOption = None,
    unsubscribe: options.UnsubscribeOption = None,
    rotate_after: options.RotateOption = None,
    keyring_file: options.KeyringFileOption = None,
    retry_seconds: options.RetryOption = None,
    concurrency: options.ConcurrencyOption = None,
    api_host: options.ApiHostOption = None,
    api_port: options.ApiPortOption = None,
    api_key: options.ApiKeyOption = None,
    api_fault_share: options.FaultShareOption = None,
    database_url: options.DatabaseOption = None,
    check: options.CheckOption = False,
    check_seconds: options.CheckSecondsOption = 120.0,
    serve: options.ServeOption = False,
    journal: options.JournalOption = None,
    ready_file: options.ReadyFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play the payment gateway: signed events late, twice and out of order, retries over 92 virtual hours, its API.

    It also plays the merchant's own service, which writes the deposits' correlations into the database. Without
    --target it takes door, key and database of the `up` that runs on --state-dir (default .tallyhook).

    Exit code 1 when an event was not accepted, or when --check finds the database other than it must be.

    Example: tallyhook gateway --seed 7 --objects 2000 --time-factor 2000 --check

    Example: tallyhook gateway --target http://127.0.0.1:8080/webhooks --key-file keys/signing_key --duplicates 0.3

    Example: curl -X POST -H "Authorization: Bearer $KEY" http://127.0.0.1:8070/simulator/resend/evt_1
    """
    from tallyhook.cli.gateway_parts import Wishes, play_of

    settings = load()
    logs.configure("gateway", settings.process.log_level, "console" if errors.is_terminal else "json")
    given = {
        "seed": seed,
        "objects": objects,
        "span_hours": span_hours,
        "withhold": withhold,
        "time_factor": time_factor,
        "reorder": reorder,
        "duplicates": duplicates,
        "rotate_after_hours": rotate_after,
        "retry_seconds": retry_seconds,
        "concurrency": concurrency,
        "host": api_host,
        "port": api_port,
        "api_key": api_key,
        "api_fault_share": api_fault_share,
    }
    wishes = Wishes(
        target=target,
        key=key,
        key_file=key_file,
        state_dir=state_dir,
        merchant_id=merchant,
        scenario=scenario,
        open_ends=open_ends,
        unsubscribed=frozenset(unsubscribe or ()),
        keyring_file=keyring_file,
        database_url=database_url,
        check_seconds=check_seconds if check else None,
        serve=serve,
        journal_file=journal,
    )
    raise typer.Exit(play_of(settings, given, wishes, ready_file=ready_file, as_json=as_json).run())
