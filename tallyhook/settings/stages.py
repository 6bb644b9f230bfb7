"""One settings class a stage."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from schemas import door
from tallyhook.settings.component import Component, Port, unit


class IngressSettings(Component):
    """The door."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_INGRESS_")

    host: str = Field("127.0.0.1", description="address to listen on")
    port: Port = Field(8080, description="port of the webhooks and of the health pages")
    public_keys: str | None = Field(
        None, description="gateway's public keys, `whpk_...`, with commas; the key ids are their fingerprints"
    )
    public_keys_file: Path | None = Field(
        None,
        description="file of public keys, one a line, `[id=]whpk_...`, or TOML tables `[[key]]`; read again when it "
        "changes",
    )
    endpoints_file: Path | None = Field(
        None,
        description="TOML file of endpoints, `[[endpoint]]`, beside the one that these variables describe; "
        "read at the start",
    )
    merchant_id: str | None = Field(
        None,
        max_length=512,
        description="account.merchant_id this endpoint takes; unset: any",
    )
    tolerance_seconds: int = Field(
        door.TOLERANCE_SECONDS,
        ge=1,
        le=400_000,
        description="allowed age of webhook-timestamp, both ways",
        json_schema_extra=unit("seconds"),
    )
    max_body_bytes: int = Field(
        door.MAX_BODY_BYTES, ge=1024, le=8_388_608, description="largest body", json_schema_extra=unit("bytes")
    )
    max_headers: int = Field(
        door.MAX_HEADERS, ge=8, le=1000, description="most header lines", json_schema_extra=unit("headers")
    )
    max_header_bytes: int = Field(
        door.MAX_HEADER_BYTES,
        ge=1024,
        le=262_144,
        description="all headers together",
        json_schema_extra=unit("bytes"),
    )
    max_signatures: int = Field(
        door.MAX_SIGNATURES,
        ge=1,
        le=256,
        description="most signatures of one request",
        json_schema_extra=unit("signatures"),
    )
    body_timeout_seconds: float = Field(
        door.BODY_TIMEOUT_SECONDS, ge=0.1, le=120, description="reading one body", json_schema_extra=unit("seconds")
    )
    delivery_timeout_seconds: float = Field(
        door.DELIVERY_TIMEOUT_SECONDS,
        ge=0.5,
        le=60,
        description="confirmation by Kafka, below the sender's time-out",
        json_schema_extra=unit("seconds"),
    )
    max_in_flight: int = Field(
        door.MAX_IN_FLIGHT, ge=1, le=100_000, description="requests at once", json_schema_extra=unit("requests")
    )
    max_held_bytes: int = Field(
        door.MAX_HELD_BYTES,
        ge=16_777_216,
        le=17_179_869_184,
        description="bodies that are held at once, all requests together; the one longest on its way gives way",
        json_schema_extra=unit("bytes"),
    )
    key_reload_seconds: float = Field(
        5.0, ge=0.1, le=300, description="look for changed keys", json_schema_extra=unit("seconds")
    )
    max_id_bytes: int = Field(
        door.MAX_ID_BYTES, ge=16, le=4096, description="longest id", json_schema_extra=unit("bytes")
    )
    source: str = Field("/gateway", max_length=512, description="ce_source of its events (a URI reference)")
    shutdown_seconds: float = Field(
        20.0, ge=1, le=300, description="drain on SIGTERM", json_schema_extra=unit("seconds")
    )
    announce_seconds: float = Field(
        1.0,
        ge=0,
        le=60,
        description="on SIGTERM /readyz says 503 this long before the port closes, within the drain",
        json_schema_extra=unit("seconds"),
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
        json_schema_extra=unit("events"),
    )
    store: Literal["memory", "rocksdb"] = Field("memory", description="where the version table lives between batches")
    data_dir: Path = Field(Path(".tallyhook/streams"), description="folder of the RocksDB store")
    object_retention_days: int = Field(
        40,
        ge=31,
        le=3650,
        description="an object's versions are forgotten so long after its last delivery",
        json_schema_extra=unit("days"),
    )
    replication: int = Field(
        1,
        ge=1,
        le=9,
        description="replication factor of the changelog topic",
        json_schema_extra=unit("replicas"),
    )
    stall_seconds: float = Field(
        30.0,
        ge=5,
        le=600,
        description="no progress though work waits ends the process",
        json_schema_extra=unit("seconds"),
    )
    session_timeout_seconds: float = Field(
        10.0,
        ge=1,
        le=300,
        description="broker's patience with a silent worker",
        json_schema_extra=unit("seconds"),
    )
    delivery_timeout_seconds: float = Field(
        120.0,
        ge=5,
        le=900,
        description="confirmation by Kafka before the process ends",
        json_schema_extra=unit("seconds"),
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
        json_schema_extra=unit("rows"),
    )
    batch_wait_seconds: float = Field(
        0.05, ge=0.001, le=5, description="longest wait for a full batch", json_schema_extra=unit("seconds")
    )
    parked_check_seconds: float = Field(
        0.5,
        ge=0.05,
        le=60,
        description="look for parked events that can go on",
        json_schema_extra=unit("seconds"),
    )
    claim_wait_seconds: float = Field(
        10.0,
        ge=0.5,
        le=300,
        description="wait for a frozen owner before its backend is ended",
        json_schema_extra=unit("seconds"),
    )
    quarantine_limit: int = Field(
        20,
        ge=1,
        le=1000,
        description="most quarantined of the last 1,000 events before the worker stops",
        json_schema_extra=unit("events"),
    )
    max_payload_bytes: int = Field(
        65_536, ge=1024, le=1_048_576, description="largest effect payload", json_schema_extra=unit("bytes")
    )


class RelaySettings(Component):
    """The relay from the outbox to the effect topics."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_RELAY_")

    health_port: Port = Field(9103, description="port of the health pages")
    shard: int = Field(0, ge=0, le=999, description="the shard this process works on", json_schema_extra=unit("shard"))
    shards: int = Field(1, ge=1, le=1000, description="shards, fixed at installation", json_schema_extra=unit("shards"))
    transaction_rows: int = Field(
        1000, ge=1, le=10_000, description="most rows a Kafka transaction", json_schema_extra=unit("rows")
    )
    poll_seconds: float = Field(
        0.25,
        ge=0.01,
        le=60,
        description="look for rows when no notification came",
        json_schema_extra=unit("seconds"),
    )
    lease_seconds: float = Field(
        10.0,
        ge=1,
        le=300,
        description="validity of the lease between renewals",
        json_schema_extra=unit("seconds"),
    )
    transaction_timeout_seconds: float = Field(
        60.0,
        ge=5,
        le=900,
        description="broker aborts an open transaction after",
        json_schema_extra=unit("seconds"),
    )
    outbox_retention_days: float = Field(
        14.0, ge=0.01, le=3650, description="sent rows are kept", json_schema_extra=unit("days")
    )
