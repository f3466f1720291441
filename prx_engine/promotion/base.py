"""What a change would replace: seen when its experiment is created, and compared when it is applied."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from prx_engine.errors import InvalidInput, PromotionConflict, PromotionRefused
from prx_engine.promotion.documents import literals, with_changes, without_changes
from prx_engine.promotion.keys import checked_config, key_path, literal
from prx_engine.promotion.place import Place
from prx_engine.promotion.protected import require_protected_kept
from prx_engine.promotion.replacement import FileChange
from prx_engine.promotion.workspace import folded, read_text, shown_path, workspace_file
from prx_engine.records import Variant
from prx_engine.text import shown


@dataclass(frozen=True, slots=True)
class Base:
    """Where a change belongs, and what was there.

    Attributes:
        place: host, target and workspace.
        workspace_exists: whether the folder was there; one that has gone since is not made anew.
        config: dotted key → canonical literal of its value; None if absent.
        files: path in the workspace → text; None if absent.
    """

    place: Place
    workspace_exists: bool
    config: Mapping[str, str | None]
    files: Mapping[str, str | None]

    @classmethod
    def observed(cls, place: Place, control: Variant, treatment: Variant) -> Self:
        """Read what the variants would touch.

        Raises:
            InvalidInput: if a variant has a key, a value or a path that is not allowed.
            PromotionRefused: if a file cannot be read, or not be changed.
        """
        for variant in (control, treatment):
            _require_distinct_files(variant)
            for path in variant.files:
                _require_not_target(place, path)
        text = _target_text(place) or ""
        keys = {dotted: key for v in (control, treatment) for dotted, key in _keys_of(v).items()}
        found = literals(text, list(keys.values()), shown_path(place.target)) if keys else {}
        files = {
            path: read_text(workspace_file(place.workspace, path))
            for variant in (control, treatment)
            for path in variant.files
        }
        base = cls(
            place=place,
            workspace_exists=place.workspace.is_dir(),
            config={dotted: found[key] for dotted, key in keys.items()},
            files=files,
        )
        base.promotion(treatment)  # whatever would be refused then is refused now
        return base

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``as_json`` has written."""
        return cls(
            place=Place(data["host"], Path(data["target"]), Path(data["workspace"])),
            workspace_exists=data["workspace_exists"],
            config=data["config"],
            files=data["files"],
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "host": self.place.host,
            "target": str(self.place.target),
            "workspace": str(self.place.workspace),
            "workspace_exists": self.workspace_exists,
            "config": dict(self.config),
            "files": dict(self.files),
        }

    def promotion(self, treatment: Variant, *, force: bool = False) -> list[FileChange]:
        """Return what applying the treatment would do to the files as they are now.

        Args:
            treatment: the change.
            force: whether to overwrite what is not as it was.

        Raises:
            PromotionConflict: naming what is not as it was.
            PromotionRefused, InvalidInput: if a file cannot be read, or not be changed in this way.
        """
        changes: list[FileChange] = []
        differences: list[tuple[str, str]] = []
        if treatment.config:
            text = _target_text(self.place)
            differences += self._changed_keys(treatment, text or "")
            after = with_changes(text or "", checked_config(treatment.config), shown_path(self.place.target))
            changes.append(FileChange(_real(self.place.target), text, after))
        if treatment.files and self.workspace_exists and not self.place.workspace.is_dir():
            raise PromotionRefused(f"workspace {shown_path(self.place.workspace)} is gone")
        for name, after in treatment.files.items():
            path = workspace_file(self.place.workspace, name)
            _require_not_target(self.place, name)
            before = read_text(path)
            if before != self.files[name]:
                differences.append((name, _file_difference(name, before, self.files[name])))
            require_protected_kept(before or "", after, name)
            changes.append(FileChange(path, before, after))
        if differences and not force:
            raise PromotionConflict(
                "; ".join(text for _, text in differences), tuple(name for name, _ in differences)
            )
        return [change for change in changes if change.before != change.after]

    def rollback(
        self, treatment: Variant, promoted: Sequence[FileChange], *, force: bool = False
    ) -> list[FileChange]:
        """Return what taking an applied treatment back would do to the files as they are now.

        Args:
            treatment: the change.
            promoted: what its promotion did.
            force: whether to take it back where it is not as it was promoted.

        Raises:
            PromotionConflict: naming what is not as it was promoted.
            PromotionRefused: if a file cannot be read.
        """
        target = _real(self.place.target)
        changes = [
            self._target_rollback(treatment, change, force=force)
            if change.path == target
            else _file_rollback(change, force=force)
            for change in promoted
        ]
        return [change for change in changes if change.before != change.after]

    def _changed_keys(self, treatment: Variant, text: str) -> list[tuple[str, str]]:
        keys = _keys_of(treatment)
        found = literals(text, list(keys.values()), shown_path(self.place.target))
        return [
            (dotted, f"{dotted} is {_words(found[key])} now, was {_words(self.config[dotted])}")
            for dotted, key in keys.items()
            if found[key] != self.config[dotted]
        ]

    def _target_rollback(self, treatment: Variant, change: FileChange, *, force: bool) -> FileChange:
        name = shown_path(change.path)
        present = read_text(change.path)
        if present == change.after:
            return FileChange(change.path, present, change.before)
        config = checked_config(treatment.config)
        found = literals(present or "", list(config), name)
        moved = [
            dotted for dotted in treatment.config if found[key_path(dotted)] != _promoted(treatment, dotted)
        ]
        if moved and not force:
            differences = (
                f"{dotted} is {_words(found[key_path(dotted)])} now,"
                f" was promoted as {_words(_promoted(treatment, dotted))}"
                for dotted in moved
            )
            raise PromotionConflict("; ".join(differences), tuple(moved))
        as_promoted = with_changes(present or "", {key_path(k): treatment.config[k] for k in moved}, name)
        after = without_changes(change.before or "", change.after or "", as_promoted, list(config), name)
        return FileChange(change.path, present, after)


def _file_rollback(change: FileChange, *, force: bool) -> FileChange:
    present = read_text(change.path)
    if present != change.after and not force:
        name = shown_path(change.path)
        state = "is gone" if present is None else "has been edited"
        raise PromotionConflict(f"{name} {state} since it was promoted", (name,))
    return FileChange(change.path, present, change.before)


def _keys_of(variant: Variant) -> dict[str, tuple[str, ...]]:
    checked = checked_config(variant.config)
    return dict(zip(variant.config, checked, strict=True))


def _promoted(treatment: Variant, dotted: str) -> str:
    return literal(treatment.config[dotted])


def _target_text(place: Place) -> str | None:
    return read_text(_real(place.target))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _words(value: str | None) -> str:
    return "absent" if value is None else shown(value)


def _file_difference(name: str, present: str | None, before: str | None) -> str:
    if present is None:
        return f"{name} is gone"
    return f"{name} is there now" if before is None else f"{name} has been edited"


def _require_distinct_files(variant: Variant) -> None:
    seen: dict[str, str] = {}
    for path in variant.files:
        other = seen.setdefault(folded(path), path)
        if other != path:
            raise InvalidInput(f"files.{shown(path)}: differs from {shown(other)} by case alone")


def _require_not_target(place: Place, path: str) -> None:
    if workspace_file(place.workspace, path) == _real(place.target):
        raise InvalidInput(f"files.{shown(path)}: is the promotion target; set its keys with config")
