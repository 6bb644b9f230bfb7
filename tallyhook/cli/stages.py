"""`tallyhook stream` and `relay`: one stage in the foreground, until SIGTERM."""

import typer

from tallyhook.settings import load


def stream() -> None:
    """Judge deliveries: reads events, writes state-changes with a verdict each.

    Health pages: /livez, /readyz and /metrics on TALLYHOOK_STREAM_HEALTH_PORT (9101).

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 tallyhook stream
    """
    import streams.app

    raise typer.Exit(streams.app.run(load()))


def relay() -> None:
    """Publish outbox rows, each exactly once, to the topic of its effect.

    Health pages: /livez, /readyz and /metrics on TALLYHOOK_RELAY_HEALTH_PORT (9103).

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 TALLYHOOK_DATABASE_URL=postgresql://... tallyhook relay
    """
    import sinks.relay.app

    raise typer.Exit(sinks.relay.app.run(load()))
