from __future__ import annotations

import gzip
import json

import pytest

from prx_engine.telemetry.registry import FORMAT_NAMES
from prx_tui.cli.importing import FORMATS
from tests.prx_tui.cli.conftest import START, WEEK_LATER, Prx, session_lines


def test_assign_with_a_layer_prints_one_word(run: Prx) -> None:
    assert run.done("assign", "s-1", "--layer", "L2") == "default\n"
    run.create("L2", "h", "--traffic-split", "1")
    assert run.done("assign", "s-2", "--layer", "L2") == "treatment\n"
    assert run.done("assign", "s-2", "--layer", "L1") == "default\n"


def test_assign_without_a_layer_answers_for_all(run: Prx) -> None:
    identifier = run.create("L2", "h", "--traffic-split", "1", "--set", "a.b=1")
    rows = [line.split()[:3] for line in run.done("assign", "s-1").splitlines()[1:]]
    assert rows == [["L1", "default", "–"], ["L2", "treatment", identifier[-8:]], ["L3", "default", "–"]]
    assert run.json("assign", "s-1")["L2"]["config"] == {"a.b": 1}
    assert run.json("assign", "s-1", "--layer", "L2")["experiment_id"] == identifier


def test_switched_off_is_said(run: Prx) -> None:
    run.create("L2", "h", "--traffic-split", "1")
    run.done("config", "set", "experiments.enabled", "false")
    result = run("evolution", "assign", "s-1", "--layer", "L2")
    assert result.stdout == "default\n"
    assert "experiments are switched off" in result.stderr
    for command in ("check", "experiments"):
        assert "experiments are switched off" in run("evolution", command).stderr
    assert "experiments are switched off" in run.done("status")
    line = run.refused("experiments", "create", "--layer", "L1", "--hypothesis", "h", "--treatment", "t")
    assert "switched off" in line


def test_record_takes_every_metric(run: Prx) -> None:
    run.done(
        *(
            "record",
            "s-1",
            "--tokens",
            "5210",
            "--thumbs-up",
            "1",
            "--thumbs-down",
            "0",
            "--corrections",
            "0",
        ),
        *("--first-token-ms", "420", "--first-token-ms", "610", "--relevance", "0.9", "--relevance", "0.7"),
        *("--tool-calls", "6", "--tool-calls-succeeded", "5", "--tasks", "1", "--tasks-succeeded", "1"),
        *("--recall-relevance", "0.8", "--started-at", START, "--cluster", "u-1", "--source", "agent"),
    )
    dimensions = run.json("fitness")["fitness"]["dimensions"]
    assert all(dimension["sessions"] == 1 for dimension in dimensions.values())
    assert dimensions["response_relevance"]["score"] == 0.8


def test_record_takes_a_file_and_options_stand_above_it(run: Prx) -> None:
    fields = json.dumps({"session_id": "s-1", "relevance": [0.1], "thumbs_up": 1})
    run.done("record", "s-1", "--json-file", "-", "--relevance", "0.5", input=fields)
    dimensions = run.json("fitness")["fitness"]["dimensions"]
    assert dimensions["response_relevance"]["score"] == 0.5
    assert dimensions["user_satisfaction"]["score"] == 1.0


def test_record_takes_ready_made_scores(run: Prx) -> None:
    run.done("record", "s-1", "--score", "task_completion=0.8")
    assert run.json("fitness")["fitness"]["dimensions"]["task_completion"]["score"] == 0.8


@pytest.mark.parametrize(
    ("options", "content", "told"),
    [
        (("--tokens", "-5"), None, "tokens: found -5"),
        (("--relevance", "1.5"), None, "relevance.0: found 1.5"),
        (("--relevance", "nan"), None, "relevance.0: found nan"),
        (("--score", "speed=1"), None, "speed"),
        (("--variant", "control"), None, "layer: missing beside variant"),
        (("--started-at", "yesterday"), None, "started_at"),
        (("--json-file", "-"), "[1]", "stdin: not a JSON object, but [1]"),
        (("--json-file", "-"), "{", "stdin: not JSON"),
        (("--json-file", "-"), '{"tokens": NaN}', "stdin: not JSON: NaN"),
        (("--json-file", "-"), '{"tokns": 1}', "tokns: no such field; did you mean tokens?"),
        (("--json-file", "-"), '{"self": 1}', "self: no such field"),
        (("--json-file", "-"), '{"session_id": "s-2"}', "another session"),
        (("--json-file", "-"), b"\xff", "stdin: not UTF-8"),
        (("--json-file", "-", "--score", "task_completion=.5"), '{"scores": 5}', "scores: found 5; allowed"),
        (
            ("--json-file", "-", "--score", "task_completion=.5"),
            '{"scores": []}',
            "scores: found []; allowed",
        ),
        (("--json-file", "none.json"), None, "none.json: No such file"),
    ],
)
def test_what_record_refuses(
    run: Prx, options: tuple[str, ...], content: str | bytes | None, told: str
) -> None:
    assert told in run.refused("record", "s-1", *options, input=content)


def test_nothing_to_record_is_wrong_usage(run: Prx) -> None:
    assert "nothing to record" in run.refused("record", "s-1", code=2)
    assert "DIMENSION=0.8" in run.refused("record", "s-1", "--score", "x", code=2)


def test_import_reports_each_file(run: Prx) -> None:
    run.create("L2")
    run.now(WEEK_LATER)
    known, unknown = run.folder / "known.jsonl", run.folder / "unknown.jsonl"
    known.write_text(session_lines(5, "control", lambda i: 0.5), encoding="utf-8")
    unknown.write_text(session_lines(3, "control", lambda i: 0.5, layer="L1"), encoding="utf-8")
    result = run("evolution", "import", str(known), str(unknown))
    assert (result.exit_code, result.stdout) == (0, "")
    first, second, third = result.stderr.splitlines()
    assert first == (
        f"prx: {known}: 5 lines, 5 sessions; no data for: task_completion, response_latency,"
        " token_efficiency, memory_precision, user_satisfaction"
    )
    assert second.startswith(f"prx: {unknown}: 3 lines, 3 sessions")
    assert third.startswith(f"prx: {unknown}: 3 sessions stated a variant, but no experiment")
    assert [file["sessions"] for file in run.json("import", str(known), str(unknown))] == [5, 3]


def test_import_takes_the_good_lines_and_names_the_bad_ones(run: Prx) -> None:
    file, rejects = run.folder / "mixed.jsonl", run.folder / "rejects.jsonl"
    bad = [b'{"session_id": "a", "tokens": -1}', b"\xff\xfe not JSON", b'{"tokens": 1}']
    file.write_bytes(b'{"session_id": "ok", "tokens": 1}\n\n' + b"\n".join(bad) + b'\n{"session_id": "ok2"}')
    result = run("evolution", "import", str(file), "--rejects", str(rejects))
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"prx: {file}: 5 lines, 2 sessions")
    assert lines[1].startswith(f"prx: {file}:3: tokens: found -1")
    assert lines[2].startswith(f"prx: {file}:4: not JSON")
    assert lines[3] == f"prx: {file}:5: session_id: missing"
    assert lines[4] == "prx: 3 lines refused; everything else is imported"
    assert rejects.read_bytes().splitlines() == bad


def test_import_names_only_the_first_bad_lines(run: Prx) -> None:
    result = run("evolution", "import", "-", input="x\n" * 30)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert len(lines) == 1 + 20 + 2
    assert lines[-2] == "prx: stdin: and 10 lines more refused"


def test_files_that_cannot_be_read_do_not_keep_others_out(run: Prx) -> None:
    good = run.folder / "good.jsonl"
    good.write_text('{"session_id": "s"}\n', encoding="utf-8")
    result = run("evolution", "import", "none.jsonl", "none-*.jsonl", str(good))
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "prx: none.jsonl: No such file or directory"
    assert lines[1] == "prx: none-*.jsonl: no file fits"
    assert lines[2].startswith(f"prx: {good}: 1 line, 1 session")
    assert lines[3] == "prx: 2 files could not be read"


def test_of_a_folder_only_what_is_telemetry_is_read(run: Prx) -> None:
    folder = run.folder / "logs"
    (folder / "deep").mkdir(parents=True)
    (folder / "README.md").write_text("# Logs\n", encoding="utf-8")
    (folder / "deep" / "s.jsonl.gz").write_bytes(gzip.compress(b'{"session_id": "s", "tokens": 1}\n'))
    (folder / ".hidden.jsonl").write_text('{"session_id": "h", "tokens": 1}\n', encoding="utf-8")
    result = run("evolution", "import", str(folder))
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"prx: {folder / 'deep' / 's.jsonl.gz'}: 1 line, 1 session")


def test_the_formats_are_those_of_the_engine() -> None:
    assert set(FORMATS) == set(FORMAT_NAMES)


def test_following_goes_with_files_alone(run: Prx) -> None:
    assert "stdin" in run.refused("import", "-", "--follow", code=2)


def test_a_line_without_end_is_refused_without_reading_it_whole(run: Prx) -> None:
    file = run.folder / "endless.jsonl"
    with file.open("wb") as out:
        for _ in range(40):
            out.write(b"x" * 1024 * 1024)
        out.write(b'\n{"session_id": "s"}\n')
    result = run("evolution", "import", str(file))
    assert result.exit_code == 1
    assert f"{file}:1: longer than 16 MiB" in result.stderr
    assert "2 lines, 1 session" in result.stderr
