"""The gateway's REST API, which `backfill` and `reconcile` ask."""

from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from tallyhook.settings.component import Component, unit

WANTED: Final = "must be http:// or https:// with a host, without user, query or fragment"


class GatewayApiSettings(Component):
    """Where the gateway's API is, and how hard it may be asked."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_GATEWAY_API_")

    url: str | None = Field(None, description="address of the gateway's API, without the path `/v1/pay/...`")
    key: SecretStr | None = Field(None, description="key of the merchant's account at the gateway's API")
    timeout_seconds: float = Field(
        10.0, ge=0.1, le=120, description="one request, the whole answer included", json_schema_extra=unit("seconds")
    )
    attempts: int = Field(
        6,
        ge=1,
        le=100,
        description="tries of one request after 429, 5xx, time-outs and broken connections",
        json_schema_extra=unit("attempts"),
    )
    retry_max_seconds: float = Field(
        30.0,
        ge=0.01,
        le=3600,
        description="longest wait between two tries; a longer Retry-After ends the command",
        json_schema_extra=unit("seconds"),
    )
    requests_per_second: float = Field(
        10.0, ge=0.01, le=1000, description="most requests", json_schema_extra=unit("requests a second")
    )

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            sound = False
            parts = urlsplit("")
        if not sound or parts.username is not None or parts.query or parts.fragment or not url.isascii():
            raise PydanticCustomError("gateway_address", WANTED)
        return url.rstrip("/")
