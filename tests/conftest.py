"""What every test may ask for, and what it must not see: the settings of the person who runs it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from prx_engine import Engine
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine, engines
from tests.support.postgres import PostgresServer, PostgresUnavailable, running_server

settings.register_profile(
    "ci",
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile("ci")

# Skips that hide whole parts of the suite; the terminal summary repeats their reasons.
_LOUD_SKIPS = ("PostgreSQL tests skipped", "Sample tests skipped")
_PERSONAL_VARIABLES = (
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "NO_COLOR",
    "OPENPRX_CONFIG_DIR",
    "PRX_CONFIG",
    "PRX_DATABASE_URL",
    "PRX_NOW",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)


@pytest.fixture(scope="session", autouse=True)
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or writes the configuration and data of the person who runs it."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for variable in _PERSONAL_VARIABLES:
            patch.delenv(variable, raising=False)
        patch.setenv("HOME", str(home))
        yield home


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands at 2026-06-01T00:00:00Z until the test moves it."""
    return ManualClock("2026-06-01T00:00:00Z")


@pytest.fixture
def open_engine(tmp_path: Path, clock: ManualClock) -> Iterator[OpenEngine]:
    """Opens further engines on the test's database (or another one); all are closed at the end."""
    with engines(tmp_path, clock) as factory:
        yield factory


@pytest.fixture
def engine(open_engine: OpenEngine) -> Engine:
    """An engine on a new SQLite file, with the default configuration, under the test's clock."""
    return open_engine()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines opened by the test wait for a busy database for a moment only."""
    monkeypatch.setattr("prx_engine.store.database.BUSY_TIMEOUT_SECONDS", 0.05)


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of real telemetry files, named by PRX_SAMPLES."""
    named = os.environ.get("PRX_SAMPLES")
    if not named:
        pytest.skip("Sample tests skipped: PRX_SAMPLES names no folder")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"PRX_SAMPLES is not a folder: {named}")
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server a test process, started for the first test that asks."""
    try:
        with running_server() as server:
            yield server
    except PostgresUnavailable as error:
        pytest.skip(f"PostgreSQL tests skipped: {error}")


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database of this test alone."""
    with postgres_server.database() as url:
        yield url


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that name a PostgreSQL fixture, so that -m postgres selects them."""
    for item in items:
        if {"postgres_server", "postgres_url"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.postgres)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which part of the suite did not run and why, and how to repeat the order of a failing run."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple):
            reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    for reason, count in sorted(reasons.items()):
        if reason.startswith(_LOUD_SKIPS):
            terminalreporter.write_line(f"{reason} ({count} skipped)", yellow=True, bold=True)
    seed = terminalreporter.config.getoption("randomly_seed", None)
    if seed is not None and (terminalreporter.stats.get("failed") or terminalreporter.stats.get("error")):
        terminalreporter.write_line(f"To repeat this order: pytest --randomly-seed={seed}")
