"""Settings: environment variables `TALLYHOOK_...`, one class a component; secrets also from files (`..._FILE`).

Nothing below the command line reads the environment: it calls `load` once and hands the objects on.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import EnvSettingsSource

from tallyhook.errors import SettingsError

C = TypeVar("C", bound="Component")
Port = Annotated[int, Field(ge=0, le=65535, json_schema_extra={"unit": "TCP port, 0 takes a free one"})]


def _unit(name: str) -> dict[str, Any]:
    return {"unit": name}


class _SecretFiles(PydanticBaseSettingsSource):
    """Reads `<NAME>_FILE` for each secret field; a value given directly wins."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = f"{self.config.get('env_prefix', '')}{field_name}".upper()
        path = os.environ.get(name + "_FILE")
        secret = field.annotation is SecretStr or SecretStr in get_args(field.annotation)
        if path is None or not secret:
            return None, field_name, False
        try:
            return Path(path).read_text(encoding="utf-8").strip(), field_name, False
        except (OSError, UnicodeDecodeError) as failure:
            raise SettingsError(
                f"{name}_FILE={path}: cannot be read ({failure}); check the path and its mode"
            ) from failure

    def __call__(self) -> dict[str, Any]:
        found = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in found.items() if value is not None}


class Component(BaseSettings):
    """Base of the settings classes: frozen, unknown variables are ignored here and reported by `unknown_variables`."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_", frozen=True, extra="ignore", populate_by_name=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then files of secrets."""
        return (
            init_settings,
            EnvSettingsSource(settings_cls, env_ignore_empty=True),
            _SecretFiles(settings_cls),
        )


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
        json_schema_extra=_unit("partitions"),
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
        15.0, ge=1, le=300, description="one request to a broker", json_schema_extra=_unit("seconds")
    )


class DatabaseSettings(Component):
    """How every client of PostgreSQL connects."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_DATABASE_")

    url: SecretStr | None = Field(
        None, description="libpq URI or keyword string, TLS options included; unset: `up` starts its own"
    )
    password: SecretStr | None = Field(None, description="password, kept apart from the URI")
    connect_timeout_seconds: int = Field(
        10, ge=1, le=120, description="one connection attempt", json_schema_extra=_unit("seconds")
    )
    prepare: bool = Field(True, description="prepared statements; false behind a pgbouncer older than 1.21")


class ProcessSettings(Component):
    """What every process has: logs and the address of its health pages."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe record that is logged"
    )
    log_format: Literal["json", "console"] = Field("json", description="one JSON object a line, or for people")
    health_host: str = Field(
        "127.0.0.1", description="address of /livez, /readyz and /metrics of stream, sink and relay"
    )


class IngressSettings(Component):
    """The door."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_INGRESS_")

    host: str = Field("127.0.0.1", description="address to listen on")
    port: Port = Field(8080, description="port of the webhooks and of the health pages")
    public_keys: str | None = Field(
        None, description="gateway's public keys, `whpk_...`, with commas; the key ids are their fingerprints"
    )
    public_keys_file: Path | None = Field(
        None, description="file of public keys, one a line, `[id=]whpk_...`; read again when it changes"
    )
    merchant_id: str | None = Field(
        None,
        max_length=512,
        description="account.merchant_id this endpoint takes; unset: the first checks none",
    )
    tolerance_seconds: int = Field(
        300,
        ge=1,
        le=400_000,
        description="allowed age of webhook-timestamp, both ways",
        json_schema_extra=_unit("seconds"),
    )
    max_body_bytes: int = Field(
        262_144, ge=1024, le=8_388_608, description="largest body", json_schema_extra=_unit("bytes")
    )
    max_headers: int = Field(64, ge=8, le=1000, description="most header lines", json_schema_extra=_unit("headers"))
    max_header_bytes: int = Field(
        16_384, ge=1024, le=262_144, description="all headers together", json_schema_extra=_unit("bytes")
    )
    max_signatures: int = Field(
        16, ge=1, le=256, description="most signatures of one request", json_schema_extra=_unit("signatures")
    )
    body_timeout_seconds: float = Field(
        10.0, ge=0.1, le=120, description="reading one body", json_schema_extra=_unit("seconds")
    )
    delivery_timeout_seconds: float = Field(
        8.0,
        ge=0.5,
        le=60,
        description="confirmation by Kafka, below the sender's time-out",
        json_schema_extra=_unit("seconds"),
    )
    max_in_flight: int = Field(
        2000, ge=1, le=100_000, description="requests at once", json_schema_extra=_unit("requests")
    )
    key_reload_seconds: float = Field(
        5.0, ge=0.1, le=300, description="look for changed keys", json_schema_extra=_unit("seconds")
    )
    max_id_bytes: int = Field(512, ge=16, le=4096, description="longest id", json_schema_extra=_unit("bytes"))
    source: str = Field("/gateway", max_length=512, description="ce_source of its events (a URI reference)")
    shutdown_seconds: float = Field(
        20.0, ge=1, le=300, description="drain on SIGTERM", json_schema_extra=_unit("seconds")
    )


class StreamSettings(Component):
    """The Faust worker."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_STREAM_")

    health_port: Port = Field(9101, description="port of the health pages")
    batch_events: int | None = Field(
        None,
        ge=1,
        le=5000,
        description="most events a batch; unset: by profile",
        json_schema_extra=_unit("events"),
    )
    store: Literal["memory", "rocksdb"] = Field("memory", description="where the version table lives between batches")
    data_dir: Path = Field(Path(".tallyhook/streams"), description="folder of the RocksDB store")
    replication: int = Field(
        1,
        ge=1,
        le=9,
        description="replication factor of the changelog topic",
        json_schema_extra=_unit("replicas"),
    )
    stall_seconds: float = Field(
        30.0,
        ge=5,
        le=600,
        description="no progress though work waits ends the process",
        json_schema_extra=_unit("seconds"),
    )
    session_timeout_seconds: float = Field(
        10.0,
        ge=1,
        le=300,
        description="broker's patience with a silent worker",
        json_schema_extra=_unit("seconds"),
    )
    delivery_timeout_seconds: float = Field(
        120.0,
        ge=5,
        le=900,
        description="confirmation by Kafka before the process ends",
        json_schema_extra=_unit("seconds"),
    )


class SinkSettings(Component):
    """The worker that writes to PostgreSQL."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_SINK_")

    health_port: Port = Field(9102, description="port of the health pages")
    batch_rows: int | None = Field(
        None,
        ge=1,
        le=5000,
        description="most events a transaction; unset: by profile",
        json_schema_extra=_unit("rows"),
    )
    batch_wait_seconds: float = Field(
        0.05, ge=0.001, le=5, description="longest wait for a full batch", json_schema_extra=_unit("seconds")
    )
    parked_check_seconds: float = Field(
        0.5,
        ge=0.05,
        le=60,
        description="look for parked events that can go on",
        json_schema_extra=_unit("seconds"),
    )
    claim_wait_seconds: float = Field(
        10.0,
        ge=0.5,
        le=300,
        description="wait for a frozen owner before its backend is ended",
        json_schema_extra=_unit("seconds"),
    )
    quarantine_limit: int = Field(
        20,
        ge=1,
        le=1000,
        description="most quarantined of the last 1,000 events before the worker stops",
        json_schema_extra=_unit("events"),
    )
    max_payload_bytes: int = Field(
        65_536, ge=1024, le=1_048_576, description="largest effect payload", json_schema_extra=_unit("bytes")
    )
    session_timeout_seconds: float = Field(
        10.0,
        ge=1,
        le=300,
        description="broker's patience with a silent worker (classic protocol)",
        json_schema_extra=_unit("seconds"),
    )


class RelaySettings(Component):
    """The relay from the outbox to the effect topics."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_RELAY_")

    health_port: Port = Field(9103, description="port of the health pages")
    shard: int = Field(0, ge=0, le=999, description="the shard this process works on", json_schema_extra=_unit("shard"))
    shards: int = Field(
        1, ge=1, le=1000, description="shards, fixed at installation", json_schema_extra=_unit("shards")
    )
    transaction_rows: int = Field(
        1000, ge=1, le=10_000, description="most rows a Kafka transaction", json_schema_extra=_unit("rows")
    )
    poll_seconds: float = Field(
        0.25,
        ge=0.01,
        le=60,
        description="look for rows when no notification came",
        json_schema_extra=_unit("seconds"),
    )
    lease_seconds: float = Field(
        10.0,
        ge=1,
        le=300,
        description="validity of the lease between renewals",
        json_schema_extra=_unit("seconds"),
    )
    transaction_timeout_seconds: float = Field(
        60.0,
        ge=5,
        le=900,
        description="broker aborts an open transaction after",
        json_schema_extra=_unit("seconds"),
    )
    outbox_retention_days: float = Field(
        14.0, ge=0.01, le=3650, description="sent rows are kept", json_schema_extra=_unit("days")
    )


@dataclass(frozen=True, slots=True)
class Profile:
    """The knobs that only make sense together (fewer, larger requests cost less and wait longer)."""

    linger_ms: int
    fetch_min_bytes: int
    batch_rows: int
    stream_batch_events: int
    relay_gather_seconds: float


PROFILES: Mapping[str, Profile] = {
    "latency": Profile(
        linger_ms=5, fetch_min_bytes=1, batch_rows=1000, stream_batch_events=1000, relay_gather_seconds=0.0
    ),
    "throughput": Profile(
        linger_ms=25,
        fetch_min_bytes=65_536,
        batch_rows=2000,
        stream_batch_events=2000,
        relay_gather_seconds=0.5,
    ),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a process of the pipeline is made from."""

    installation: Installation
    kafka: KafkaSettings
    database: DatabaseSettings
    process: ProcessSettings
    ingress: IngressSettings
    stream: StreamSettings
    sink: SinkSettings
    relay: RelaySettings

    @property
    def profile(self) -> Profile:
        """The numbers behind the profile's name."""
        return PROFILES[self.installation.profile]


COMPONENTS: Mapping[str, type[Component]] = {
    "installation": Installation,
    "kafka": KafkaSettings,
    "database": DatabaseSettings,
    "process": ProcessSettings,
    "ingress": IngressSettings,
    "stream": StreamSettings,
    "sink": SinkSettings,
    "relay": RelaySettings,
}


def load() -> Settings:
    """Reads and checks every setting; raises SettingsError that names the variable, the value and the bounds."""
    values: dict[str, Any] = {name: load_component(component) for name, component in COMPONENTS.items()}
    return Settings(**values)


def load_component(component: type[C]) -> C:
    """Reads one component's settings from the environment."""
    try:
        return component()
    except ValidationError as failure:
        raise SettingsError("\n".join(_explain(component, error) for error in failure.errors())) from None


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """One row of `tallyhook settings`."""

    component: str
    variable: str
    meaning: str
    unit: str
    default: str
    bounds: str
    secret: bool


def describe() -> Iterator[SettingDescription]:
    """Every setting with meaning, unit, default and bounds, in the order of the classes."""
    for name, component in COMPONENTS.items():
        for field_name, field in component.model_fields.items():
            secret = field.annotation is SecretStr or SecretStr in get_args(field.annotation)
            yield SettingDescription(
                component=name,
                variable=variable_of(component, field_name),
                meaning=field.description or "",
                unit=_unit_of(field),
                default="unset" if field.default is None else str(field.default),
                bounds=_bounds_of(field),
                secret=secret,
            )


def variable_of(component: type[Component], field_name: str) -> str:
    """The environment variable of a field."""
    alias = component.model_fields[field_name].validation_alias
    return alias if isinstance(alias, str) else f"{component.model_config.get('env_prefix', '')}{field_name}".upper()


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like ours and are not: most often a typing error."""
    known = {row.variable for row in describe()}
    known |= {row.variable + "_FILE" for row in describe() if row.secret} | {"TALLYHOOK_CACHE_DIR"}
    return sorted(name for name in environ if name.startswith("TALLYHOOK_") and name not in known)


def _explain(component: type[Component], error: Any) -> str:
    location = str(error["loc"][0]) if error["loc"] else ""
    field_name = next(
        (name for name in component.model_fields if location in (name, variable_of(component, name))),
        location,
    )
    field = component.model_fields.get(field_name)
    if field is None:
        return f"{location}: {error['msg']}"
    variable = variable_of(component, field_name)
    secret = field.annotation is SecretStr or SecretStr in get_args(field.annotation)
    value = "..." if secret else error.get("input", "")
    bounds, unit = _bounds_of(field), _unit_of(field)
    if not bounds:
        return f"{variable}={value}: {error['msg']}"
    return f"{variable}={value}: must be {bounds}" + (f" ({unit})" if unit else "")


def _bounds_of(field: FieldInfo) -> str:
    low = next((m.ge for m in field.metadata if getattr(m, "ge", None) is not None), None)
    high = next((m.le for m in field.metadata if getattr(m, "le", None) is not None), None)
    if low is not None and high is not None:
        return f"{low}..{high}"
    pattern = next((m.pattern for m in field.metadata if getattr(m, "pattern", None)), None)
    if pattern is not None:
        return f"like {pattern}"
    choices = [
        str(choice)
        for part in (field.annotation, *get_args(field.annotation))
        for choice in (get_args(part) if getattr(part, "__origin__", None) is Literal else ())
    ]
    if choices:
        return " or ".join(dict.fromkeys(choices))
    return "true or false" if field.annotation is bool else ""


def _unit_of(field: FieldInfo) -> str:
    extra = field.json_schema_extra
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""
