"""What a variant may not touch: refused when its experiment is created, in one line that names it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prx_engine.errors import InvalidInput, PromotionConflict, PromotionRefused, PrxError
from prx_engine.promotion import Base, Place
from prx_engine.records import Variant

CONTROL = Variant(name="control")
KEPT = "<!-- IMMUTABLE_START -->\nNever lie.\n<!-- IMMUTABLE_END -->\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace" / "prompts").mkdir(parents=True)
    (tmp_path / "config.toml").write_text("[memory]\ntop_k = 5\n")
    return Place("host", tmp_path / "config.toml", tmp_path / "workspace")


def treatment(config: dict[str, Any] | None = None, files: dict[str, str] | None = None) -> Variant:
    return Variant(name="treatment", config=config or {}, files=files or {})


def refused(place: Place, variant: Variant, kind: type[PrxError] = InvalidInput) -> str:
    with pytest.raises(kind) as error:
        Base.observed(place, CONTROL, variant)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../config.toml", "prompts/../../x", "a//b", "", ".", "./a", "a/", "~/x", "a/.."],
)
def test_paths_that_may_lead_elsewhere(place: Place, path: str) -> None:
    assert "allowed is a path in the workspace" in refused(place, treatment(files={path: "x"}))


@pytest.mark.parametrize("path", ["a\nb", "a\0b", "a\\b", "a\u202eb"])
def test_paths_that_are_not_what_they_look_like(place: Place, path: str) -> None:
    assert "without control characters" in refused(place, treatment(files={path: "x"}))


def test_links_out_of_the_workspace(place: Place, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (place.workspace / "folder").symlink_to(tmp_path / "outside")
    (place.workspace / "file.md").symlink_to(tmp_path / "outside" / "file.md")
    for path in ("folder/x.md", "file.md", "folder"):
        assert "leads out of the workspace through a link" in refused(place, treatment(files={path: "x"}))


def test_links_inside_the_workspace_stay_links(place: Place) -> None:
    (place.workspace / "link.md").symlink_to("prompts/real.md")
    variant = treatment(files={"link.md": "x"})
    (change,) = Base.observed(place, CONTROL, variant).promotion(variant)
    assert change.path == place.workspace.resolve() / "prompts" / "real.md"


def test_names_that_differ_by_case_alone(place: Place) -> None:
    assert "the workspace has prompts; write it the same way" in refused(
        place, treatment(files={"Prompts/a.md": "x"})
    )
    assert "differs from a.md by case alone" in refused(place, treatment(files={"a.md": "x", "A.md": "y"}))


def test_the_target_as_a_file(place: Place) -> None:
    (place.workspace / "link.toml").symlink_to(place.target)
    beside = Place(place.host, place.target, place.target.parent)
    assert "is the promotion target" in refused(beside, treatment(files={"config.toml": "x"}))


def test_a_link_that_comes_after_creation(place: Place, tmp_path: Path) -> None:
    variant = treatment(files={"prompts/a.md": "x"})
    base = Base.observed(place, CONTROL, variant)
    (place.workspace / "prompts").rmdir()
    (place.workspace / "prompts").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match="leads out of the workspace"):
        base.promotion(variant, force=True)


@pytest.mark.parametrize("key", ["", "a b", "a..b", "a.", "a = 1\nb", "a = 0 #", "'a", "ä"])
def test_what_is_not_a_key(place: Place, key: str) -> None:
    assert "allowed: a dotted TOML key" in refused(place, treatment({key: 1}))


@pytest.mark.parametrize(
    "value", [None, 2**63, float("nan"), float("inf"), object(), "\ud800", [None], {1: 2}]
)
def test_what_is_not_a_value(place: Place, value: object) -> None:
    assert refused(place, treatment({"a.b": value})).startswith("config.a.b: found ")


def test_keys_that_cannot_be_set_together(place: Place) -> None:
    assert refused(place, treatment({"a.b": 1, "a": {"c": 1}})) == "config.a: a.b is set by the same variant"


def test_the_settings_of_experiments_themselves(place: Place) -> None:
    for key in ("self_evolution", "self_evolution.promotion.target", "'self_evolution'.fitness.weights"):
        assert "the settings that it is judged by" in refused(place, treatment({key: 1}))
    Base.observed(place, CONTROL, treatment({"self_evolution.prompts.style": 1}))


def test_files_that_are_not_text(place: Place) -> None:
    (place.workspace / "bytes.md").write_bytes(b"\xff")
    os.mkfifo(place.workspace / "pipe.md")
    for path, problem in (
        ("bytes.md", "not UTF-8 text"),
        ("pipe.md", "not a file"),
        ("prompts", "not a file"),
        ("bytes.md/x", "Not a directory"),
    ):
        assert refused(place, treatment(files={path: "x"}), PromotionRefused).endswith(problem)


def test_an_invalid_target(place: Place) -> None:
    place.target.write_text("[memory\n")
    problem = refused(place, treatment({"memory.top_k": 8}), PromotionRefused)
    assert problem.startswith(f"{place.target}: not valid TOML: ")
    Base.observed(place, CONTROL, treatment(files={"a.md": "x"}))


def test_a_key_below_what_is_not_a_table(place: Place) -> None:
    problem = refused(place, treatment({"memory.top_k.x": 8}), PromotionRefused)
    assert problem == f"{place.target}: memory.top_k is not a table"


@pytest.mark.parametrize(
    ("after", "allowed"),
    [
        (f"New.\n{KEPT}", True),
        (f"{KEPT}More.\n{KEPT}", True),
        (KEPT.replace("Never", "Always"), False),
        ("New.\n", False),
        (KEPT.replace("<!-- IMMUTABLE_END -->\n", ""), False),
        (KEPT.replace("\n", "\r\n"), False),
    ],
)
def test_what_is_marked_as_immutable(place: Place, after: str, allowed: bool) -> None:
    (place.workspace / "system.md").write_text(f"Old.\n{KEPT}Rest.\n")
    variant = treatment(files={"system.md": after})
    if allowed:
        Base.observed(place, CONTROL, variant)
    else:
        assert (
            refused(place, variant) == "files.system.md: changes what is marked as immutable from line 2 on"
        )


def test_what_is_marked_without_an_end(place: Place) -> None:
    (place.workspace / "system.md").write_text("<!-- IMMUTABLE_START -->\nall of it")
    refused(place, treatment(files={"system.md": "<!-- IMMUTABLE_START -->\nall of it, and more"}))


def test_marks_that_come_after_creation_hold_even_by_force(place: Place) -> None:
    variant = treatment(files={"system.md": "New.\n"})
    base = Base.observed(place, CONTROL, variant)
    (place.workspace / "system.md").write_text(KEPT)
    with pytest.raises(InvalidInput, match="immutable"):
        base.promotion(variant, force=True)


def edit_key(place: Place) -> None:
    place.target.write_text("[memory]\ntop_k = 6\n")


def remove_key(place: Place) -> None:
    place.target.write_text("[memory]\n")


def edit_file(place: Place) -> None:
    (place.workspace / "a.md").write_text("edited")


def remove_file(place: Place) -> None:
    (place.workspace / "a.md").unlink()


def make_file(place: Place) -> None:
    (place.workspace / "b.md").write_text("made")


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (edit_key, "memory.top_k is 6 now, was 5"),
        (remove_key, "memory.top_k is absent now, was 5"),
        (edit_file, "a.md has been edited"),
        (remove_file, "a.md is gone"),
        (make_file, "b.md is there now"),
    ],
)
def test_what_is_not_as_it_was_is_named(place: Place, edit: Callable[[Place], None], problem: str) -> None:
    (place.workspace / "a.md").write_text("old")
    variant = treatment({"memory.top_k": 8}, {"a.md": "new", "b.md": "new"})
    base = Base.of_json(Base.observed(place, CONTROL, variant).as_json())
    edit(place)
    with pytest.raises(PromotionConflict) as conflict:
        base.promotion(variant)
    assert str(conflict.value) == problem
    assert {change.after for change in base.promotion(variant, force=True)} >= {"new"}


def test_what_the_change_does_not_touch_may_be_edited(place: Place) -> None:
    variant = treatment({"memory.top_k": 8})
    base = Base.observed(place, treatment({"memory.other": 1}), variant)
    place.target.write_text("# mine\n[memory]\ntop_k = 0x5\nother = 2\n")
    (change,) = base.promotion(variant)
    assert change.after == "# mine\n[memory]\ntop_k = 8\nother = 2\n"


def test_a_value_of_another_type_is_not_the_same(place: Place) -> None:
    variant = treatment({"memory.top_k": 8})
    base = Base.observed(place, CONTROL, variant)
    for value in ("5.0", "'5'", "[5]"):
        place.target.write_text(f"[memory]\ntop_k = {value}\n")
        with pytest.raises(PromotionConflict):
            base.promotion(variant)


def test_a_workspace_that_has_gone_is_not_made_anew(place: Place, tmp_path: Path) -> None:
    variant = treatment(files={"a.md": "x"})
    base = Base.observed(place, CONTROL, variant)
    (place.workspace / "prompts").rmdir()
    place.workspace.rmdir()
    with pytest.raises(PromotionRefused, match=r"workspace .* is gone"):
        base.promotion(variant)
    never = Place("host", place.target, tmp_path / "never")
    (change,) = Base.observed(never, CONTROL, variant).promotion(variant)
    assert change.path == (tmp_path / "never" / "a.md").resolve()
