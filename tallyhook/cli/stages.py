"""`tallyhook stream`: the stage in the foreground, until SIGTERM."""

import typer

from tallyhook.settings import load


def stream() -> None:
    """Judge deliveries: reads events, writes state-changes with a verdict each.

    Health pages: /livez, /readyz and /metrics on TALLYHOOK_STREAM_HEALTH_PORT (9101).

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 tallyhook stream
    """
    import streams.app

    raise typer.Exit(streams.app.run(load()))
