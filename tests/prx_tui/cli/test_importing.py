"""Importing what agents write, and following it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prx_tui.cli.call import Call
from tests.prx_tui.cli.conftest import WEEK_LATER, Prx
from tests.support.telemetry import CLAUDE_CODE, OTLP


class Rounds:
    """Tells a command to stop when the things to do between its rounds are done."""

    def __init__(self, *between: Callable[[], object]) -> None:
        self._between = iter(between)

    def wait(self, seconds: float) -> bool:
        if not seconds:
            return False
        action = next(self._between, None)
        if action is not None:
            action()
        return action is None

    @contextmanager
    def stopping(self) -> Iterator[Rounds]:
        yield self


def appending(path: Path, *lines: bytes) -> Callable[[], object]:
    def append() -> None:
        with path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))

    return append


def test_a_format_is_recognised_and_says_what_it_cannot_tell(run: Prx) -> None:
    run.now(WEEK_LATER)
    path = CLAUDE_CODE.write(run.folder)
    result = run("evolution", "import", str(path))
    assert result.exit_code == 0
    assert result.stderr == (
        f"prx: {path}: 8 lines, 1 session; no data for: response_relevance, response_latency,"
        " memory_precision\n"
    )
    (report,) = run.json("import", str(path), "--format", "claude-code")
    assert (report["format"], report["recorded"], report["refused"]) == ("claude-code", 6, 0)


def test_what_waits_for_its_session_is_told(run: Prx) -> None:
    path = run.folder / "spans.jsonl"
    path.write_bytes(OTLP.lines[0] + b"\n")
    assert "1 record named no session" in run("evolution", "import", str(path)).stderr


def test_files_are_followed_until_told_to_stop(run: Prx) -> None:
    run.now(None)
    log = run.folder / "log.jsonl"
    rounds = Rounds(
        appending(log, b'{"session_id": "a", "tokens": 1}'),
        appending(log, b"nonsense", b'{"session_id": "b", "tokens": 1}'),
    )
    result = run("evolution", "import", str(log), "--follow", call=Call(stopping=rounds.stopping))
    assert (result.exit_code, result.stdout) == (0, "")
    told = result.stderr.splitlines()
    assert told[0] == f"prx: following {log}; Ctrl-C stops"
    assert told[1:3] == ["prx: 1 session with news in 1 line", "prx: 1 session with news in 2 lines"]
    assert told[3].startswith(f"prx: {log}:2: not JSON")
    assert told[4:] == ["prx: stopped"]


def test_watch_follows_the_sources_of_the_configuration(run: Prx) -> None:
    run.create("L2")
    run.now(None)
    run.config.write_text('[[self_evolution.telemetry.sources]]\npath = "logs/*.jsonl"\n')
    (run.folder / "logs").mkdir()
    log = run.folder / "logs" / "a.jsonl"
    rounds = Rounds(appending(log, b'{"session_id": "a", "tokens": 1}'))
    result = run("evolution", "watch", call=Call(stopping=rounds.stopping))
    assert result.exit_code == 0
    assert "1 session with news in 1 line" in result.stderr


def test_a_followed_clock_cannot_stand_still(run: Prx) -> None:
    assert "PRX_NOW" in run.refused("import", "x.jsonl", "--follow")


def test_json_reports_name_the_files_of_a_folder(run: Prx) -> None:
    folder = run.folder / "logs"
    folder.mkdir()
    for name in ("b", "a"):
        (folder / f"{name}.jsonl").write_text(json.dumps({"session_id": name, "tokens": 1}) + "\n")
    reports = run.json("import", str(folder))
    assert [report["file"] for report in reports] == [str(folder / "a.jsonl"), str(folder / "b.jsonl")]


def test_refused_lines_are_not_saved_over_what_is_imported(run: Prx) -> None:
    file = run.folder / "sessions.jsonl"
    file.write_text('{"session_id": "s"}\n')
    for written in (str(file), f"{run.folder}/./sessions.jsonl"):
        refused = run("evolution", "import", str(run.folder), "--rejects", written)
        assert refused.exit_code == 2
        assert "is one of the files to import" in refused.stderr
    assert file.read_text() == '{"session_id": "s"}\n'


def test_a_folder_without_anything_known_and_a_wrong_format_are_told(run: Prx) -> None:
    folder = run.folder / "folder"
    folder.mkdir()
    (folder / "notes.jsonl").write_text('{"note": 1}\n')
    assert "1 file, none of a known format" in run("evolution", "import", str(folder)).stderr
    otlp = run.folder / "otlp.json"
    otlp.write_bytes(OTLP.lines[0])
    told = run("evolution", "import", "--format", "claude-code", str(otlp)).stderr
    assert "nothing of the format claude-code tells of a session" in told


def test_watch_begins_without_a_database_and_names_sources_that_are_not_there(run: Prx) -> None:
    run.now(None)
    run.config.write_text('[[self_evolution.telemetry.sources]]\npath = "absent/*.jsonl"\n')
    result = run("evolution", "watch", call=Call(stopping=Rounds().stopping))
    assert result.exit_code == 0
    assert "telemetry source absent/*.jsonl: no file fits yet" in result.stderr
    assert run.database.exists()
