from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import runpy
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from prx_engine import Engine
from prx_tui.cli import reporting
from prx_tui.cli.program import prx
from tests.prx_tui.cli.conftest import WEEK_LATER, Prx

ROOT = Path(__file__).parents[3]
PROGRAM = (sys.executable, "-c", "from prx_tui.cli import main; main()")


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL_COMMANDS = dict(commands(prx))


@pytest.mark.parametrize("path", ALL_COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(path: tuple[str, ...]) -> None:
    command = ALL_COMMANDS[path]
    result = CliRunner().invoke(prx, [*path, "--help"], prog_name="prx")
    assert result.exit_code == 0
    assert re.search(rf"Examples?:\n.*\bprx {' '.join(path[:2])}|\$\(prx ", result.stdout, re.DOTALL), (
        result.stdout
    )
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.opts


def test_the_commands_of_the_documentation_work_letter_for_letter(run: Prx) -> None:
    identifier = run.create()
    for line in (
        "evolution experiments --status running",
        f"evolution experiments --id {identifier}",
        f"evolution experiments --id {identifier} --details",
        "evolution fitness",
        "evolution fitness --history --last 30d",
        "evolution fitness --breakdown",
        f"evolution experiments cancel {identifier}",
    ):
        result = run(*line.split())
        assert result.exit_code == 0, result.output


def test_alone_and_not_on_a_terminal_it_prints_help(run: Prx) -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: prx" in result.stderr


@pytest.mark.parametrize(
    ("term", "size", "told"),
    [
        ("dumb", (24, 80), "TERM is dumb: set TERM, or "),
        ("unknown", (24, 80), "TERM is unknown: set TERM, or "),
        ("xterm", (0, 0), "a terminal that tells its size; "),
    ],
)
@pytest.mark.parametrize("args", [(), ("dashboard",), ("demo",)], ids=" ".join)
def test_a_terminal_that_can_show_no_screen_is_refused(
    run: Prx, args: tuple[str, ...], term: str, size: tuple[int, int], told: str
) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    apart = {"PRX_NOW", "COLUMNS", "LINES"}
    environment = {name: value for name, value in os.environ.items() if name not in apart} | {"TERM": term}
    try:
        done = subprocess.run(
            [*PROGRAM, *args],
            stdin=follower,
            stdout=follower,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env=environment,
        )
    finally:
        os.close(leader)
        os.close(follower)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("prx: the ")
    assert told in line


def test_a_group_alone_prints_help(run: Prx) -> None:
    result = run("evolution")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Commands:" in result.stderr


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("evolve",), "No such command 'evolve'"),
        (("evolution", "--colour"), "No such option"),
        (("evolution", "experiments", "cancel"), "Missing argument 'ID'"),
        (("evolution", "wait", "x", "--timeout", "soon"), "found soon; write it as"),
        (("evolution", "import"), "Missing argument 'FILE...'"),
        (("dashboard", "--json"), "nothing to write"),
    ],
)
def test_wrong_usage_is_one_line_and_2(run: Prx, args: tuple[str, ...], told: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert told in line
    assert "--help)" in line


@pytest.mark.parametrize(
    "args",
    [
        ("experiments",),
        ("experiments", "--id", "4f"),
        ("experiments", "cancel", "4f"),
        ("fitness",),
        ("check",),
        ("preview", "4f"),
        ("status",),
        ("verify",),
        ("backup", "x.db"),
    ],
)
def test_commands_that_read_make_no_database(run: Prx, args: tuple[str, ...]) -> None:
    line = run.refused(*args)
    assert line.startswith(f"prx: no database at {run.database}")
    assert not run.database.exists()


def test_a_newer_database_is_refused(run: Prx) -> None:
    run.create()
    with sqlite3.connect(run.database) as database:
        database.execute("UPDATE prx_schema SET version = 99")
    assert "newer release (schema 99" in run.refused("experiments")


def test_a_file_that_is_no_database_is_refused(run: Prx) -> None:
    run.database.write_bytes(b"not a database at all" * 100)
    assert "not a database" in run.refused("experiments")


def test_a_bad_configuration_is_refused_with_its_line(run: Prx) -> None:
    run.create()
    run.config.write_text("[self_evolution.experiments]\nmin_sample_size = 1\n", encoding="utf-8")
    assert f"{run.config}:2: self_evolution.experiments.min_sample_size: found 1" in run.refused(
        "experiments"
    )
    run.config.write_text("[self_evolution\n", encoding="utf-8")
    assert f"{run.config}:1:" in run.refused("check")


def test_a_bad_clock_is_refused(run: Prx) -> None:
    run.create()
    run.now("soon")
    assert "PRX_NOW" in run.refused("experiments")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "1969-12-31T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("command", ["experiments", "fitness", "status", "check"])
def test_a_clock_of_another_age_is_refused(run: Prx, time: str, command: str) -> None:
    run.create()
    run.now(time)
    assert "PRX_NOW: " in run.refused(command)


@pytest.mark.parametrize("key", ["auto_converge.max_duration_hours", "min_sample_size"])
def test_numbers_too_large_to_compute_with_are_refused(run: Prx, key: str) -> None:
    assert "allowed: a whole number from " in run.refused("config", "set", f"experiments.{key}", "9" * 400)


def test_limits_too_large_are_wrong_usage(run: Prx) -> None:
    identifier = run.create()
    assert "--limit" in run.refused("experiments", "--limit", "9" * 20, code=2)
    assert "--hours" in run.refused("experiments", "extend", identifier, "--hours", "9" * 20, code=2)


@pytest.mark.parametrize(
    "command",
    ["import -", "record s --json-file -", "experiments create --file -", "replay -"],
)
def test_a_closed_stdin_is_one_line(run: Prx, command: str) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *PROGRAM, "evolution", *command.split()],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "prx: stdin is closed\n")


@pytest.mark.parametrize(
    "command",
    ["experiments --id", "experiments --details --id", "experiments cancel", "experiments rollback",
     "experiments rollback --list", "preview", "wait"],
)  # fmt: skip
def test_an_id_that_is_not_utf_8_is_of_no_experiment(run: Prx, command: str) -> None:
    run.create()
    if command == "wait":
        run.now(None)
    assert "no experiment " in run.refused(*command.split(), "\udc80")


def test_names_that_are_not_utf_8_are_written_as_json(run: Prx) -> None:
    name = str(run.folder / "\udc80.jsonl")
    result = run("evolution", "import", name, "--json")
    assert (result.exit_code, json.loads(result.stdout)[0]["file"]) == (1, name)
    assert "No such file" in result.stderr


def test_config_shows_origin_and_range(run: Prx) -> None:
    run.done("config", "set", "experiments.min_sample_size", "200")
    run.done("config", "set", "self_evolution.fitness.normalization.latency_p50_ms", "[500, 8000]")
    run.done("config", "set", "promotion.workspace", "files")
    lines = {line["key"].removeprefix("self_evolution."): line for line in run.json("config")}
    assert lines["experiments.min_sample_size"] == {
        "key": "self_evolution.experiments.min_sample_size",
        "value": 200,
        "default": 100,
        "origin": "file",
        "allowed": "a whole number from 2 to 1000000000",
    }
    assert lines["fitness.normalization.latency_p50_ms"]["value"] == [500, 8000]
    assert lines["promotion.workspace"]["value"] == "files"
    assert lines["experiments.enabled"]["origin"] == "default"
    row = next(line for line in run.done("config").splitlines() if "min_sample_size" in line)
    assert row.split(None, 3)[1:] == ["200", "file", "a whole number from 2 to 1000000000"]
    assert run.done("config", "path") == f"{run.config}\n"


def test_config_set_refuses_what_is_not_allowed(run: Prx) -> None:
    assert "found 1; allowed: a whole number from 2 to 1000000000" in run.refused(
        "config", "set", "experiments.min_sample_size", "1"
    )
    assert "did you mean min_sample_size?" in run.refused("config", "set", "experiments.min_sample_siz", "20")
    assert not run.config.exists()


def test_config_set_takes_a_value_that_looks_like_an_option(run: Prx) -> None:
    assert "found -5; allowed: a whole number from 2 to 1000000000" in run.refused(
        "config", "set", "experiments.min_sample_size", "-5"
    )


def test_a_bug_is_one_line_and_a_traceback_only_on_demand(run: Prx, monkeypatch: pytest.MonkeyPatch) -> None:
    run.create()

    def broken(self: Engine, *args: object) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(Engine, "experiments", broken)
    line = run.refused("experiments")
    assert "ZeroDivisionError: by zero; please report it" in line
    monkeypatch.setenv("PRX_DEBUG", "1")
    assert "Traceback" in run("evolution", "experiments").stderr


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (BrokenPipeError(), 1, ""),
        (OSError(errno.ENOSPC, "No space left on device", "x.db"), 1, "prx: x.db: No space left on device\n"),
        (SystemExit(3), 3, ""),
    ],
)
def test_every_end_has_its_exit_code(
    error: BaseException,
    code: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reporting, "_drop_output", lambda: None)

    def work() -> None:
        raise error

    assert reporting.exit_code_of(work) == code
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Prx, shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("no bash")
    result = run("completion", shell)
    assert result.exit_code == 0, result.output
    assert "_PRX_COMPLETE" in result.stdout


def test_experiment_ids_complete(run: Prx, monkeypatch: pytest.MonkeyPatch) -> None:
    identifier = run.create("L2", "shorter\nprompt")
    monkeypatch.setenv("COMP_WORDS", f"prx evolution experiments cancel {identifier[:4]}")
    monkeypatch.setenv("COMP_CWORD", "4")
    monkeypatch.setenv("_PRX_COMPLETE", "bash_complete")
    assert run().stdout == f"plain,{identifier}\n"
    monkeypatch.setenv("PRX_DATABASE_URL", str(run.folder / "none.db"))
    result = run()
    assert (result.stdout.strip(), result.stderr) == ("", "")


def program(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *args], capture_output=True, text=True, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


def test_a_reader_that_goes_away_is_no_error(run: Prx) -> None:
    for layer in ("L1", "L2", "L3"):
        run.create(layer, "x" * 1500)
    arguments = " ".join(f"'{part}'" for part in PROGRAM)
    done = subprocess.run(
        [
            "sh",
            "-c",
            f"{arguments} evolution experiments >&- <&- && {arguments} evolution config | true",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [line for line in done.stderr.splitlines() if not line.startswith("prx: file: ")] == []


def test_no_colour_and_no_cut_in_a_pipe(run: Prx) -> None:
    run.create("L2", "why " * 60)
    done = program("evolution", "experiments", env={**os.environ, "COLUMNS": "40"})
    assert done.returncode == 0
    assert ("why " * 60).strip() in done.stdout
    assert "\x1b" not in done.stdout


def test_a_terminal_that_knows_few_characters_gets_question_marks(run: Prx) -> None:
    run.create("L2", "提示")
    done = program("evolution", "experiments", env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "??" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_watch_ends_cleanly_when_told_to(run: Prx, number: signal.Signals) -> None:
    run.create()
    run.now(None)
    process = subprocess.Popen(
        [*PROGRAM, "evolution", "watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "running the checks" in process.stderr.readline()
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors.splitlines()[-1] == "prx: stopped"


def test_the_second_name_and_the_dashboard_alone_start() -> None:
    for code in (
        "from prx_tui.cli import main; main()",
        "from prx_tui.cli import dashboard_main; dashboard_main()",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Usage: ")


def readme_commands() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"\bprx ((?:evolution|dashboard|demo|completion)\b[^\n`|#&]*)", text)


def test_the_commands_of_the_readme_exist() -> None:
    found = readme_commands()
    assert len(found) > 10
    for line in found:
        words = line.split()
        path: tuple[str, ...] = ()
        command: click.Command = prx
        for word in words:
            if not isinstance(command, click.Group):
                break
            inner = command.get_command(click.Context(command), word)
            if inner is None:
                break
            command, path = inner, (*path, word)
        assert path, line
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        for word in words[len(path) :]:
            if word.startswith("--"):
                assert word.split("=")[0] in known, f"{line}: {word}"


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "first_experiment.py")],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "treatment wins" in done.stdout
    assert WEEK_LATER[:10] in done.stdout


def test_the_sample_is_what_its_script_makes() -> None:
    made = runpy.run_path(str(ROOT / "examples" / "make_sample.py"))
    assert (ROOT / "examples" / "sessions.jsonl").read_text(encoding="utf-8").splitlines() == made["lines"]()
