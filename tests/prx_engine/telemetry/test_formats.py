from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from prx_engine import Engine
from prx_engine.configuration import TelemetrySettings, TelemetrySource
from prx_engine.errors import InvalidInput
from prx_engine.telemetry.formats import State
from prx_engine.telemetry.registry import FORMAT_NAMES, FORMATS, FileReader, recognised
from prx_engine.telemetry.values import parse
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.telemetry import CODEX, SAMPLES, Sample, metrics

EVERY_FORMAT = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


@pytest.fixture(autouse=True)
def later(clock: ManualClock) -> None:
    """All samples lie before the present of the tests."""
    clock.set("2026-07-01T00:00:00Z")


def test_every_format_has_a_sample() -> None:
    assert {sample.name for sample in SAMPLES} == {known.name for known in FORMATS}


@EVERY_FORMAT
def test_a_format_is_recognised_and_counted(sample: Sample, engine: Engine) -> None:
    report = engine.import_lines(sample.lines, format="auto")
    assert (report.format, report.rejected, report.lines) == (sample.name, [], len(sample.lines))
    assert metrics(engine) == sample.expected
    assert not engine.verify().problems


@EVERY_FORMAT
def test_every_record_of_a_format_is_recognised_as_that_format_alone(sample: Sample) -> None:
    for line in sample.lines:
        found = recognised(parse(line))
        assert found is not None
        assert found.name == sample.name


@EVERY_FORMAT
def test_reading_a_file_again_changes_nothing(sample: Sample, engine: Engine) -> None:
    for _ in range(3):
        engine.import_lines(sample.lines, format="auto")
    assert metrics(engine) == sample.expected


@EVERY_FORMAT
def test_duplicated_lines_count_once(sample: Sample, engine: Engine) -> None:
    lines = [line for line in sample.lines for _ in range(2)]
    engine.import_lines(lines, format="auto")
    assert metrics(engine) == sample.expected


@EVERY_FORMAT
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_lines_does_not_matter(sample: Sample, seed: int, engine: Engine) -> None:
    # A rollout names its session once, in its first line; streamed lines of a message replace each other.
    first, *rest = sample.lines if sample is CODEX else [b"", *sample.lines]
    if sample.name == "claude-code":
        rest = [line for line in rest if b'"output_tokens": 1}' not in line]
    random.Random(seed).shuffle(rest)
    engine.import_lines([first, *rest], format="auto")
    assert metrics(engine) == sample.expected


@EVERY_FORMAT
def test_pieces_may_come_from_several_files_with_restarts_between(
    sample: Sample, open_engine: OpenEngine
) -> None:
    head = sample.lines[:1] if sample is CODEX else []
    for line in sample.lines[len(head) :]:
        open_engine().import_lines([*head, line], format="auto")
    assert metrics(open_engine()) == sample.expected


@EVERY_FORMAT
def test_good_lines_between_bad_ones_are_taken(sample: Sample, engine: Engine) -> None:
    bad = [b"{", b"[1, 2", b"\xff\xfe{}", b'"text"', b"17", b"nonsense", b"[" * 5000, b"\x00"]
    lines = [sample.lines[0]]
    for number, line in enumerate(sample.lines[1:]):
        lines += [bad[number % len(bad)], line]
    lines += bad
    report = engine.import_lines(lines, format="auto")
    assert metrics(engine) == sample.expected
    assert report.refused == len(lines) - len(sample.lines)


@EVERY_FORMAT
def test_a_line_that_is_cut_off_anywhere_is_reported(sample: Sample, engine: Engine) -> None:
    """However a file was cut: what is whole counts, and the rest is one bad line, or none."""
    last = sample.lines[-1]
    for end in range(1, len(last), 7):
        report = engine.import_lines([*sample.lines[:-1], last[:end]], format="auto")
        assert report.refused == 1
        assert report.rejected[0].line == len(sample.lines)
        assert "not JSON" in report.rejected[0].problem


@EVERY_FORMAT
def test_values_of_other_types_are_refused_or_passed_over(sample: Sample, engine: Engine) -> None:
    """Every value of every line is replaced by one of another type: nothing but an error line comes of it."""
    replacements: list[object] = [
        None,
        True,
        -1,
        1.5,
        10**400,
        "x",
        "",
        [],
        [[]],
        {},
        {"a": {}},
        "\ud800",
        "\0",
    ]
    settings = TelemetrySettings()
    for line in sample.lines:
        for changed in _changed(parse(line), replacements):
            found: list[object] = []
            reader = FileReader(sample.name, settings, _state_after(sample))
            try:
                found.extend(reader.read(_dumped(changed)))
            except InvalidInput as error:
                found.append(error)
            for item in found:
                if isinstance(item, InvalidInput):
                    assert "\n" not in str(item)
                    assert len(str(item)) < 400


@EVERY_FORMAT
def test_lines_of_other_types_reach_the_database_or_are_refused(sample: Sample, engine: Engine) -> None:
    replacements: list[object] = [None, -1, "x", [], {}]
    lines = [_dumped(changed) for line in sample.lines for changed in _changed(parse(line), replacements)]
    engine.import_lines([sample.lines[0], *lines], format=sample.name)
    assert not engine.verify().problems


@EVERY_FORMAT
def test_marks_and_line_ends_of_other_systems_are_read(
    sample: Sample, engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(sample.lines))
    assert engine.import_file(path).refused == 0
    assert metrics(engine) == sample.expected


@EVERY_FORMAT
def test_other_encodings_are_refused(sample: Sample, engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(sample.lines).decode().encode("utf-16"))
    (bad,) = engine.import_file(path).rejected
    assert bad.problem == "text in UTF-16; save it as UTF-8"
    # One line in Latin-1 among the others: that one is bad.
    path.write_bytes(b"\n".join([*sample.lines, b'{"text": "caf\xe9"}']))
    (bad,) = engine.import_file(path).rejected
    assert bad.line == len(sample.lines) + 1
    assert metrics(engine) == sample.expected


def test_what_is_of_no_format_is_said(engine: Engine) -> None:
    report = engine.import_lines([b'{"level": "info", "message": "hello"}'], format="auto")
    assert report.format is None
    assert "of no known format" in report.rejected[0].problem
    with pytest.raises(InvalidInput, match="format: found xml; allowed: auto, otlp"):
        engine.import_lines([], format="xml")


def test_a_huge_line_is_refused_and_the_rest_goes_on(engine: Engine) -> None:
    huge = b'{"session_id": "h", "cluster": "' + b"x" * (17 * 1024 * 1024) + b'"}'
    report = engine.import_lines([huge, b'{"session_id": "s", "tokens": 1}'], format="auto")
    assert report.rejected[0].problem == "longer than 16 MiB"
    assert metrics(engine) == {"s": {"tokens": 1}}


def _dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def _state_after(sample: Sample) -> State:
    reader = FileReader(sample.name, TelemetrySettings())
    list(reader.read(sample.lines[0]))
    return reader.state()


def _changed(value: object, replacements: Sequence[object]) -> list[object]:
    """All values that differ from one in a single place."""
    found = list(replacements)
    if isinstance(value, dict):
        for key, item in value.items():
            found += [{**value, key: changed} for changed in _changed(item, replacements)]
    if isinstance(value, list):
        for place, item in enumerate(value):
            found += [
                [*value[:place], changed, *value[place + 1 :]] for changed in _changed(item, replacements)
            ]
    return found


def test_the_configuration_knows_the_same_formats() -> None:
    allowed = TelemetrySource.model_fields["format"].annotation
    assert set(get_args(allowed)) == set(FORMAT_NAMES)
