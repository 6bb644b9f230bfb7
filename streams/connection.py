"""How Faust's own client (aiokafka) connects: the same settings that librdkafka gets from `tallyhook.kafka`."""

import ssl
from typing import Any

from faust.auth import SASLCredentials, SSLCredentials

from tallyhook.errors import SettingsError
from tallyhook.settings import KafkaSettings


def broker_urls(kafka: KafkaSettings) -> list[str]:
    """The bootstrap servers as Faust takes them; raises SettingsError when there are none."""
    if not kafka.bootstrap:
        raise SettingsError("TALLYHOOK_KAFKA_BOOTSTRAP is not set: give host:port of a broker, or use `tallyhook up`")
    return [f"kafka://{server.strip()}" for server in kafka.bootstrap.split(",") if server.strip()]


def broker_credentials(kafka: KafkaSettings) -> Any:
    """Faust's credentials for transport and authentication, None for PLAINTEXT; raises SettingsError."""
    protocol = kafka.security_protocol
    if protocol == "PLAINTEXT":
        return None
    context = _tls(kafka) if protocol.endswith("SSL") else None
    if protocol == "SSL":
        return SSLCredentials(context=context)
    if kafka.sasl_mechanism is None or kafka.sasl_mechanism == "OAUTHBEARER":
        raise SettingsError(
            f"TALLYHOOK_KAFKA_SASL_MECHANISM={kafka.sasl_mechanism or ''}: the stream needs PLAIN, SCRAM-SHA-256 or "
            "SCRAM-SHA-512 with SASL"
        )
    if kafka.sasl_username is None or kafka.sasl_password is None:
        raise SettingsError("TALLYHOOK_KAFKA_SASL_USERNAME and TALLYHOOK_KAFKA_SASL_PASSWORD are needed with SASL")
    return SASLCredentials(
        username=kafka.sasl_username,
        password=kafka.sasl_password.get_secret_value(),
        mechanism=kafka.sasl_mechanism,
        ssl_context=context,
    )


def _tls(kafka: KafkaSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=kafka.ssl_ca_location)
        if kafka.ssl_certificate_location is not None:
            password = kafka.ssl_key_password.get_secret_value() if kafka.ssl_key_password else None
            context.load_cert_chain(kafka.ssl_certificate_location, kafka.ssl_key_location, password)
    except (OSError, ssl.SSLError) as failure:
        raise SettingsError(f"TALLYHOOK_KAFKA_SSL_...: a certificate or key cannot be loaded: {failure}") from failure
    return context
