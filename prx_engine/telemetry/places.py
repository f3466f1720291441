"""The files that a source of telemetry names: one file, a folder, or a glob."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from prx_engine.errors import InvalidInput
from prx_engine.telemetry import values
from prx_engine.telemetry.importing import contents
from prx_engine.telemetry.registry import recognised

_LOOKED_AT: Final = 20
"""Lines of a file in which something has to be recognised."""


class Place(NamedTuple):
    """A file to read.

    Attributes:
        path: of the file.
        named: whether somebody named this very file; others in a folder may be of no interest.
    """

    path: Path
    named: bool


def places(source: str, base: Path = Path()) -> list[Place]:
    """Return the files that a path, a folder or a glob stands for, in the order of their names.

    Hidden files and folders inside a folder are left out.

    Args:
        source: the path, folder or glob.
        base: what a relative one is relative to.

    Raises:
        InvalidInput: if the path is empty, which would stand for the whole current folder.
    """
    if not source:
        raise InvalidInput("path: it is empty; name a file, a folder or a glob")
    path = base / Path(source).expanduser()
    if path.is_dir():
        return [Place(found, named=False) for found in _below(path)]
    if path.exists() or not glob.has_magic(source):
        return [Place(path, named=True)]
    found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    return [Place(file, named=True) for file in found if file.is_file()]


def has_telemetry(path: Path) -> bool:
    """Tell whether the beginning of a file is of a known format."""
    try:
        with open(path, "rb") as file:
            for _, line in zip(range(_LOOKED_AT), contents(path, file), strict=False):
                if _is_known(line.content):
                    return True
    except (OSError, InvalidInput):
        pass
    return False


def _is_known(line: bytes) -> bool:
    try:
        return recognised(values.parse(line)) is not None
    except InvalidInput:
        return False


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(parent, name)
