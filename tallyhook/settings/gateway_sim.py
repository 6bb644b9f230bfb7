"""The simulated gateway."""

from typing import Final

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from tallyhook.settings.component import Component, Port, unit

DEFAULT_RETRY_SECONDS: Final = "0,10,70,370,1800,7200,21600,50400,100800,165600,248400,331200"
"""The gateway states the third, the fourth, the count and about 92 hours for the last; the others are assumed."""


class GatewaySimSettings(Component):
    """What `tallyhook gateway` and `up --gateway` play; options of the command win over these."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_GATEWAY_SIM_")

    host: str = Field("127.0.0.1", description="address on which its API listens")
    port: Port = Field(8070, description="port of its API")
    api_key: SecretStr | None = Field(None, description="key of its API; unset: one is made")
    seed: int = Field(
        7, ge=0, le=2**63 - 1, description="the same seed makes the same world", json_schema_extra=unit("number")
    )
    objects: int = Field(
        200, ge=1, le=50_000, description="deposits and withdrawals of the world", json_schema_extra=unit("objects")
    )
    span_hours: float = Field(
        24.0,
        ge=1,
        le=744,
        description="time over which its objects begin their lives",
        json_schema_extra=unit("virtual hours"),
    )
    time_factor: float = Field(
        2000.0,
        ge=1,
        le=1_000_000,
        description="how fast its time runs",
        json_schema_extra=unit("virtual seconds a wall second"),
    )
    reorder: float = Field(
        0.2,
        ge=0,
        le=1,
        description="events that come after a later one of the same object",
        json_schema_extra=unit("share"),
    )
    duplicates: float = Field(
        0.1,
        ge=0,
        le=1,
        description="events that are sent again though they were accepted",
        json_schema_extra=unit("share"),
    )
    withhold: int = Field(
        0,
        ge=0,
        le=10_000,
        description="events that are never delivered; only its API lists them",
        json_schema_extra=unit("events"),
    )
    concurrency: int = Field(16, ge=1, le=1000, description="most attempts at once", json_schema_extra=unit("attempts"))
    retry_seconds: str = Field(
        DEFAULT_RETRY_SECONDS,
        max_length=1000,
        pattern=r"^0(,[0-9]{1,7}){0,99}$",
        description="attempts, in virtual seconds after the first; the third, the fourth, the count and the last are "
        "the gateway's, the others are assumed",
    )
    rotate_after_hours: float | None = Field(
        None,
        ge=0,
        le=10_000,
        description="a second key signs from then on; unset: never",
        json_schema_extra=unit("virtual hours"),
    )
    api_fault_share: float = Field(
        0.0, ge=0, le=1, description="its API's answers that are 429 or 500", json_schema_extra=unit("share")
    )
