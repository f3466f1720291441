from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prx_engine.errors import PromotionConflict, PromotionRefused
from prx_engine.promotion import FileChange, Place, Replacement, locked


@pytest.fixture
def changes(tmp_path: Path) -> list[FileChange]:
    (tmp_path / "a").write_text("old a")
    (tmp_path / "b").write_text("old b")
    return [
        FileChange(tmp_path / "a", "old a", "new a"),
        FileChange(tmp_path / "b", "old b", None),
        FileChange(tmp_path / "c" / "d", None, "new d"),
    ]


def files(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


OLD = {"a": "old a", "b": "old b"}
NEW = {"a": "new a", "c/d": "new d"}


def test_files_are_replaced_removed_and_made(tmp_path: Path, changes: list[FileChange]) -> None:
    replacement = Replacement(changes, "tag")
    assert not replacement.is_complete()
    replacement.apply()
    assert files(tmp_path) == NEW
    assert replacement.is_complete()
    replacement.undo()
    assert files(tmp_path) == OLD


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4710])
def test_the_mode_stays_and_a_new_file_is_private(
    tmp_path: Path, changes: list[FileChange], mode: int
) -> None:
    (tmp_path / "a").chmod(mode)
    Replacement(changes, "tag").apply()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "c" / "d").stat().st_mode) == 0o600


def test_a_read_only_file_is_refused(tmp_path: Path, changes: list[FileChange]) -> None:
    (tmp_path / "b").chmod(0o444)
    replacement = Replacement(changes, "tag")
    with pytest.raises(PromotionRefused, match="b: read-only"):
        replacement.apply()
    replacement.undo()
    assert files(tmp_path) == OLD


def failing(call: Callable[..., Any], number: int) -> tuple[Callable[..., Any], list[int]]:
    """A system call whose number-th use finds the disk full."""
    left = [number]

    def failed(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return call(*arguments, **options)

    return failed, left


@pytest.mark.parametrize("name", ["write", "fsync", "replace", "link", "mkdir", "open"])
def test_a_full_disk_at_any_moment_is_undone(
    tmp_path: Path, changes: list[FileChange], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    number, happened = 0, 0
    while True:
        number += 1
        replacement = Replacement(changes, "tag")
        with monkeypatch.context() as patch:
            call, left = failing(getattr(os, name), number)
            patch.setattr(os, name, call)
            try:
                replacement.apply()
            except (OSError, PromotionRefused):
                happened += 1
        if left[0] > 0:
            break
        replacement.undo()
        assert files(tmp_path) == OLD
        shutil.rmtree(tmp_path / "c", ignore_errors=True)
    assert happened or name == "link"  # without links a copy is made
    assert files(tmp_path) == NEW


def test_a_short_write_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:1]))
    Replacement([FileChange(tmp_path / "x", None, "text ü")], "tag").apply()
    assert files(tmp_path) == {"x": "text ü"}


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("moment", range(1, 8))
@pytest.mark.parametrize("by_rename", [True, False])
def test_an_edit_meanwhile_is_never_lost(
    tmp_path: Path,
    changes: list[FileChange],
    monkeypatch: pytest.MonkeyPatch,
    moment: int,
    by_rename: bool,
    links: bool,
) -> None:
    """Somebody edits b just before the moment-th file or folder is brought to the disk."""
    fsync, calls = os.fsync, [0]

    def editing(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == moment:
            if by_rename:
                (tmp_path / "edit").write_text("edited b")
                os.rename(tmp_path / "edit", tmp_path / "b")
            else:
                (tmp_path / "b").write_text("edited b")
        fsync(descriptor)

    replacement = Replacement(changes, "tag")
    with monkeypatch.context() as patch:
        if not links:
            patch.setattr(os, "link", failing(os.link, 1)[0])
        patch.setattr(os, "fsync", editing)
        try:
            replacement.apply()
        except PromotionConflict:
            replacement.undo()
    if calls[0] < moment:
        assert files(tmp_path) == NEW
        return
    assert files(tmp_path)["b"] == "edited b"
    assert set(files(tmp_path)) <= {"a", "b", "c/d"}


def test_an_edit_into_the_replaced_file_is_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that has the old file open writes between the comparison and the renaming."""
    path = tmp_path / "a"
    path.write_text("old")
    replace = os.replace

    def late(source: Path, target: Path) -> None:
        path.write_text("edited")
        replace(source, target)

    replacement = Replacement([FileChange(path, "old", "new")], "tag")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", late)
        with pytest.raises(PromotionConflict) as conflict:
            replacement.apply()
    assert str(conflict.value) == f"{path}: edited by somebody else at this very moment"
    replacement.undo()
    assert files(tmp_path) == {"a": "edited"}


def test_an_edit_after_the_replacement_stays_when_it_is_undone(
    tmp_path: Path, changes: list[FileChange]
) -> None:
    replacement = Replacement(changes, "tag")
    replacement.apply()
    (tmp_path / "a").write_text("edited a")
    replacement.undo()
    assert files(tmp_path) == {"a": "edited a", "b": "old b"}


def test_one_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "made"),
        pytest.raises(PromotionRefused, match="another process is promoting there; try again"),
        locked(tmp_path / "made", wait=0.05),
    ):
        pass
    with locked(tmp_path / "made", wait=0):
        pass


def test_another_place_is_told_apart() -> None:
    there = Place("there", Path("/x/config.toml"), Path("/x/workspace"))
    there.require(there)
    for here, problem in (
        (Place("here", there.target, there.workspace), "waits for host there: this is here"),
        (Place("there", Path("/y"), there.workspace), "whose target is /x/config.toml: here it is /y"),
        (Place("there", there.target, Path("/y")), "whose workspace is /x/workspace: here it is /y"),
    ):
        with pytest.raises(PromotionRefused, match=problem):
            there.require(here)
