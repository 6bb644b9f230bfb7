"""The options of `tallyhook gateway`; what is not given is taken from the settings TALLYHOOK_GATEWAY_SIM_..."""

from pathlib import Path
from typing import Annotated

import typer

TargetOption = Annotated[str | None, typer.Option("--target", help="URL of the webhooks; by default the running up's.")]
StateDirOption = Annotated[
    Path | None, typer.Option("--state-dir", help="Folder of a running `up`: its door, key and database are taken.")
]
MerchantOption = Annotated[str | None, typer.Option("--merchant", help="account.merchant_id of the events.")]
ScenarioOption = Annotated[
    str | None, typer.Option("--scenario", help="A small world by its name instead of a random one: withdrawal_day.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="The same seed makes the same world.")]
ObjectsOption = Annotated[int | None, typer.Option("--objects", help="Deposits and withdrawals.")]
SpanOption = Annotated[float | None, typer.Option("--span-hours", help="Virtual hours over which lives begin.")]
WithholdOption = Annotated[
    int | None, typer.Option("--withhold", help="Events that are never delivered; only the API lists them.")
]
TimeFactorOption = Annotated[float | None, typer.Option("--time-factor", help="Virtual seconds a wall second.")]
ReorderOption = Annotated[
    float | None, typer.Option("--reorder", help="Share of events that come after a later one of their object.")
]
DuplicatesOption = Annotated[
    float | None, typer.Option("--duplicates", help="Share of events that are sent again though they were accepted.")
]
OpenEndsOption = Annotated[
    bool,
    typer.Option(
        "--open-ends",
        help="Also lives after which `reconcile` differs: deposits that are never correlated, orders that still run.",
    ),
]
UnsubscribeOption = Annotated[
    list[str] | None, typer.Option("--unsubscribe", help="Event type that is neither sent nor listed; repeatable.")
]
RotateOption = Annotated[
    float | None, typer.Option("--rotate-after", help="Virtual hours after which a second key signs.")
]
KeyringFileOption = Annotated[
    Path | None, typer.Option("--keyring-file", help="File of public keys that the receiver reads; ours are added.")
]
RetryOption = Annotated[
    str | None, typer.Option("--retry-seconds", help="Attempts, in virtual seconds after the first: 0,10,70,...")
]
ConcurrencyOption = Annotated[int | None, typer.Option("--concurrency", help="Most attempts at once.")]
ApiHostOption = Annotated[str | None, typer.Option("--api-host", help="Address of the API.")]
ApiPortOption = Annotated[int | None, typer.Option("--api-port", help="Port of the API; 0 takes a free one.")]
ApiKeyOption = Annotated[
    str | None, typer.Option("--api-key", help="Key of the API; better in TALLYHOOK_GATEWAY_SIM_API_KEY.")
]
FaultShareOption = Annotated[
    float | None, typer.Option("--api-fault-share", help="Share of the API's answers that are 429 or 500.")
]
DatabaseOption = Annotated[
    str | None, typer.Option("--database-url", help="Where correlations are written; better in TALLYHOOK_DATABASE_URL.")
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Afterwards compare the database with what must have come of the world.")
]
CheckSecondsOption = Annotated[
    float, typer.Option("--check-seconds", min=1, max=3600, help="Longest wait for the pipeline, in seconds.")
]
ServeOption = Annotated[bool, typer.Option("--serve", help="Go on answering the API afterwards, until stopped.")]
JournalOption = Annotated[
    Path | None, typer.Option("--journal", help="File of what was delivered: the same world goes on from it.")
]
ReadyFileOption = Annotated[
    Path | None, typer.Option("--ready-file", help="JSON of mode 0600: api_url, api_key, public_key, pids.")
]
