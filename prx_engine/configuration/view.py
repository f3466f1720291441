"""The settings in effect, one line each, with where they come from and what else they could be."""

from __future__ import annotations

from typing import Any, NamedTuple

from prx_engine.configuration.explain import allowed_values, settings_of
from prx_engine.configuration.file import ROOT, ConfigurationFile
from prx_engine.configuration.settings import SelfEvolution, Settings


class SettingLine(NamedTuple):
    """One setting in effect."""

    key: str
    """Full dotted key."""

    value: Any
    """Value in effect, in the types of JSON."""

    default: Any
    """Value that holds if nobody states one, in the types of JSON."""

    from_file: bool
    """Whether the file states the key, be it with the default."""

    allowed: str
    """Type and range in words."""


def describe(settings: SelfEvolution, file: ConfigurationFile) -> list[SettingLine]:
    """All settings in the order of the documentation."""
    stated = file.current()
    values, defaults = settings.model_dump(mode="json"), SelfEvolution().model_dump(mode="json")
    return [
        SettingLine(
            key=".".join((ROOT, *path)),
            value=_value(values, path),
            default=_value(defaults, path),
            from_file=_is_stated(stated, path),
            allowed=allowed_values(field),
        )
        for path, field in settings_of(SelfEvolution)
    ]


def _value(data: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        data = data[name]
    return data


def _is_stated(table: Settings, path: tuple[str, ...]) -> bool:
    name, *rest = path
    return name in table.model_fields_set and (not rest or _is_stated(getattr(table, name), tuple(rest)))
