"""Says in words what is allowed and what is wrong, from the constraints of the models alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from prx_engine.configuration.settings import CROSS_FIELD, Rule
from prx_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from prx_engine.configuration.locator import KeyPath

MAX_SHOWN: Final = 60
"""Characters of a value that a message shows."""

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_TYPE_NAMES: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_MAX_DECIMAL_BITS: Final = 1024
"""Python refuses to write much longer integers in decimal; nobody would read them either."""


class Problem(NamedTuple):
    """One thing that is wrong with the configuration."""

    path: KeyPath
    """The key, from the root that the caller chose; empty if the whole file is meant."""

    reason: str
    """What was found and what is allowed, on one line."""

    file: str | None = None
    line: int | None = None
    """Line in the file, counted from 1; None if nothing in the file can be pointed at."""

    def __str__(self) -> str:
        place = None if self.file is None else printable(self.file)
        if place is not None and self.line is not None:
            place += f":{self.line}"
        return ": ".join(part for part in (place, dotted(self.path), self.reason) if part)


class InvalidConfiguration(ConfigurationError):
    """Says the first problem; `problems` has them all."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{others}")


def problems_in(
    error: ValidationError, model: type[BaseModel], data: Mapping[str, Any], root: KeyPath = ()
) -> list[Problem]:
    """The problems that validating data by model has found, one for each key.

    The paths start with root, the place of the data in its document.
    """
    problems: dict[KeyPath, Problem] = {}
    for detail in error.errors(include_url=False, include_input=False):
        path, reason = _problem(detail["loc"], detail["type"], detail.get("ctx", {}), model, data)
        problems.setdefault(path, Problem((*root, *path), reason))
    return list(problems.values())


def _problem(
    loc: KeyPath, kind: str, context: Mapping[str, Any], model: type[BaseModel], data: Mapping[str, Any]
) -> tuple[KeyPath, str]:
    if kind == CROSS_FIELD:
        blamed = tuple(name for name in context["key"].split(".") if name)
        return (*loc, *blamed), f"found {context['found']}; allowed: {context['allowed']}"
    if kind == "extra_forbidden":
        return loc, no_such_key(str(loc[-1]), table_at(model, loc[:-1]))
    path, allowed = _setting(model, loc)
    return path, f"found {_found(data, path)}; allowed: {allowed}"


def no_such_key(name: str, table: type[BaseModel] | None) -> str:
    """Reason for a key that the table does not have, or that stands where no table is."""
    if table is None:
        return "no such key"
    import difflib  # only a mistake needs it; this module is on the way to everything

    nearest = difflib.get_close_matches(name, table.model_fields, n=1)
    if nearest:
        return f"no such key; did you mean {nearest[0]}?"
    return f"no such key; allowed: {', '.join(table.model_fields)}"


def settings_of(
    model: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """All keys of the tables below model with their fields, in the order of the models."""
    for name, field in model.model_fields.items():
        table = _as_model(field.annotation)
        if table is None:
            yield (*path, name), field
        else:
            yield from settings_of(table, (*path, name))


def allowed_values(field: FieldInfo) -> str:
    """Type, range and rules of a setting in words: "a whole number from 1 to 87600"."""
    return ", ".join([_type_and_range(field.annotation, field.metadata), *_rules(field.metadata)])


def _rules(metadata: list[Any]) -> list[str]:
    return [item.text for item in metadata if isinstance(item, Rule)]


def _type_and_range(annotation: Any, metadata: list[Any]) -> str:
    if get_origin(annotation) is Annotated:
        return _type_and_range(*_unfolded(annotation))
    if get_origin(annotation) is Literal:
        return " or ".join(json.dumps(value) for value in get_args(annotation))
    if get_origin(annotation) is tuple:
        return _sequence(get_args(annotation))
    if NoneType in get_args(annotation):
        (stated,) = (option for option in get_args(annotation) if option is not NoneType)
        return _type_and_range(stated, metadata)
    table = _as_model(annotation)
    if table is not None:
        return f"a table of {', '.join(table.model_fields)}"
    return f"{_TYPE_NAMES[annotation]}{_range(metadata)}"


def _unfolded(annotation: Any) -> tuple[Any, list[Any]]:
    base, *metadata = get_args(annotation)
    unfolded: list[Any] = []
    for item in metadata:
        unfolded += item.metadata if isinstance(item, FieldInfo) else [item]
    return base, unfolded


def _sequence(elements: tuple[Any, ...]) -> str:
    if elements[-1] is Ellipsis:
        return f"a list, each {_type_and_range(elements[0], [])}"
    return f"a list of {len(elements)}, each {_type_and_range(elements[0], [])}"


def _range(metadata: list[Any]) -> str:
    least = _bound(metadata, "ge")
    above = _bound(metadata, "gt")
    most = _bound(metadata, "le")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f", at least {least}"
    if above is not None:
        return f" above {above}"
    text = ", not empty" if _bound(metadata, "min_length") is not None else ""
    return f"{text}, without control characters" if _bound(metadata, "pattern") is not None else text


def _bound(metadata: list[Any], name: str) -> Any:
    return next((value for item in metadata if (value := getattr(item, name, None)) is not None), None)


def _as_model(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def table_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The table at a path below model, which may lead through lists of tables; None if there is none."""
    table: type[BaseModel] | None = model
    element: type[BaseModel] | None = None
    for step in path:
        if isinstance(step, int):
            table, element = element, None
        elif table is None or step not in table.model_fields:
            return None
        else:
            annotation = table.model_fields[step].annotation
            table, element = _as_model(annotation), _element(annotation)
    return table


def _element(annotation: Any) -> type[BaseModel] | None:
    """The table that each element of a list is."""
    arguments = get_args(annotation)
    return _as_model(arguments[0]) if arguments else None


def _setting(model: type[BaseModel], loc: KeyPath) -> tuple[KeyPath, str]:
    """Path and allowed values of the setting that a location is, or is inside the value of."""
    field = model.model_fields[str(loc[0])]
    inner, steps = _as_model(field.annotation), 1
    if inner is None:
        inner, steps = _element(field.annotation), 2  # an index stands behind the name
    if inner is None or len(loc) == 1:
        return loc[:1], allowed_values(field)
    if len(loc) == steps:
        return loc, _type_and_range(inner, [])
    path, allowed = _setting(inner, loc[steps:])
    return (*loc[:steps], *path), allowed


def _found(data: Any, path: KeyPath) -> str:
    for step in path:
        if isinstance(data, Mapping) and step not in data:
            return "nothing"
        data = data[step]
    return shown(data)


def dotted(path: KeyPath) -> str:
    """A path as people write it, quoted where TOML needs it: `a."b c"[0].d`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{_key(step)}" if text else _key(step)
    return text


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _shortened(printable(json.dumps(name, ensure_ascii=False)))


def shown(value: object) -> str:
    """A value as TOML would write it, short and on one line."""
    return _shortened(printable(_written(value)))


def _written(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value[: MAX_SHOWN + 1], ensure_ascii=False)
        case int() if value.bit_length() > _MAX_DECIMAL_BITS:
            return hex(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            entries = (f"{_key(str(name))} = {_written(item)}" for name, item in value.items())
            return f"{{{', '.join(entries)}}}"
        case list() | tuple():
            return f"[{', '.join(map(_written, value))}]"
    return str(value)


def printable(text: str) -> str:
    """The text with everything escaped that would move the cursor, break the line or hide."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
