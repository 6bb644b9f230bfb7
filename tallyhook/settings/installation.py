"""What every process shares: the installation, Kafka, PostgreSQL, logs."""

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from tallyhook.settings import database_address
from tallyhook.settings.component import Component, unit


class Installation(Component):
    """What makes one installation: every group id, lock key and transactional id derives from it."""

    topic_prefix: str = Field("tallyhook", pattern=r"^[a-zA-Z0-9._-]{1,100}$", description="prefix of every topic")
    schema_: str = Field(
        "tallyhook",
        validation_alias="TALLYHOOK_SCHEMA",
        pattern=r"^[a-z_][a-z0-9_]{0,62}$",
        description="database schema that holds every table",
    )
    partitions: int = Field(
        8,
        ge=1,
        le=1000,
        description="partitions of events, state-changes and effects",
        json_schema_extra=unit("partitions"),
    )
    livemode: bool = Field(True, description="the mode this installation works for; events of the other are set aside")
    durability: Literal["single-node", "replicated"] = Field(
        "single-node", description="replicated demands replication factor 3 and min.insync.replicas 2"
    )
    profile: Literal["latency", "throughput"] = Field(
        "latency", description="sets linger, fetch sizes, batch limits and the relay's gathering together"
    )

    @property
    def schema_name(self) -> str:
        """The database schema."""
        return self.schema_

    @property
    def test_prefix(self) -> str:
        """Prefix of the topics that take events with `livemode: false`."""
        return f"{self.topic_prefix}.test"

    def group_id(self, stage: str) -> str:
        """Consumer group, Faust app id or transactional id of one stage of this installation."""
        return f"{self.topic_prefix}.{self.schema_}.{stage}"

    def channel(self, purpose: str) -> str:
        """Name of a PostgreSQL notification channel (at most 63 bytes)."""
        return f"tallyhook_{purpose}_{self._digest(purpose)[:12]}"

    def lock_key(self, purpose: str) -> int:
        """Key of a PostgreSQL advisory lock: a signed 64-bit integer."""
        return int.from_bytes(bytes.fromhex(self._digest(purpose)[:16]), "big", signed=True)

    def _digest(self, purpose: str) -> str:
        return hashlib.sha256(f"{self.topic_prefix}/{self.schema_}/{purpose}".encode()).hexdigest()


class KafkaSettings(Component):
    """How every client of Kafka connects."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_KAFKA_")

    bootstrap: str | None = Field(
        None, description="bootstrap servers, host:port with commas; unset: `up` starts its own"
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="transport and authentication"
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        None, description="with SASL_PLAINTEXT or SASL_SSL"
    )
    sasl_username: str | None = Field(None, description="SASL user")
    sasl_password: SecretStr | None = Field(None, description="SASL password")
    ssl_ca_location: Path | None = Field(None, description="PEM file of the certificate authority")
    ssl_certificate_location: Path | None = Field(None, description="PEM file of the client's certificate (mTLS)")
    ssl_key_location: Path | None = Field(None, description="PEM file of the client's key (mTLS)")
    ssl_key_password: SecretStr | None = Field(None, description="password of the client's key")
    request_timeout_seconds: float = Field(
        15.0, ge=1, le=300, description="one request to a broker", json_schema_extra=unit("seconds")
    )


class DatabaseSettings(Component):
    """How every client of PostgreSQL connects."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_DATABASE_")

    url: SecretStr | None = Field(
        None, description="libpq URI or keyword string, TLS options included; unset: `up` starts its own"
    )
    password: SecretStr | None = Field(None, description="password, kept apart from the URI")
    connect_timeout_seconds: int = Field(
        10, ge=1, le=120, description="one connection attempt", json_schema_extra=unit("seconds")
    )
    prepare: bool = Field(True, description="prepared statements; false behind a pgbouncer older than 1.21")

    @field_validator("url")
    @classmethod
    def _readable(cls, url: SecretStr | None) -> SecretStr | None:
        # libpq's own words repeat what they could not read, so that they are not passed on.
        if url is not None and not database_address.readable(url.get_secret_value()):
            raise PydanticCustomError("database_address", database_address.WANTED)
        return url


class ProcessSettings(Component):
    """What every process has: logs and the address of its health pages."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe record that is logged"
    )
    log_format: Literal["json", "console"] = Field("json", description="one JSON object a line, or for people")
    health_host: str = Field(
        "127.0.0.1", description="address of /livez, /readyz and /metrics of stream, sink and relay"
    )


class LocalSettings(Component):
    """How `up` gets the servers that are not given."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_LOCAL_")

    servers: Literal["auto", "containers", "packages"] = Field(
        "auto",
        description="auto: containers where a Docker engine answers, else downloaded packages; "
        "a state directory keeps the way it was made with",
    )
    cache_dir: Path | None = Field(
        None,
        validation_alias="TALLYHOOK_CACHE_DIR",
        description="folder for downloads; unset: tallyhook in XDG_CACHE_HOME or ~/.cache",
    )
