"""Files of the workspace: which paths a variant may name, and what is there now."""

from __future__ import annotations

import os
import stat
import unicodedata
from pathlib import Path

from prx_engine.errors import InvalidInput, PromotionRefused
from prx_engine.text import shown


def workspace_file(workspace: Path, relative: str) -> Path:
    """Return the real path of a file that a variant names.

    Raises:
        InvalidInput: if the path is absolute, climbs out, passes through a link out of the workspace,
            is not written as the names on the disk are, or is not that of a file.
    """
    parts = relative.split("/")
    where = f"files.{shown(relative)}"
    if not relative.isprintable() or "\\" in relative:
        raise InvalidInput(f"{where}: a path without control characters or backslashes is allowed")
    if relative.startswith(("/", "~")) or any(part in ("", ".", "..") for part in parts):
        raise InvalidInput(f"{where}: allowed is a path in the workspace: relative, without . or ..")
    _require_exact_names(workspace, parts, where)
    root = Path(os.path.realpath(workspace))
    real = Path(os.path.realpath(root.joinpath(*parts)))
    if root not in real.parents:
        raise InvalidInput(f"{where}: leads out of the workspace through a link, to {shown(str(real))}")
    return real


def same_name(first: str, second: str) -> bool:
    """Tell whether two paths are the same file on a disk that ignores case and composition."""
    return folded(first) == folded(second)


def folded(path: str) -> str:
    """Return a path as a disk that ignores case and composition sees it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def read_text(path: Path) -> str | None:
    """Return the exact text of a file; None if there is none.

    Raises:
        PromotionRefused: if it cannot be read, or is not UTF-8 text.
    """
    try:
        # Not waiting: opening a pipe to read from it would otherwise wait for somebody to write.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise PromotionRefused(f"{shown_path(path)}: not a file")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read().decode("utf-8")
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise PromotionRefused(f"{shown_path(path)}: not UTF-8 text") from None
    except OSError as error:
        raise PromotionRefused(f"{shown_path(path)}: {error.strerror}") from None


def shown_path(path: Path | str) -> str:
    """Return a path as it may stand in a message, whole."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(path))


def _require_exact_names(workspace: Path, parts: list[str], where: str) -> None:
    """Refuse names that differ from those on the disk by case or composition alone.

    On some disks they would be the same file, on others a second one that nobody reads.
    """
    folder = workspace
    for part in parts:
        try:
            names = os.listdir(folder)
        except OSError:
            return
        if part not in names:
            other = next((name for name in names if same_name(name, part)), None)
            if other is not None:
                raise InvalidInput(f"{where}: the workspace has {shown(other)}; write it the same way")
            return
        folder /= part
