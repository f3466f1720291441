from __future__ import annotations

import tomllib
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prx_engine.configuration.editing import CannotEdit, with_value

KEY = ("self_evolution", "experiments", "traffic_split")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # in its place
        ("[self_evolution.experiments]\n  traffic_split  =  0.5   # half\n",
         "[self_evolution.experiments]\n  traffic_split  =  0.25   # half\n"),
        ("self_evolution = { experiments = { traffic_split = 0.5 }, x = 1 }\n",
         "self_evolution = { experiments = { traffic_split = 0.25 }, x = 1 }\n"),
        ("self_evolution.experiments.'traffic_split'=0.5\nx = 1\n",
         "self_evolution.experiments.'traffic_split'=0.25\nx = 1\n"),
        # in a table that is there
        ("[self_evolution.experiments]\n\tenabled = true # yes\n\n# about b\n[b]\n",
         "[self_evolution.experiments]\n\tenabled = true # yes\n\ttraffic_split = 0.25\n\n# about b\n[b]\n"),
        ("[self_evolution.experiments]\n# traffic_split = 0.5",
         "[self_evolution.experiments]\ntraffic_split = 0.25\n# traffic_split = 0.5"),
        ("[self_evolution.experiments]",
         "[self_evolution.experiments]\ntraffic_split = 0.25\n"),
        ("[self_evolution]\nexperiments.enabled = true\nmemory.x = 1\n[b]\n",
         "[self_evolution]\nexperiments.enabled = true\nmemory.x = 1\n"
         "experiments.traffic_split = 0.25\n[b]\n"),
        ("self_evolution.memory.x = 1\n[b]\n",
         "self_evolution.memory.x = 1\nself_evolution.experiments.traffic_split = 0.25\n[b]\n"),
        ("self_evolution = { }\n[b]\n",
         "self_evolution = { experiments.traffic_split = 0.25 }\n[b]\n"),
        ("self_evolution = {experiments={enabled=true }}\n",
         "self_evolution = {experiments={enabled=true, traffic_split = 0.25 }}\n"),
        # in a table that is not there
        ("", "[self_evolution.experiments]\ntraffic_split = 0.25\n"),
        ("a = 1", "a = 1\n\n[self_evolution.experiments]\ntraffic_split = 0.25\n"),
        ("[self_evolution]\nx = 1\n[b]\n",
         "[self_evolution]\nx = 1\n[b]\n\n[self_evolution.experiments]\ntraffic_split = 0.25\n"),
        ("[self_evolution.experiments.sequential]\n",
         "[self_evolution.experiments.sequential]\n\n[self_evolution.experiments]\ntraffic_split = 0.25\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_value_goes_where_it_belongs(before: str, after: str, newline: str) -> None:
    lone_line = "\n" not in before  # there is no line ending to follow
    expected = after if lone_line else after.replace("\n", newline)

    assert with_value(before.replace("\n", newline), KEY, 0.25) == expected


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (False, "false"),
        (3, "3"),
        (1e-7, "1e-07"),
        ('a "b"\n\\ü', '"a \\"b\\"\\n\\\\ü"'),
        ((1, 2.5), "[1, 2.5]"),
        ([{"path": "x*", "format": "auto"}], '[{ path = "x*", format = "auto" }]'),
    ],
)
def test_values_are_written_as_toml(value: object, written: str) -> None:
    assert with_value("a = 0\n", ("a",), value) == f"a = {written}\n"


def test_arrays_of_tables_are_left_to_a_person() -> None:
    with pytest.raises(CannotEdit):
        with_value("[[a.sources]]\npath = 'x'\n", ("a", "sources"), [])


LAYOUTS = (
    "[self_evolution]\ndatabase = 'x'\n",
    "[ self_evolution . 'experiments' ]\nenabled = true # on\n",
    "[self_evolution.experiments.auto_converge]\ncheck_interval_hours = 1\n",
    "[self_evolution.memory]\nk = [ 1,\n 2 ]\n",
    "[other]\nnot = nan\ntext = '''\n[self_evolution.experiments]\ntraffic_split = 1\n'''\n",
    "[[list]]\nx = { traffic_split = 1 }\n[[list]]\n",
    "# the end\n\n",
)
KEYS = (
    KEY,
    ("self_evolution", "database"),
    ("self_evolution", "experiments", "enabled"),
    ("self_evolution", "experiments", "auto_converge", "check_interval_hours"),
    ("self_evolution", "experiments", "auto_converge", "max_duration_hours"),
)


def common_start(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@given(st.permutations(LAYOUTS), st.integers(0, len(LAYOUTS)), st.sampled_from(KEYS), st.booleans())
def test_nothing_else_changes_whatever_the_order_of_the_tables(
    layouts: list[str], count: int, key: tuple[str, ...], windows: bool
) -> None:
    text = "first = 1\n" + "".join(layouts[:count])
    if windows:
        text = text.replace("\n", "\r\n")

    edited = with_value(text, key, 0.125)

    data: Any = tomllib.loads(edited)
    for name in key:
        data = data[name]
    assert data == 0.125
    before = common_start(text, edited)
    after = common_start(text[before:][::-1], edited[before:][::-1])
    replaced = text[before : len(text) - after]
    assert replaced in ("", "1", "'x'", "true")
    assert "\n" not in edited.replace("\r\n", "") or not windows
    assert with_value(edited, key, 0.125) == edited
