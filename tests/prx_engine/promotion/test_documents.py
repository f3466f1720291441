from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.errors import PromotionConflict, PromotionRefused
from prx_engine.promotion import Base, Place, Replacement, changes_between
from prx_engine.promotion.documents import literals, with_changes, without_changes
from prx_engine.promotion.keys import checked_config, key_path, literal
from prx_engine.records import Variant
from tests.support.toml import Document, changed_documents, documents


def changed(text: str, config: dict[str, Any]) -> str:
    return with_changes(text, checked_config(config), "config.toml")


@given(changed_documents())
def test_a_change_sets_its_keys_and_is_taken_out_to_the_last_byte(
    case: tuple[Document, dict[str, Any]],
) -> None:
    document, config = case
    after = changed(document.text, config)
    assert literals(after, list(checked_config(config)), "") == {
        key_path(dotted): literal(value) for dotted, value in config.items()
    }
    keys = list(checked_config(config))
    assert without_changes(document.text, after, after, keys, "") == document.text


@given(changed_documents())
def test_applying_and_rolling_back_gives_the_original_files(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[Document, dict[str, Any]]
) -> None:
    document, config = case
    folder = tmp_path_factory.mktemp("place")
    target = folder / "config.toml"
    target.write_bytes(document.text.encode())
    (folder / "old.md").write_bytes(b"old\r\n")
    place = Place("host", target, folder)
    treatment = Variant(name="treatment", config=config, files={"old.md": "new", "more/new.md": ""})
    base = Base.observed(place, Variant(name="control"), treatment)
    promoted = base.promotion(treatment)
    Replacement(promoted, "tag").apply()
    assert target.read_bytes().decode() == changed(document.text, config)
    assert (folder / "old.md").read_bytes() == b"new"
    assert (folder / "more" / "new.md").read_bytes() == b""
    again = Base.of_json(base.as_json())
    Replacement(again.rollback(treatment, promoted), "tag").apply()
    assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == {
        "config.toml": document.text.encode(),
        "old.md": b"old\r\n",
    }


@given(changed_documents(), st.sampled_from(["# later\n", "[later]\nx = 1 # y\n"]))
def test_an_edit_made_since_stays(case: tuple[Document, dict[str, Any]], edit: str) -> None:
    document, config = case
    after = changed(document.text, config)
    newline = "" if after.endswith("\n") or not after else "\n"
    try:
        restored = without_changes(
            document.text, after, after + newline + edit, list(checked_config(config)), ""
        )
    except PromotionConflict:
        return  # the edit touches the last promoted line: a person has to look
    data = tomllib.loads(restored, parse_float=str)
    assert data.pop("later", {"x": 1}) == {"x": 1}
    assert data == tomllib.loads(document.text, parse_float=str)
    assert restored.endswith(edit)


@given(documents())
def test_a_document_has_nothing_to_change_in_itself(document: Document) -> None:
    assert changes_between(document.text, document.text) == {}


@given(changed_documents())
def test_the_difference_of_two_texts_leads_from_one_to_the_other(
    case: tuple[Document, dict[str, Any]],
) -> None:
    document, config = case
    after = changed(document.text, config)
    try:
        difference = changes_between(document.text, after)
    except PromotionRefused:
        return  # a table gave way to a value, which removes the table's keys
    assert tomllib.loads(changed(document.text, difference)) == tomllib.loads(after)


def test_the_difference_names_what_is_set_and_refuses_what_is_removed() -> None:
    old = "a = 1\n[t]\nb = 'x'\nc = [1]\n"
    assert changes_between(old, "a = 1.0\n[t]\nb = 'x'\nc = [2]\n'd.e' = true\n") == {
        "a": 1.0,
        "t.c": [2],
        't."d.e"': True,
    }
    with pytest.raises(PromotionRefused, match=r"new file: t\.b is missing"):
        changes_between(old, "a = 1\n[t]\nc = [1]\n")
    with pytest.raises(PromotionRefused, match="old file: not valid TOML"):
        changes_between("a = ", "a = 1")


def test_edits_of_other_lines_stay_where_they_are() -> None:
    before = "a = 1\nb = 2 # two\n\n[t]\nc = 3\n"
    after = changed(before, {"b": 5, "t.d": 4})
    present = after.replace("a = 1", "a = 9 # mine").replace("[t]", "# mine too\n[t]")
    keys = [("b",), ("t", "d")]
    assert (
        without_changes(before, after, present, keys, "f")
        == "a = 9 # mine\nb = 2 # two\n\n# mine too\n[t]\nc = 3\n"
    )


@pytest.mark.parametrize(
    ("before", "config", "edit", "restored"),
    [
        ("a = 0x1\n", {"a": 2}, ("a = 2", "a = 2 # really"), "a = 0x1 # really\n"),
        ("a = 1", {"t.b": 2}, ("b = 2", "b = 2\nc = 3"), "a = 1\n\n[t]\nc = 3\n"),
        ("[t]\nb = 1\n", {"t.c": 2}, ("b = 1\nc = 2", "  c = 2 # moved\nb = 1"), "[t]\nb = 1\n"),
        ("", {"t.b": 1, "t.c": 2}, ("[t]", "[other]\n\n[t] # mine"), "[other]\n\n[t] # mine\n"),
    ],
)
def test_promoted_lines_may_have_been_edited_around_their_values(
    before: str, config: dict[str, Any], edit: tuple[str, str], restored: str
) -> None:
    after = changed(before, config)
    present = after.replace(*edit)
    assert present != after
    assert without_changes(before, after, present, list(checked_config(config)), "f") == restored


def test_a_promoted_key_that_was_moved_into_an_inline_table_is_a_conflict() -> None:
    after = changed("", {"t.a": 1})
    with pytest.raises(PromotionConflict, match="f: lines that were promoted have been rewritten since"):
        without_changes("", after, "t = { a = 1, b = 2 }\n", [("t", "a")], "f")


def test_the_byte_order_mark_stays() -> None:
    assert changed("\ufeffa = 1\n", {"a": 2}) == "\ufeffa = 2\n"


@pytest.mark.parametrize(
    ("text", "config", "problem"),
    [
        ("a = \n", {"a": 1}, "config.toml: not valid TOML: Invalid value"),
        ("a = 1\n", {"a.b": 1}, "config.toml: a is not a table"),
        ("[[a]]\nb = 1\n", {"a.b": 1}, "config.toml: a is not a table"),
        ("[a]\nb = 1\n", {"a": {"b": 2}}, "config.toml: a is written in a way that has to be edited by hand"),
    ],
)
def test_what_cannot_be_changed_is_refused(text: str, config: dict[str, Any], problem: str) -> None:
    with pytest.raises(PromotionRefused) as refused:
        changed(text, config)
    assert str(refused.value).startswith(problem)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    place = Place("host", tmp_path / "config.toml", tmp_path / "workspace")
    treatment = Variant(name="treatment", config={"a.b": 1})
    (change,) = Base.observed(place, Variant(name="control"), treatment).promotion(treatment)
    assert (change.before, change.after) == (None, "[a]\nb = 1\n")
