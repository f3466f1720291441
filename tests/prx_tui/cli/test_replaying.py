from __future__ import annotations

import json

import pytest

from tests.prx_engine.test_replay import raw, stream
from tests.prx_tui.cli.conftest import Prx


@pytest.fixture
def file(run: Prx) -> str:
    path = run.folder / "sessions.jsonl"
    path.write_bytes(b"\n".join(raw(stream())))
    return str(path)


def test_a_replay_prints_each_check_and_the_verdict(run: Prx, file: str) -> None:
    told = run.done("replay", file)
    lines = told.splitlines()
    assert lines[0].split()[:2] == ["Check", "(UTC)"]
    assert lines[1].startswith("2026-06-02 00:00")
    assert "waiting: control has" in lines[1]
    assert "Verdict   treatment wins, on 2026-06-0" in told
    assert not run.database.exists()


def test_a_replay_tries_other_settings(run: Prx, file: str) -> None:
    found = run.json("replay", file, "--set", "confidence_level=0.9999", "--set", "min_sample_size=30")
    assert found["details"]["experiment"]["parameters"]["experiments"]["confidence_level"] == 0.9999
    assert [check["look"]["k"] for check in found["checks"] if check["look"]][:2] == [1, 2]
    assert "found 2; allowed" in run.refused("replay", file, "--set", "confidence_level=2")


def test_a_replay_of_an_unfinished_stream_tells_what_may_come(run: Prx) -> None:
    told = run.done("replay", "-", input=b"\n".join(raw(stream(days=3, gain=0.0))))
    assert "Verdict   none yet: still running at the end of the file" in told
    assert "Forecast  At 30 sessions a day and arm, " in told


def test_wrong_lines_and_files_are_said(run: Prx, file: str) -> None:
    result = run("evolution", "replay", "-", input=b"\n".join([b"{}", *raw(stream(days=1))]))
    assert result.exit_code == 1
    assert "stdin:1: session_id: missing" in result.stderr
    assert "No such file" in run.refused("replay", str(run.folder / "none.jsonl"))
    assert "no line states a variant" in run.refused("replay", "-", input=json.dumps({"session_id": "s"}))
