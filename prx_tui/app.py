"""The dashboard: watches, reads, follows and checks in a thread, and shows what that finds."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from textual.app import App, SystemCommand
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer

from prx_engine.clock import SystemClock
from prx_engine.engine import Engine
from prx_engine.errors import PrxError
from prx_tui.actions import Action
from prx_tui.ending import ending_with
from prx_tui.screens.base import LiveScreen
from prx_tui.screens.experiments import ExperimentsScreen
from prx_tui.snapshot import Snapshot, View
from prx_tui.text import safe_text
from prx_tui.view.header import age_words
from prx_tui.view.status import CHECKED_ELSEWHERE, Checking
from prx_tui.worker import (
    POLL_SECONDS,
    Checked,
    CheckFailed,
    Followed,
    FollowFailed,
    News,
    Opened,
    Read,
    Trouble,
    Worker,
    worth_telling,
)

if TYPE_CHECKING:
    from textual.command import Provider

    from prx_tui.operations import Request

T = TypeVar("T")
EngineFactory = Callable[[], Engine]

GRACE: Final = CHECKED_ELSEWHERE.grace
_TICK_SECONDS: Final = 1.0
_SILENT_SECONDS: Final = 3.0
"""A worker that reads for so long waits for somebody who has locked the database."""

_TOLD_SECONDS: Final = 8.0
_HEIGHTS: Final = [(0, "-low"), (16, "-high")]
"""A low terminal has no lines to spare around a dialog."""

_PATIENCE_SECONDS: Final = 2.0
_WAITING_WORDS: Final = "Waiting for the database: another process holds it. It is done as soon as that ends."
_TREATMENT_ON_DARK: Final = "#c7a0ff"
_TREATMENT_ON_LIGHT: Final = "#7a35b8"
_LIGHT_BACKGROUNDS: Final = frozenset({"7", "15"})


def run_dashboard(
    database: str | None = None,
    *,
    read_only: bool = False,
    engine_factory: EngineFactory | None = None,
    grace: timedelta = GRACE,
) -> int:
    """Open the dashboard on this terminal and return the exit code once it is closed.

    Args:
        database: as for ``Engine.open``.
        read_only: whether to show only: no action changes anything, no checks run.
        engine_factory: opens the engine instead; called again after a failure.
        grace: a check that stays due for longer, by the engine's clock, is called overdue.
    """
    if os.environ.get("PRX_NOW"):
        print(
            "the dashboard waits for time to pass, but PRX_NOW has stopped the clock; unset it",
            file=sys.stderr,
        )
        return 1
    if engine_factory is None:
        engine_factory = default_engine(database, read_only=read_only)
    app = Dashboard(engine_factory, read_only=read_only, grace=grace)
    try:
        with ending_with(partial(_close, app)):
            app.run()
    finally:
        _collect_garbage_again()
    return app.return_code or 0


def _close(app: Dashboard, code: int) -> None:
    """Close the dashboard from a signal's handler.

    An exception out of it would end the loop and leave its threads reading for ever.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        sys.exit(code)
    loop.call_soon_threadsafe(partial(app.exit, return_code=code))


def _collect_garbage_again() -> None:
    """Collect garbage again if whoever opened the dashboard has put it off until the first picture.

    All modules are read until then, and each collection would have looked at every object in them.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def default_engine(database: str | Path | None, *, read_only: bool = False) -> EngineFactory:
    """Return what opens a deployment's engine without ever making a database."""
    return lambda: Engine.open(database, clock=SystemClock(), create=False, read_only=read_only)


# What the first picture does not need is imported when it is asked for.


def _action_commands() -> type[Provider]:
    from prx_tui.palette import ActionCommands

    return ActionCommands


def _experiment_commands() -> type[Provider]:
    from prx_tui.palette import ExperimentCommands

    return ExperimentCommands


def _theme_commands() -> type[Provider]:
    from prx_tui.palette import ThemeCommands

    return ThemeCommands


class NewsArrived(Message):
    """The worker has something to tell."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class Dashboard(App[None]):
    """The application: it holds the present snapshot and passes news to the screens.

    Args:
        engine_factory: opens the engine, in the worker's thread; called again after a failure.
        read_only: whether nothing may be changed, no checks run and no telemetry followed.
        checks: whether to run the checks that are due; unless read only, if not given.
        poll_seconds: time between two looks at the database.
        grace: a check that stays due for longer, by the engine's clock, is called overdue.
    """

    TITLE = "prx"
    CSS_PATH = "styles.tcss"
    COMMANDS: ClassVar[set[Any]] = App.COMMANDS | {_action_commands, _experiment_commands, _theme_commands}
    VERTICAL_BREAKPOINTS = _HEIGHTS
    NOTIFICATION_TIMEOUT = _TOLD_SECONDS

    def __init__(
        self,
        engine_factory: EngineFactory,
        *,
        read_only: bool = False,
        checks: bool | None = None,
        poll_seconds: float = POLL_SECONDS,
        grace: timedelta = GRACE,
    ) -> None:
        super().__init__()
        self.checking = Checking(grace)
        self._runs_checks = checks if checks is not None else not read_only
        self.read_only = read_only
        self.snapshot: Snapshot | None = None
        self.engine: Engine | None = None
        self._problem: Trouble | None = None
        self._check_problem: CheckFailed | None = None
        self._follow_problem: FollowFailed | None = None
        self._read_at = time.monotonic()
        self._tick: Timer | None = None
        self._minute: object = None
        self._untold: list[tuple[str, bool]] = []
        self.worker = Worker(
            engine_factory,
            self._report,
            checks=self._runs_checks,
            follows=not read_only,
            poll_seconds=poll_seconds,
        )
        if os.environ.get("COLORFGBG", "").rpartition(";")[2] in _LIGHT_BACKGROUNDS:
            self.theme = "textual-light"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        # Themes like to give accent and warning one colour; the treatment must not look like a warning.
        return {"treatment": _TREATMENT_ON_DARK if self.current_theme.dark else _TREATMENT_ON_LIGHT}

    def get_default_screen(self) -> Screen[None]:
        return ExperimentsScreen()

    def on_mount(self) -> None:
        self.worker.start()
        self._tick = self.set_interval(_TICK_SECONDS, self.on_tick)

    def on_unmount(self) -> None:
        self.worker.stop()

    # News from the worker

    def _report(self, news: News) -> None:
        # Called in the worker's thread: posting a message is all that may be done there.
        self.post_message(NewsArrived(news))

    def on_news_arrived(self, message: NewsArrived) -> None:
        news = message.news
        if isinstance(news, Opened):
            self.engine = news.engine
            if self._runs_checks and self.checking.since is None:
                self.checking = self.checking._replace(since=news.engine.clock.now())
        elif isinstance(news, Read):
            self._take(news.snapshot)
        elif isinstance(news, Checked):
            self._check_problem = None
            from prx_tui.view.news import check_words

            for result in worth_telling(news.results):
                self.announce(check_words(result))
            self.refresh_screens()
        elif isinstance(news, CheckFailed):
            self._check_problem = news
            self.refresh_screens()
        elif isinstance(news, Followed):
            self._follow_problem = None
            if news.rejected:
                from prx_tui.view.news import rejected_words

                self.announce(rejected_words(news.rejected), problem=True)
            self.refresh_screens()
        elif isinstance(news, FollowFailed):
            self._follow_problem = news
            self.refresh_screens()
        else:
            self._problem = news
            self.engine = None
            _collect_garbage_again()
            self.refresh_screens()

    def _take(self, snapshot: Snapshot) -> None:
        self._problem = None
        self._read_at = time.monotonic()
        self.snapshot = snapshot
        self.refresh_screens()
        self.call_after_refresh(_collect_garbage_again)

    def on_tick(self) -> None:
        """Let the ages on the screen count on; what has not changed is not painted."""
        now = self.clock_now
        minute = now.replace(second=0, microsecond=0) if now else None
        if minute != self._minute:
            self._minute = minute
            self.refresh_screens()
        elif isinstance(self.screen, LiveScreen):
            self.screen.refresh_ages()

    def refresh_screens(self) -> None:
        """Bring every screen up to date, those under a dialog too."""
        for screen in self.screen_stack:
            if isinstance(screen, LiveScreen):
                screen.refresh_all()

    # What the screens ask for

    @property
    def clock_now(self) -> datetime | None:
        """The present time by the engine's clock; None before a database was ever open."""
        if self.engine is not None:
            return self.engine.clock.now()
        return self.snapshot.now if self.snapshot else None

    @property
    def read_words(self) -> str:
        """When the data was read."""
        return age_words(time.monotonic() - self._read_at)

    @property
    def in_trouble(self) -> bool:
        """Whether the database cannot be used."""
        return self._problem is not None

    @property
    def busy_words(self) -> str:
        """What the worker does, if it takes long enough to be worth a word."""
        phase = self.worker.phase
        return f"{phase}…" if phase in ("checking", "importing") and self.worker.phase_seconds > 1 else ""

    @property
    def banner(self) -> Sequence[str]:
        """What is in the way and what to do about it; empty if all is well."""
        if self._problem is not None:
            shown = "What you see is from before. " if self.snapshot else ""
            return (
                self._problem.problem,
                f"{shown}This is tried again every few seconds, and by itself: nothing needs a restart.",
            )
        if self.worker.phase in ("opening", "reading") and self.worker.phase_seconds > _SILENT_SECONDS:
            return (
                "The database does not answer: another process holds it locked, or its disk is slow.",
                "Waiting; it shows up here by itself as soon as it answers. Nothing is lost.",
            )
        if self._check_problem is not None:
            return (
                f"A check failed: {self._check_problem.problem}",
                "It is tried again by itself; ctrl+r tries it now. Nothing was decided.",
            )
        if self._follow_problem is not None:
            return (
                f"Telemetry could not be followed: {self._follow_problem.problem}",
                "It is tried again by itself; ctrl+r tries it now. No record is lost, and checks go on.",
            )
        return ()

    def show_wanted(self, view: View) -> None:
        """Tell the worker what the screen needs."""
        self.worker.show(view)

    def read_again(self) -> None:
        """Read everything again, now."""
        self.worker.read_again()
        self.announce("Reading again.")

    def open_experiment(self, experiment_id: str) -> None:
        """Open the screen of one experiment."""
        from prx_tui.screens.experiment import ExperimentScreen

        self.push_screen(ExperimentScreen(experiment_id))

    def open_fitness(self) -> None:
        """Open the screen of the deployment's fitness."""
        from prx_tui.screens.fitness import FitnessScreen

        self.push_screen(FitnessScreen())

    def open_help(self, actions: Sequence[Action]) -> None:
        """Open the page of all keys."""
        from prx_tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(actions))

    def announce(self, text: str, *, problem: bool = False) -> None:
        """Tell something for a few seconds, once no dialog is in front that it would cover."""
        if self.screen.is_modal:
            self._untold.append((text, problem))
            return
        self.notify(safe_text(text, 600), severity="warning" if problem else "information", markup=False)

    def announce_untold(self) -> None:
        """Tell what had to wait for a dialog to close."""
        untold, self._untold = self._untold, []
        for text, problem in untold:
            self.announce(text, problem=problem)

    def carry_out(self, request: Request) -> None:
        """Do what an operator has confirmed, beside the screen, and announce the outcome."""
        if self.read_only:
            return
        from prx_tui.operations import carried_out

        # A write waits while somebody else holds the database; whoever asked for it should know.
        waiting = self.set_timer(_PATIENCE_SECONDS, lambda: self.announce(_WAITING_WORDS))

        def done(text: str) -> None:
            waiting.stop()
            self.announce(text)
            self.worker.read_again()

        def refused(problem: str) -> None:
            waiting.stop()
            self._refused(problem)

        self.start_job(lambda engine: carried_out(engine, request), done, refused)

    def start_job(
        self, work: Callable[[Engine], T], done: Callable[[T], Any], failed: Callable[[str], Any]
    ) -> None:
        """Run something on the engine in a thread of its own; hand over its result or the problem."""
        if self.engine is None:
            failed("There is no database to do that with.")
            return
        from prx_tui import jobs

        def fail(error: Exception) -> None:
            known = isinstance(error, PrxError | jobs.Refused)
            failed(safe_text(error if known else f"{type(error).__name__}: {error}", 600))

        jobs.start(self.engine, work, done, fail, self.call_later)

    def _refused(self, problem: str) -> None:
        self.announce(problem, problem=True)
        self.worker.read_again()

    # The palette

    def get_system_commands(self, screen: Screen[Any]) -> Any:
        yield SystemCommand("Theme: others", "Choose among all colours", self.action_change_theme)
