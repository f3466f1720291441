from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prx_engine import Engine
from prx_engine.errors import InvalidInput
from prx_engine.telemetry.following import TelemetryFollower
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.telemetry import CHAT, CODEX, LANGFUSE, SAMPLES, Sample, dumped, metrics, span, traces


@pytest.fixture(autouse=True)
def later(clock: ManualClock) -> None:
    clock.set("2026-07-01T00:00:00Z")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "agent.jsonl"


@pytest.fixture
def follower(engine: Engine, log: Path) -> Iterator[TelemetryFollower]:
    found = engine.follow(str(log))
    yield found
    found.close()


def call(number: int) -> bytes:
    """One model call of one token; two calls a session."""
    name = f"c-{number // 2}"
    (line,) = dumped(
        [traces(span(number, **CHAT | {"gen_ai__conversation__id": name}, gen_ai__usage__input_tokens=1))]
    )
    return line + b"\n"


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def tokens(engine: Engine) -> int:
    return sum(found["tokens"] for found in metrics(engine).values())


def test_what_a_file_gains_is_recorded_once(engine: Engine, log: Path, follower: TelemetryFollower) -> None:
    assert follower.poll().recorded == 0  # it is not there yet
    append(log, call(0) + call(1))
    assert follower.poll().recorded == 2
    assert follower.poll().lines == 0
    append(log, call(2))
    assert follower.poll().recorded == 1
    assert tokens(engine) == 3


def test_a_line_is_read_when_it_is_complete(engine: Engine, log: Path, follower: TelemetryFollower) -> None:
    line = call(0)
    for end in (1, len(line) // 2, len(line) - 1):
        log.write_bytes(line[:end])
        report = follower.poll()
        assert (report.recorded, report.refused) == (0, 0)
    append(log, line[-1:])
    assert follower.poll().recorded == 1


def test_the_place_outlives_the_process(log: Path, open_engine: OpenEngine) -> None:
    for number in range(5):
        append(log, call(number))
        follower = open_engine().follow(str(log))
        report = follower.poll()
        follower.close()
        assert (report.lines, report.recorded) == (1, 1)
    assert tokens(open_engine()) == 5


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_every_format_is_followed_line_by_line_through_restarts(
    sample: Sample, log: Path, open_engine: OpenEngine
) -> None:
    for line in sample.lines:
        append(log, line + b"\n")
        follower = open_engine().follow(str(log))
        assert follower.poll().refused == 0
        follower.close()
    assert metrics(open_engine()) == sample.expected


def test_a_rotated_file_is_read_to_its_end(engine: Engine, log: Path, follower: TelemetryFollower) -> None:
    append(log, call(0))
    follower.poll()
    append(log, call(1))
    log.rename(log.with_suffix(".jsonl.1"))
    append(log, call(2))
    follower.poll()
    append(log.with_suffix(".jsonl.1"), call(3))  # its writer had it still open
    follower.poll()
    assert tokens(engine) == 4


def test_a_file_rotated_away_while_nobody_looked_is_read_to_its_end(
    log: Path, open_engine: OpenEngine
) -> None:
    append(log, call(0))
    first = open_engine().follow(str(log))
    first.poll()
    first.close()
    append(log, call(1))
    log.rename(log.with_suffix(".jsonl.1"))
    append(log, call(2))
    second = open_engine().follow(str(log))
    second.poll()
    second.close()
    assert tokens(open_engine()) == 3


def test_files_beside_a_rotated_one_are_read_only_if_they_are_telemetry(
    engine: Engine, log: Path, follower: TelemetryFollower
) -> None:
    append(log, call(0))
    follower.poll()
    log.rename(log.with_suffix(".jsonl.1"))
    append(log.with_suffix(".lock"), b"4711\n")
    append(log.with_suffix(".jsonl.2"), call(1))  # came and went between two polls
    append(log, call(2))
    assert follower.poll().refused == 0
    assert tokens(engine) == 3


def test_what_was_written_just_before_the_file_was_removed_is_read(
    engine: Engine, log: Path, follower: TelemetryFollower
) -> None:
    append(log, call(0))
    follower.poll()
    append(log, call(1))
    log.unlink()
    follower.poll()
    append(log, call(2))
    follower.poll()
    assert tokens(engine) == 3


@pytest.mark.parametrize("grown", [1, 5])
def test_a_truncated_file_is_read_from_its_start(
    grown: int, engine: Engine, log: Path, follower: TelemetryFollower
) -> None:
    append(log, call(0) + call(1))
    follower.poll()
    # Truncated and written anew, to less or to more than it had.
    log.write_bytes(b"".join(call(number) for number in range(10, 10 + grown)))
    follower.poll()
    assert tokens(engine) == 2 + grown


def test_bad_lines_are_reported_once_with_their_place(
    log: Path, open_engine: OpenEngine, follower: TelemetryFollower
) -> None:
    append(log, call(0) + b"nonsense\n" + call(1))
    (bad,) = follower.poll().rejected
    assert (bad.file, bad.line) == (str(log), 2)
    append(log, b"more of it\n")
    (bad,) = follower.poll().rejected
    assert bad.line == 4
    another = open_engine().follow(str(log))
    assert another.poll().rejected == []
    another.close()


def test_a_line_without_end_is_passed_over(engine: Engine, log: Path, follower: TelemetryFollower) -> None:
    append(log, call(0) + b"x" * (20 * 1024 * 1024))
    assert follower.poll().refused == 0  # it may be a part of something
    append(log, b"\n" + call(1))
    (bad,) = follower.poll().rejected
    assert (bad.line, bad.problem) == (2, "longer than 16 MiB")
    assert tokens(engine) == 2


def test_documents_are_read_when_they_are_whole(
    engine: Engine, log: Path, follower: TelemetryFollower
) -> None:
    document = json.dumps([json.loads(line) for line in LANGFUSE.lines], indent=1)
    log.write_text(document[: len(document) // 2])
    assert follower.poll().refused == 0
    log.write_text(document)
    follower.poll()
    assert metrics(engine) == LANGFUSE.expected
    assert follower.poll().lines == 0


def test_a_document_that_stays_damaged_is_reported_once(log: Path, follower: TelemetryFollower) -> None:
    log.write_text('[\n{"id": 1,\n')
    assert [follower.poll().refused for _ in range(4)] == [0, 1, 0, 0]


def test_folders_are_followed(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    (folder / "2026").mkdir(parents=True)
    (folder / "README.md").write_text("# not telemetry\n")
    follower = engine.follow(str(folder))
    assert follower.poll().refused == 0
    CODEX.write(folder / "2026")
    report = follower.poll()
    follower.close()
    assert (report.sessions, report.refused) == (1, 0)
    assert metrics(engine) == CODEX.expected


def test_the_sources_of_the_configuration_are_followed(open_engine: OpenEngine, tmp_path: Path) -> None:
    engine = open_engine()
    follower = engine.follow()
    append(tmp_path / "a.jsonl", call(0))
    assert follower.poll().recorded == 0
    # Relative to the configuration, and read again when that changes.
    (tmp_path / "config.toml").write_text('[[self_evolution.telemetry.sources]]\npath = "*.jsonl"\n')
    assert follower.poll().recorded == 1
    follower.close()


def test_a_file_whose_name_is_no_text_is_followed_with_the_others_of_its_folder(
    engine: Engine, log: Path, open_engine: OpenEngine
) -> None:
    odd = log.with_name(os.fsdecode(b"odd\xff.jsonl"))
    append(log, call(1))
    append(odd, call(2))
    follower = open_engine().follow(str(log.parent))
    assert follower.poll().recorded == 2
    append(odd, call(3))
    assert follower.poll().recorded == 1
    follower.close()
    with pytest.raises(InvalidInput, match="name its folder"):
        engine.follow(str(odd))


def test_a_poll_stops_between_transactions(engine: Engine, log: Path, follower: TelemetryFollower) -> None:
    append(log, b"".join(call(number) for number in range(1200)))
    asked = iter([False, False, True, True, True])
    first = follower.poll(lambda: next(asked)).recorded
    assert 0 < first < 1200
    assert first + follower.poll().recorded == 1200
    assert tokens(engine) == 1200


def test_a_poll_that_has_enough_leaves_the_rest_of_long_files(
    engine: Engine, log: Path, open_engine: OpenEngine
) -> None:
    other = log.with_name("other.jsonl")
    append(log, b"".join(call(number) for number in range(1200)))
    append(other, b"".join(call(number) for number in range(1200, 1210)))
    follower = open_engine().follow(str(log.parent))
    recorded = []
    for _ in range(4):
        recorded.append(follower.poll(enough=lambda: True).recorded)
        assert follower.is_behind == (len(recorded) < 4)
    follower.close()
    assert recorded == [510, 500, 200, 0]
    assert tokens(engine) == 1210


def test_two_followers_count_once(log: Path, open_engine: OpenEngine) -> None:
    followers = [open_engine().follow(str(log)) for _ in range(2)]
    for number in range(0, 40, 2):
        append(log, call(number) + call(number + 1))
        for follower in followers:
            follower.poll()
    for follower in followers:
        follower.close()
    assert tokens(open_engine()) == 40


FOLLOW = textwrap.dedent(
    """
    import sys, time
    from prx_engine import Engine
    engine = Engine.open(sys.argv[1], config=sys.argv[2])
    follower = engine.follow(sys.argv[3])
    while True:
        follower.poll()
        print("polled", flush=True)
        time.sleep(0.002)
    """
)


def test_a_stream_is_followed_through_rotation_and_kill_9(
    tmp_path: Path, log: Path, open_engine: OpenEngine
) -> None:
    """Killed at random moments, rotated and truncated meanwhile: every call is counted, and once."""
    dice = random.Random(7)
    written = 0
    rotations = 0

    def write(lines: int) -> None:
        nonlocal written
        for _ in range(lines):
            append(log, call(written))
            written += 1

    for _ in range(6):
        process = _follower(tmp_path, log)
        for _ in range(8):
            write(dice.randrange(60))
            if dice.random() < 0.4:
                rotations += 1
                log.rename(log.with_name(f"agent.jsonl.{rotations}"))
            time.sleep(dice.uniform(0, 0.03))
        append(log, call(written)[:40])  # killed while its agent is in the middle of a line
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
        append(log, call(written)[40:])
        written += 1
    follower = open_engine().follow(str(log))
    follower.poll()
    follower.close()
    assert rotations > 10
    assert tokens(open_engine()) == written
    assert not open_engine().verify().problems


def _follower(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", FOLLOW, str(folder / "prx.db"), str(folder / "config.toml"), str(log)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, env=os.environ)
    assert process.stdout is not None
    assert process.stdout.readline() == b"polled\n"
    return process


def test_a_file_that_may_not_be_read_is_reported_once(
    log: Path, follower: TelemetryFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, call(0))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (bad,) = follower.poll().rejected
    assert (bad.file, bad.problem) == (str(log), "cannot be read: no permission")
    assert follower.poll().rejected == []


def test_following_works_on_postgresql(log: Path, open_engine: OpenEngine, postgres_url: str) -> None:
    engine = open_engine(postgres_url)
    follower = engine.follow(str(log))
    (unnamed,) = dumped([traces(span(1000, gen_ai__operation__name="execute_tool"))])
    for content in (call(0) + unnamed + b"\n", call(1), call(2)[:50], call(2)[50:] + b"nonsense\n"):
        append(log, content)
        follower.poll()
    follower.close()
    (named,) = dumped([traces(span(1001, **CHAT))])
    report = engine.import_lines([named], format="auto")
    assert report.waiting == 0
    assert tokens(engine) == 3
    assert sum(found.get("tool_calls", 0) for found in metrics(engine).values()) == 1
    assert not engine.verify().problems
