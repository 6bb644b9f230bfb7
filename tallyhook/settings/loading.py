"""Reads and checks the settings, and describes each for `tallyhook settings` and the documents."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, TypeVar

from pydantic import SecretStr, ValidationError

from tallyhook.errors import SettingsError
from tallyhook.settings.component import Component, bounds_of, is_secret, unit_of, variable_of
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
from tallyhook.settings.profiles import PROFILES, Profile
from tallyhook.settings.stages import IngressSettings, RelaySettings, SinkSettings, StreamSettings

C = TypeVar("C", bound=Component)


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
    local: LocalSettings = dataclass_field(default_factory=LocalSettings)
    gaps: GapsSettings = dataclass_field(default_factory=GapsSettings)
    gateway_api: GatewayApiSettings = dataclass_field(default_factory=GatewayApiSettings)
    gateway_sim: GatewaySimSettings = dataclass_field(default_factory=GatewaySimSettings)

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
    "local": LocalSettings,
    "gaps": GapsSettings,
    "gateway_api": GatewayApiSettings,
    "gateway_sim": GatewaySimSettings,
}


OPTION_VARIABLES = frozenset({"TALLYHOOK_SIGNING_KEY"})
"""Variables that stand for an option of the command line; a test holds them to the options."""


def load() -> Settings:
    """Reads and checks every setting; raises SettingsError that names the variable, the value and the bounds."""
    values: dict[str, Any] = {name: load_component(component) for name, component in COMPONENTS.items()}
    return Settings(**values)


def load_component(component: type[C], **given: Any) -> C:
    """Reads one component's settings from the environment; what is given wins. Raises SettingsError like `load`."""
    try:
        return component(**given)
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
            yield SettingDescription(
                component=name,
                variable=variable_of(component, field_name),
                meaning=field.description or "",
                unit=unit_of(field),
                default="unset" if field.default is None else _as_variable(field.default),
                bounds=bounds_of(field),
                secret=is_secret(field),
            )


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like ours and are not: most often a typing error."""
    known = {row.variable for row in describe()}
    known |= {row.variable + "_FILE" for row in describe() if row.secret}
    known |= OPTION_VARIABLES
    return sorted(name for name in environ if name.startswith("TALLYHOOK_") and name not in known)


def as_environment(settings: Settings) -> dict[str, str]:
    """The variables that make another process read the same settings; what stands at its default is left out."""
    variables = {}
    for name, component in COMPONENTS.items():
        values = getattr(settings, name)
        for field_name, field in component.model_fields.items():
            value = getattr(values, field_name)
            if value is None or value == field.default:
                continue
            if isinstance(value, SecretStr):
                value = value.get_secret_value()
            variables[variable_of(component, field_name)] = _as_variable(value)
    return variables


def _as_variable(value: object) -> str:
    """A value as one writes it in the environment."""
    return str(value).lower() if isinstance(value, bool) else str(value)


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
    value = "..." if is_secret(field) else error.get("input", "")
    bounds, unit = bounds_of(field), unit_of(field)
    if not bounds:
        return f"{variable}={value}: {error['msg']}"
    return f"{variable}={value}: must be {bounds}" + (f" ({unit})" if unit else "")
