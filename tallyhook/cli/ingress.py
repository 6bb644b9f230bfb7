"""`tallyhook ingress`: the door in the foreground, until SIGTERM."""

import typer

from tallyhook.settings import load


def ingress() -> None:
    """Receive signed webhooks: verifies, writes the signed bytes to Kafka, answers once they are durable.

    POST /webhooks on TALLYHOOK_INGRESS_PORT (8080); /livez, /readyz and /metrics on the same port.
    More endpoints, at /webhooks/NAME, stand in the file that TALLYHOOK_INGRESS_ENDPOINTS_FILE names.

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 TALLYHOOK_INGRESS_PUBLIC_KEYS=whpk_... tallyhook ingress
    """
    import ingress.app

    raise typer.Exit(ingress.app.run(load()))
