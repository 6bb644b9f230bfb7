"""The base of every settings class, and what can be said of a single setting."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import EnvSettingsSource

from tallyhook.errors import SettingsError

Port = Annotated[int, Field(ge=0, le=65535, json_schema_extra={"unit": "TCP port, 0 takes a free one"})]


def unit(name: str) -> dict[str, Any]:
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
        except (OSError, ValueError) as failure:
            # What is no absolute path may be the secret itself, given to the wrong one of the two variables.
            shown = path if Path(path).is_absolute() else "..."
            reason = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8 text"
            raise SettingsError(
                f"{name}_FILE={shown}: cannot be read ({reason}); check the path and its mode"
            ) from None

    def __call__(self) -> dict[str, Any]:
        found = {name: self.get_field_value(field, name)[0] for name, field in self.settings_cls.model_fields.items()}
        return {name: value for name, value in found.items() if value is not None}


class Component(BaseSettings):
    """Base of the settings classes: frozen, unknown variables are ignored here and reported by `unknown_variables`."""

    model_config = SettingsConfigDict(
        env_prefix="TALLYHOOK_", frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True
    )

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


def is_secret(field: FieldInfo) -> bool:
    """Whether the field's value must never be shown."""
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


def variable_of(component: type[Component], field_name: str) -> str:
    """The environment variable of a field."""
    alias = component.model_fields[field_name].validation_alias
    return alias if isinstance(alias, str) else f"{component.model_config.get('env_prefix', '')}{field_name}".upper()


def bounds_of(field: FieldInfo) -> str:
    """Which values are allowed, in words; empty when any is."""
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


def unit_of(field: FieldInfo) -> str:
    """The field's unit; empty when it has none."""
    extra = field.json_schema_extra
    return str(extra.get("unit", "")) if isinstance(extra, dict) else ""
