"""When a number that is missing in the gateway's sequence is no longer normal."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from tallyhook.settings.component import Component, unit


class GapsSettings(Component):
    """How old a gap may become."""

    model_config = SettingsConfigDict(env_prefix="TALLYHOOK_GAPS_")

    normal_hours: float = Field(
        92.0,
        ge=0.0001,
        le=10_000,
        description="so long the gateway may still deliver what is missing; an older gap is late",
        json_schema_extra=unit("hours"),
    )
    lost_after_hours: float = Field(
        96.0,
        ge=0.0001,
        le=10_000,
        description="an open gap that is older is lost: `tallyhook gaps` ends with 1",
        json_schema_extra=unit("hours"),
    )
