"""Proposals of experiments: from the options of the command line, or from a TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from prx_engine.text import nearest, shown
from prx_tui.cli.reporting import Refused, binary_stdin

_KEYS: Final = (
    "layer",
    "hypothesis",
    "decision_id",
    "control",
    "treatment",
    "duration_hours",
    "traffic_split",
    "min_sample_size",
)
_REQUIRED: Final = ("layer", "hypothesis", "treatment")
_VARIANT_KEYS: Final = ("description", "config", "files")


def from_file(name: str) -> dict[str, Any]:
    """Return what ``Engine.create_experiment`` takes, from a TOML or JSON file or from stdin for ``-``.

    Raises:
        Refused: if the file cannot be read, is neither, or says something that a proposal cannot.
    """
    where = "stdin" if name == "-" else name
    try:
        text = binary_stdin().read() if name == "-" else Path(name).read_bytes()
        proposal = _parsed(text.decode("utf-8-sig"))
    except OSError as error:
        raise Refused(f"{where}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"{where}: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Refused(f"{where}: not JSON: {error}") from None
    except ValueError as error:
        raise Refused(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise Refused(f"{where}: nested too deeply") from None
    try:
        return _checked(proposal)
    except _Wrong as wrong:
        raise Refused(f"{where}: {wrong}") from None


def _parsed(text: str) -> dict[str, Any]:
    # No TOML document begins with a brace, and every JSON object does.
    if text.lstrip().startswith("{"):
        proposal: dict[str, Any] = json.loads(text)
        return proposal
    return tomllib.loads(text)


class _Wrong(Exception):
    """What is wrong with a proposal, in one line that begins with the key."""


def _checked(proposal: dict[str, Any]) -> dict[str, Any]:
    _refuse_unknown(proposal, _KEYS)
    for name in _REQUIRED:
        if name not in proposal:
            raise _Wrong(f"{name}: missing")
    for name in ("layer", "hypothesis", "decision_id"):
        if not isinstance(proposal.get(name, ""), str):
            raise _Wrong(f"{name}: found {shown(proposal[name])}; allowed: a text")
    for name in ("control", "treatment"):
        if name in proposal:
            proposal[name] = _variant(name, proposal[name])
    return proposal


def _variant(name: str, value: object) -> object:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise _Wrong(
            f"{name}: found {shown(value)}; allowed: a text, or a table of {', '.join(_VARIANT_KEYS)}"
        )
    _refuse_unknown(value, _VARIANT_KEYS, f"{name}.")
    for table in ("config", "files"):
        if not isinstance(value.get(table, {}), dict):
            raise _Wrong(f"{name}.{table}: found {shown(value[table])}; allowed: a table")
    config = dict(_leaves(value.get("config", {})))
    for key, setting in config.items():
        if not _is_plain(setting):
            raise _Wrong(
                f"{name}.config.{shown(key)}: found {shown(str(setting))};"
                " allowed: a text, a finite number, true or false, or a list of these"
            )
    return value | {"config": config}


def _refuse_unknown(table: Mapping[str, Any], known: Sequence[str], prefix: str = "") -> None:
    for name in table:
        if name not in known:
            meant = nearest(name, known)
            hint = f"did you mean {meant}?" if meant else f"allowed: {', '.join(known)}"
            raise _Wrong(f"{prefix}{shown(name)}: no such key; {hint}")


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted keys that nested tables stand for: TOML reads ``a.b = 1`` as a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, float):
        return value - value == 0  # neither infinite nor NaN
    return isinstance(value, str | int)


def toml_value(text: str) -> Any:
    """Return the TOML value that a text is, or the text itself if it is none."""
    try:
        read = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return read["value"] if len(read) == 1 else text


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of a treatment from KEY=VALUE pairs.

    Raises:
        click.BadParameter: if a pair has no key, a key comes twice, or a value is nothing to be set.
    """
    settings: dict[str, Any] = {}
    for key, text in _split(pairs, "KEY=VALUE"):
        if key in settings:
            raise click.BadParameter(f"{shown(key)} is set twice")
        value = toml_value(text)
        if not _is_plain(value) or (value == text and text.strip()[:1] in ("[", "{", "'", '"')):
            raise click.BadParameter(
                f"{shown(key)}: found {shown(text)}; allowed: a text, number, truth value, list or table of"
                f" TOML; a text that looks like something else stands in quotes: {shown(key)}='\"…\"'"
            )
        settings[key] = value
    return settings


def with_difference(settings: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return settings together with what one TOML file says that another does not.

    Raises:
        Refused: if a file cannot be read as TOML, or they do not differ.
        click.BadParameter: if a key of the difference is set too.
    """
    from prx_engine import Engine

    difference = Engine.changes_between(_text_of(old), _text_of(new))
    if not difference:
        raise Refused(f"{new} sets nothing that {old} does not")
    twice = next((key for key in difference if key in settings), None)
    if twice is not None:
        raise click.BadParameter(f"{shown(twice)} is set twice")
    return settings | difference


def files_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return the files of a treatment from PATH=FILE pairs.

    Raises:
        click.BadParameter: if a pair has no path, or a path comes twice.
        Refused: if a file cannot be read as text.
    """
    files: dict[str, str] = {}
    for path, name in _split(pairs, "PATH=FILE"):
        if path in files:
            raise click.BadParameter(f"{shown(path)} is put twice")
        files[path] = _text_of(name)
    return files


def _text_of(name: str) -> str:
    try:
        return Path(name).read_bytes().decode("utf-8")
    except OSError as error:
        raise Refused(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"{name}: not a text in UTF-8") from None


def _split(pairs: Sequence[str], form: str) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"found {shown(pair)}; write it as {form}")
        yield name.strip(), value
