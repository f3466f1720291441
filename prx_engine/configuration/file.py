"""The configuration file: where it is, what it says, and changing one key of it.

The file belongs to the agent. Only the tables of the settings are read strictly; every other table and key,
below `[self_evolution]` too, is somebody else's and is neither judged nor touched.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from prx_engine.configuration.explain import (
    InvalidConfiguration,
    Problem,
    no_such_key,
    printable,
    problems_in,
    shown,
    table_at,
)
from prx_engine.configuration.settings import SelfEvolution
from prx_engine.errors import ConfigurationError

ROOT: Final = "self_evolution"
"""Name of the table that holds ours."""

_SETTLED_NS: Final = 2_000_000_000
"""Age of a modification, in nanoseconds, from which a second one cannot have the same time stamp.

Two seconds is the coarsest clock of the file systems in use.
"""

_SYNTAX_ERROR: Final = re.compile(
    r"(?P<reason>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)", re.DOTALL
)
_BYTE_ORDER_MARK: Final = "\ufeff"


def config_path(env: Mapping[str, str]) -> Path:
    """The configuration file that the environment names; it need not exist.

    `$PRX_CONFIG`, else config.toml in `$OPENPRX_CONFIG_DIR`, else in `~/.openprx`. An empty variable counts
    as unset, and a leading `~` is the home folder, since service managers do not expand it.
    """
    stated = env.get("PRX_CONFIG")
    if stated:
        return _expanded(stated, env)
    return _expanded(env.get("OPENPRX_CONFIG_DIR") or "~/.openprx", env) / "config.toml"


def _expanded(path: str, env: Mapping[str, str]) -> Path:
    home = env.get("HOME")
    if home and (path == "~" or path.startswith("~/")):
        return Path(home + path[1:])
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigurationError(f"{printable(path)}: there is no home folder; set PRX_CONFIG") from None


class _Version(NamedTuple):
    """What tells two versions of a file apart without reading them."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> _Version:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class _Reading(NamedTuple):
    """What a file said at one moment."""

    version: _Version | None
    """None if there was no file."""

    settled: bool
    """Whether an equal version later means an equal content."""

    content: bytes


class _Outcome(NamedTuple):
    """A reading and what came of it: settings or problems."""

    reading: _Reading
    settings: SelfEvolution | None
    problems: tuple[Problem, ...] = ()


class ConfigurationFile:
    """One configuration file; a missing one says nothing, so that every setting has its default."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._last: _Outcome | None = None

    def load(self) -> SelfEvolution:
        """Reads the file now.

        Raises InvalidConfiguration with everything that is wrong in our tables or with the file.
        """
        return self._settings(self._decoded(self._read().content))

    def current(self) -> SelfEvolution:
        """The settings as the file has them now, reading it only if it has changed; for any thread.

        Raises what load raises, again on every call until the file changes.
        """
        with self._lock:
            if self._last is None or not self._is_fresh(self._last.reading):
                self._last = self._outcome()
            outcome = self._last
        if outcome.settings is None:
            raise InvalidConfiguration(outcome.problems)
        return outcome.settings

    def set(self, dotted_key: str, value: object) -> None:
        """Writes one key, or several keys of one table if value is a mapping, and nothing else of the file.

        The key may leave out `self_evolution.`. What the file would say then is validated first: if it is
        not allowed the file stays as it is. The file and its folder are made if missing.
        """
        from prx_engine.configuration.editing import CannotEdit, with_value  # reading does not need it

        path = _path_of(dotted_key)
        with self._lock:
            reading = self._read()
            text = self._decoded(reading.content)
            changes = list(_leaves(path, value))
            self._check(text, changes)
            try:
                for leaf, stated in changes:
                    text = with_value(text, leaf, stated)
            except CannotEdit:
                raise self._error("is written in a way that has to be edited by hand", path) from None
            mark = _BYTE_ORDER_MARK if reading.content.startswith(_BYTE_ORDER_MARK.encode()) else ""
            self._write(f"{mark}{text}".encode(), reading)

    def _outcome(self) -> _Outcome:
        reading = _Reading(None, False, b"")
        try:
            reading = self._read()
            return _Outcome(reading, self._settings(self._decoded(reading.content)))
        except InvalidConfiguration as error:
            return _Outcome(reading, None, error.problems)

    def _is_fresh(self, reading: _Reading) -> bool:
        try:
            return reading.settled and self._version() == reading.version
        except OSError:
            return False  # reading it again says what is wrong

    def _version(self) -> _Version | None:
        try:
            return _Version.of(os.stat(self.path))
        except FileNotFoundError:
            return None

    def _read(self) -> _Reading:
        try:
            with open(self.path, "rb") as file:
                version = _Version.of(os.fstat(file.fileno()))
                settled = time.time_ns() - max(version.modified_ns, version.changed_ns) > _SETTLED_NS
                return _Reading(version, settled, file.read())
        except FileNotFoundError:
            return _Reading(None, True, b"")
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}") from None

    def _decoded(self, content: bytes) -> str:
        try:
            return content.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise self._error(f"not UTF-8: byte 0x{content[error.start]:02x}", line=line) from None

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except ValueError as error:  # of syntax, or of an integer that is too long for Python
            reason, line = _syntax_error(str(error), text)
            raise self._error(reason, line=line) from None
        except RecursionError:
            raise self._error("nested too deeply") from None

    def _settings(self, text: str) -> SelfEvolution:
        settings = _validated(self._parsed(text))
        if isinstance(settings, SelfEvolution):
            return settings
        raise InvalidConfiguration(self._located(settings, text))

    def _check(self, text: str, changes: list[tuple[tuple[str, ...], object]]) -> None:
        """Refuses changes after which the file would say something that is not allowed."""
        data = self._parsed(text)
        for path, value in changes:
            _assign(data, path, value)
        problems = _validated(data)
        if isinstance(problems, SelfEvolution):
            return
        paths = [path for path, _ in changes]
        given = [problem for problem in problems if any(problem.path[: len(path)] == path for path in paths)]
        in_file = [problem for problem in problems if problem not in given]
        raise InvalidConfiguration((*given, *self._located(in_file, text)))

    def _located(self, problems: list[Problem], text: str) -> tuple[Problem, ...]:
        """The problems with their lines, in the order of the file."""
        from prx_engine.configuration.locator import outline  # only a mistake needs it

        found = outline(text)
        file = str(self.path)
        located = [problem._replace(file=file, line=found.line_of(problem.path)) for problem in problems]
        return tuple(sorted(located, key=lambda problem: problem.line or 0))

    def _error(
        self, reason: str, path: tuple[str, ...] = (), line: int | None = None
    ) -> InvalidConfiguration:
        problem = Problem(path, reason, str(self.path), line)
        return InvalidConfiguration((problem,))

    def _write(self, content: bytes, reading: _Reading) -> None:
        if content == reading.content:
            return
        target = Path(os.path.realpath(self.path))  # a link to the file stays a link
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = _written_beside(target, content)
            try:
                if self._version() != reading.version:
                    raise self._error("was changed by somebody else just now; nothing was written")
                os.replace(temporary, target)
            except BaseException:
                temporary.unlink()
                raise
            _sync_folder(target.parent)
        except OSError as error:
            raise self._error(f"cannot be written: {error.strerror}") from None


def _validated(data: Mapping[str, Any]) -> SelfEvolution | list[Problem]:
    table = data.get(ROOT, {})
    if not isinstance(table, dict):
        return [Problem((ROOT,), f"found {shown(table)}; allowed: a table")]
    ours = {key: table[key] for key in SelfEvolution.model_fields if key in table}
    try:
        return SelfEvolution.model_validate(ours)
    except ValidationError as error:
        return problems_in(error, SelfEvolution, ours, (ROOT,))


def _syntax_error(message: str, text: str) -> tuple[str, int | None]:
    """Reason and line of a message of the parser, which has no other place for the line."""
    match = _SYNTAX_ERROR.fullmatch(message)
    if match is None:
        return printable(message), None
    line = int(match["line"]) if match["line"] else text.rstrip("\n").count("\n") + 1
    return printable(match["reason"]), line


def _path_of(dotted_key: str) -> tuple[str, ...]:
    names = tuple(dotted_key.removeprefix(f"{ROOT}.").split("."))
    for depth, name in enumerate(names):
        table = table_at(SelfEvolution, names[:depth])
        if table is None or name not in table.model_fields:
            raise InvalidConfiguration((Problem((ROOT, *names[: depth + 1]), no_such_key(name, table)),))
    return (ROOT, *names)


def _leaves(path: tuple[str, ...], value: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """The keys that setting path to value writes: of a mapping each by itself, so that the others stay."""
    if isinstance(value, Mapping) and table_at(SelfEvolution, path[1:]) is not None:
        for name, item in value.items():
            yield from _leaves((*path, name), item)
    else:
        yield path, value


def _assign(data: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    *parents, name = path
    for parent in parents:
        child = data.setdefault(parent, {})
        if not isinstance(child, dict):
            return  # validation says that this should be a table
        data = child
    data[name] = value


def _written_beside(target: Path, content: bytes) -> Path:
    """A temporary file with the content, safely on the disk, and with the owner and permissions of target."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            with suppress(FileNotFoundError):  # a new file stays private to its owner
                _copy_access(target, temporary)
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink()
        raise
    return temporary


def _copy_access(source: Path, target: Path) -> None:
    status = os.stat(source)
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only root may give files away, and only root needs to
            os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, stat.S_IMODE(status.st_mode))


def _sync_folder(folder: Path) -> None:
    """Makes the renaming itself durable, where folders can be opened for that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
