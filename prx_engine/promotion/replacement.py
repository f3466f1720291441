"""Replacing files so that each is whole at every moment, and all of them can be put back.

First everything is written beside the files, then each is renamed into its place; nothing that can run
out of space comes after the first rename. An edit by somebody else is never overwritten: each file is
compared just before it is replaced, and what was replaced is kept until the end and compared again.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from prx_engine.errors import PromotionConflict, PromotionRefused
from prx_engine.promotion.workspace import read_text, shown_path

_NEW_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file and its text before and after; None where there is no file."""

    path: Path
    before: str | None
    after: str | None

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Self:
        """Read what ``as_json`` has written."""
        return cls(Path(data["path"]), data["before"], data["after"])

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values, with the hashes of both texts."""
        return {
            "path": str(self.path),
            "before": self.before,
            "before_sha256": text_hash(self.before),
            "after": self.after,
            "after_sha256": text_hash(self.after),
        }


def text_hash(text: str | None) -> str | None:
    """Return the SHA-256 of a text's UTF-8 bytes in hexadecimal."""
    return None if text is None else sha256(text.encode()).hexdigest()


class Replacement:
    """Replaces some files together; only the holder of their folder's lock may do that.

    Args:
        changes: what to do.
        tag: short name of this replacement, the same when it is finished or undone by another process.
    """

    def __init__(self, changes: Sequence[FileChange], tag: str) -> None:
        self._changes = changes
        self._tag = tag

    def apply(self) -> None:
        """Replace the files; on an error the caller has to undo.

        Raises:
            PromotionConflict: if somebody edits a file meanwhile.
            PromotionRefused: if a file is read-only.
            OSError: if the disk is full, or fails otherwise.
        """
        for change in self._changes:
            self._prepare(change)
        for change in self._changes:
            self._swap(change)
        self.tidy()

    def tidy(self) -> None:
        """Remove what was written beside the files."""
        for change in self._changes:
            self._remove_temporaries(change)

    def is_complete(self) -> bool:
        """Tell whether every file is as it should be afterwards."""
        return all(read_text(change.path) == change.after for change in self._changes)

    def undo(self) -> None:
        """Put back what was replaced; a file that somebody has edited since stays as it is.

        Raises:
            OSError: if that fails.
        """
        for change in reversed(self._changes):
            if change.before != change.after and read_text(change.path) == change.after:
                self._put_back(change)
            self._remove_temporaries(change)

    def _prepare(self, change: FileChange) -> None:
        _require_writable(change.path)
        change.path.parent.mkdir(parents=True, exist_ok=True)
        self._remove_temporaries(change)
        if change.after is not None:
            write_file(self._new(change.path), change.after, like=change.path)
        if change.before is not None:
            self._keep(change.path)

    def _swap(self, change: FileChange) -> None:
        if read_text(change.path) != change.before:
            raise _edited(change.path)
        if change.after is None:
            os.unlink(change.path)
        else:
            os.replace(self._new(change.path), change.path)
        sync_folder(change.path.parent)
        if change.before is not None and read_text(self._old(change.path)) != change.before:
            raise _edited(change.path)

    def _keep(self, path: Path) -> None:
        """Keep what is replaced under a second name; an edit through the first is an edit of both."""
        try:
            os.link(path, self._old(path))
        except OSError:
            write_file(self._old(path), read_text(path) or "", like=path)

    def _put_back(self, change: FileChange) -> None:
        old = self._old(change.path)
        if change.before is None:
            os.unlink(change.path)
        else:
            kept = old
            if not old.exists():
                kept = self._new(change.path)
                write_file(kept, change.before, like=change.path)
            os.replace(kept, change.path)
        sync_folder(change.path.parent)

    def _remove_temporaries(self, change: FileChange) -> None:
        for path in (self._new(change.path), self._old(change.path)):
            path.unlink(missing_ok=True)

    def _new(self, path: Path) -> Path:
        return path.with_name(f".{path.name}.{self._tag}.new")

    def _old(self, path: Path) -> Path:
        return path.with_name(f".{path.name}.{self._tag}.old")


def write_snapshot(folder: Path, version_id: str, created_at: str, content: str) -> None:
    """Keep an old text in the form of the agent's own rollback files."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, new = _snapshot_files(folder, version_id)
    text = json.dumps({"version_id": version_id, "created_at": created_at, "content": content}, indent=2)
    write_file(new, text + "\n", like=path)
    os.replace(new, path)
    sync_folder(folder)


def remove_snapshot(folder: Path, version_id: str) -> None:
    """Remove what ``write_snapshot`` has written, however far it came."""
    for path in _snapshot_files(folder, version_id):
        path.unlink(missing_ok=True)


def _snapshot_files(folder: Path, version_id: str) -> tuple[Path, Path]:
    """Return the file of a snapshot, and the one that it is while it is written."""
    return folder / f"{version_id}.json", folder / f"{version_id}.new"


def write_file(path: Path, text: str, *, like: Path) -> None:
    """Write a new file and bring it safely to the disk, with the owner and permissions of another."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _NEW_FILE_MODE)
    try:
        left = memoryview(text.encode())
        while left:
            left = left[os.write(descriptor, left) :]
        with suppress(FileNotFoundError):  # a new file stays private to its owner
            _copy_access(like, descriptor)
        os.fsync(descriptor)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder safely to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_access(source: Path, descriptor: int) -> None:
    status = os.stat(source)
    with suppress(PermissionError):  # only root may give files away, and only root needs to
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _require_writable(path: Path) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    # Renaming would get past a missing write permission, and root past everything.
    if not mode & 0o222 or not os.access(path, os.W_OK):
        raise PromotionRefused(f"{shown_path(path)}: read-only")


def _edited(path: Path) -> PromotionConflict:
    name = shown_path(path)
    return PromotionConflict(f"{name}: edited by somebody else at this very moment", (name,))
