"""Settings: environment variables `TALLYHOOK_...`, one class a component; secrets also from files (`..._FILE`).

Nothing below the command line reads the environment: it calls `load` once and hands the objects on.
"""

from tallyhook.settings.component import Component, variable_of
from tallyhook.settings.gaps import GapsSettings
from tallyhook.settings.gateway_api import GatewayApiSettings
from tallyhook.settings.gateway_sim import GatewaySimSettings
from tallyhook.settings.installation import (
    DatabaseSettings,
    Installation,
    KafkaSettings,
    LocalSettings,
    ProcessSettings,
)
from tallyhook.settings.loading import (
    COMPONENTS,
    OPTION_VARIABLES,
    SettingDescription,
    Settings,
    as_environment,
    describe,
    load,
    load_component,
    unknown_variables,
)
from tallyhook.settings.profiles import PROFILES, Profile
from tallyhook.settings.stages import IngressSettings, RelaySettings, SinkSettings, StreamSettings

__all__ = [
    "COMPONENTS",
    "OPTION_VARIABLES",
    "PROFILES",
    "Component",
    "DatabaseSettings",
    "GapsSettings",
    "GatewayApiSettings",
    "GatewaySimSettings",
    "IngressSettings",
    "Installation",
    "KafkaSettings",
    "LocalSettings",
    "ProcessSettings",
    "Profile",
    "RelaySettings",
    "SettingDescription",
    "Settings",
    "SinkSettings",
    "StreamSettings",
    "as_environment",
    "describe",
    "load",
    "load_component",
    "unknown_variables",
    "variable_of",
]
