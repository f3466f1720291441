from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from prx_engine import Engine
from prx_engine.errors import StoreBusy
from prx_engine.records import CheckResult
from prx_tui.cli.call import Call
from tests.prx_tui.cli.conftest import WEEK_LATER, Prx, session_lines


def skewed(i: int) -> float:
    return 0.9 if i % 20 == 0 else 0.01


def better(i: int) -> float:
    return 0.95 if i % 2 else 0.05


@pytest.fixture
def full(run: Prx) -> str:
    """An experiment that its next check decides for treatment."""
    identifier = run.create("L2", "h", "--set", "a.b=1")
    run.now(WEEK_LATER)
    run.done(
        "import", "-", input=session_lines(200, "control", skewed) + session_lines(200, "treatment", better)
    )
    return identifier


def test_check_tells_what_happened_and_why(run: Prx, full: str) -> None:
    (line,) = run.done("check").splitlines()
    assert line.startswith(f"{full[-8:]}  L2  concluded, treatment wins: treatment is better: lift +")
    experiment = run.json("experiments", "--id", full)
    assert (experiment["winner"], experiment["promotion"]) == ("treatment", "applied")
    assert experiment["conclusion"] == "treatment_wins"
    told = run.done("experiments", "--id", full, "--details")
    assert "Mann–Whitney" in told


def test_check_tells_when_the_next_one_is(run: Prx) -> None:
    run.create()
    (line,) = run.done("check").splitlines()
    assert "not due: no scheduled time has come; next check 2026-06-02 00:00 UTC (in 1 d)" in line
    run.now("2026-06-02T01:00:00Z")
    (line,) = run.done("check").splitlines()
    assert "waiting" in line
    (result,) = run.json("check")
    assert result["outcome"] == "not_due"


def test_check_without_experiments(run: Prx) -> None:
    run.done("assign", "s-1")
    result = run("evolution", "check")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "prx: no active experiments\n")


def test_preview_shows_and_writes_nothing(run: Prx, full: str) -> None:
    told = run.done("preview", full)
    assert "treatment wins" in told
    assert "robust  (Welch" in told
    assert run.json("preview", full[-8:])["conclusion"] == "treatment_wins"
    assert run.json("experiments", "--id", full)["status"] == "running"
    run.done("check")
    assert "it is converged" in run.refused("preview", full)


def test_a_preview_says_what_is_missing(run: Prx) -> None:
    identifier = run.create()
    assert "Missing for a look" in run.done("preview", identifier)


def test_a_verdict_that_waits_shows_everywhere(run: Prx, full: str) -> None:
    # The switch is read at each check.
    run.done("config", "set", "experiments.auto_converge.enabled", "false")
    assert "verdict, treatment wins" in run.done("check")
    assert "!verdict treatment wins" in run.done("experiments")
    assert "waits for you to promote, reject, extend or cancel" in run.done("experiments", "--id", full)
    assert "verdict treatment wins waits for an operator" in run.done("status")
    assert run.json("status")["attention"]


def fake(pauses: Callable[[float], object]) -> Call:
    return Call(pause=pauses, monotonic=iter(range(1000)).__next__)


def test_wait_returns_at_once_when_it_has_ended(run: Prx, full: str) -> None:
    run.done("check")
    run.now(None)
    assert run.done("wait", full) == "treatment_wins\n"


def test_wait_notices_the_end(run: Prx) -> None:
    run.now(None)
    identifier = run.create()
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            with Engine.open(run.database) as engine:
                engine.cancel(identifier)

    assert run.done("wait", identifier, "--timeout", "10m", call=fake(pause)) == "cancelled\n"
    assert len(pauses) == 2


def test_wait_gives_up(run: Prx) -> None:
    run.now(None)
    identifier = run.create()
    result = run("evolution", "wait", identifier, "--timeout", "3", call=fake(lambda seconds: None))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is still running; gave up waiting" in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", [("wait", "4f"), ("watch",)])
def test_commands_that_wait_refuse_a_clock_that_stands_still(run: Prx, command: tuple[str, ...]) -> None:
    run.create()
    assert "PRX_NOW stops the clock" in run.refused(*command)


def test_the_dashboard_refuses_a_clock_that_stands_still(run: Prx) -> None:
    result = run("dashboard")
    assert result.exit_code == 1
    assert "PRX_NOW stops the clock" in result.stderr


class Rounds:
    """Tells ``watch`` to stop after some rounds, and does something between them."""

    def __init__(self, *between: Callable[[], object]) -> None:
        self._between = iter(between)
        self.pauses: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        action = next(self._between, None)
        if action is None:
            return True
        action()
        return False

    def stopping(self) -> AbstractContextManager[Rounds]:
        @contextmanager
        def context() -> Iterator[Rounds]:
            yield self

        return context()


def test_watch_prints_what_comes_of_checks(run: Prx, full: str) -> None:
    run.now(None)
    rounds = Rounds(lambda: None, lambda: None)
    told = run.done("watch", "--interval", "5m", call=Call(stopping=rounds.stopping))
    assert f"{full[-8:]}  L2  concluded" in told
    assert len(told.splitlines()) == 1
    assert rounds.pauses == [300, 300, 300]


def test_watch_writes_json_lines(run: Prx, full: str) -> None:
    run.now(None)
    told = run.done("watch", "--json", call=Call(stopping=Rounds().stopping))
    assert json.loads(told)["outcome"] == "concluded"


def test_watch_survives_a_busy_database(run: Prx, monkeypatch: pytest.MonkeyPatch) -> None:
    run.now(None)
    run.create()
    real, calls = Engine.check, []

    def check(self: Engine, experiment_id: str | None = None) -> list[CheckResult]:
        calls.append(1)
        if len(calls) < 4:
            raise StoreBusy("database x: busy for too long; another process holds it, try again")
        return real(self, experiment_id)

    monkeypatch.setattr(Engine, "check", check)
    rounds = Rounds(*[lambda: None] * 4)
    result = run("evolution", "watch", "--interval", "60", call=Call(stopping=rounds.stopping))
    assert result.exit_code == 0, result.output
    assert result.stderr.count("busy for too long") == 1
    assert "it works again" in result.stderr
    assert rounds.pauses == [120, 240, 480, 60, 60]


def test_verify_finds_a_total_that_is_wrong(run: Prx, full: str) -> None:
    assert "Every total and every score" in run.done("verify")
    with sqlite3.connect(run.database) as database:
        database.execute("UPDATE deployment_totals SET n = n + 1")
    result = run("evolution", "verify")
    assert result.exit_code == 1
    assert "deployment, clock hour" in result.stdout
    assert "totals or scores are wrong" in result.stderr


def test_backup_copies_and_never_overwrites(run: Prx, full: str) -> None:
    copy = run.folder / "copy.db"
    run.done("backup", str(copy))
    assert copy.stat().st_mode & 0o777 == 0o600
    assert run.json("--database", str(copy), "experiments")[0]["experiment_id"] == full
    assert "File exists" in run.refused("backup", str(copy))


def test_status_says_what_is_late(run: Prx, full: str) -> None:
    told = run.done("status")
    assert told.splitlines()[1] == "1 active experiment"
    assert "check overdue 6 d; does anything run the checks?" in told
    run.done("check")
    assert "0 active experiments\nNothing needs attention" in run.done("status")
