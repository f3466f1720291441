"""The thread that watches the database, reads snapshots, follows telemetry and runs due checks."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from prx_engine.clock import clock_hour
from prx_engine.engine import Engine
from prx_engine.errors import PrxError
from prx_engine.records import CheckResult
from prx_engine.store import ChangeWatch
from prx_tui.snapshot import Reader, Snapshot, View
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_engine.records import ImportReport, Rejected
    from prx_engine.telemetry.following import TelemetryFollower

POLL_SECONDS: Final = 1.0
_FIRST_PAUSE: Final = 1.0
_BREATH: Final = 0.15
_FOLLOW_SECONDS: Final = 0.5
_LONGEST_PAUSE: Final = 5.0
_LONGEST_CHECK_PAUSE: Final = 300.0
_HOUSEKEEPING_SECONDS: Final = 600.0
"""A check also finishes promotions that a dead process left and watches promoted changes. Real seconds: the
engine's clock may be a faster one."""

Phase = Literal["idle", "opening", "reading", "checking", "importing"]


class Opened(NamedTuple):
    """The database is open."""

    engine: Engine


class Read(NamedTuple):
    """A snapshot was read."""

    snapshot: Snapshot


class Checked(NamedTuple):
    """A check was finished."""

    results: tuple[CheckResult, ...]


class CheckFailed(NamedTuple):
    """A check failed; it is tried again after ``pause`` seconds."""

    problem: str
    pause: float


class Followed(NamedTuple):
    """Telemetry was followed again, after that had failed, or it has brought something that was refused."""

    rejected: tuple[Rejected, ...] = ()


class FollowFailed(NamedTuple):
    """Telemetry could not be followed; it is tried again after ``pause`` seconds."""

    problem: str
    pause: float


class Trouble(NamedTuple):
    """The database or the configuration cannot be used; it is tried again after ``pause`` seconds."""

    problem: str
    pause: float


News = Opened | Read | Checked | CheckFailed | Followed | FollowFailed | Trouble


class Worker:
    """Watches, reads, follows telemetry and checks in one loop; whatever fails is reported and tried again.

    It only reports: nothing here touches a widget, and nothing on the screen waits for it.

    Args:
        open_engine: opens the deployment; called again after a failure.
        report: takes the news; called in the worker's thread.
        checks: whether to run the checks that are due.
        follows: whether to follow the sources of telemetry that the configuration names.
        poll_seconds: time between two looks at the database.
        jitter: returns a number from 0 to 1, so that several dashboards do not retry in step.
    """

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        report: Callable[[News], object],
        *,
        checks: bool,
        follows: bool = False,
        poll_seconds: float = POLL_SECONDS,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._open_engine = open_engine
        self._report = report
        self._checks = checks
        self._follows = follows
        self._poll_seconds = poll_seconds
        self._jitter = jitter
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._view = View()
        self._again = False
        self._failures = 0
        self._check_failures = 0
        self._check_not_before = 0.0
        self._checked_at: float | None = None
        self._follow_failures = 0
        self._follow_not_before = 0.0
        self._phase: Phase = "idle"
        self._since = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="prx-worker", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, wait_seconds: float = 0.3) -> None:
        """Tell the thread to end, and wait a moment for it; it never keeps the program from ending."""
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(wait_seconds)

    def show(self, view: View) -> None:
        """Tell what the screen shows now; what that needs is read at once."""
        if view != self._view:
            self._view = view
            self._woken.set()

    def read_again(self) -> None:
        """Read a new snapshot now, whether anything has changed or not; also try what has failed."""
        self._again = True
        self._check_not_before = self._follow_not_before = 0.0
        self._woken.set()

    @property
    def phase(self) -> Phase:
        """What the thread does at this moment."""
        return self._phase

    @property
    def phase_seconds(self) -> float:
        """For how long it has been doing that."""
        return time.monotonic() - self._since

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = self._served()
            if not self._stopping.is_set():
                self._enter("idle")
                self._woken.wait(pause)
                self._woken.clear()

    def _served(self) -> float:
        """Serve until something fails; return how long to pause before the next try."""
        try:
            self._enter("opening")
            engine = self._open_engine()
        except Exception as error:
            return self._trouble(error)
        try:
            self._report(Opened(engine))
            watch = engine.watch()
            source = _Source(engine)
            try:
                self._serve(engine, watch, source)
            finally:
                source.close()
                watch.close()
        except Exception as error:
            return self._trouble(error)
        finally:
            engine.close()
        return 0.0

    def _serve(self, engine: Engine, watch: ChangeWatch, source: _Source) -> None:
        reader = Reader(engine)
        seen: tuple[View, int] | None = None
        snapshot: Snapshot | None = None
        more_to_read = False
        while not self._stopping.is_set():
            self._enter("reading")
            view, again = self._view, self._again
            self._again = False
            present = (view, clock_hour(engine.clock.now()))
            if watch.changed() or again or present != seen:
                snapshot = self._read(reader, view, snapshot)
                seen, more_to_read = present, True
            elif snapshot is not None and more_to_read:
                more_to_read, snapshot = self._read_more(reader, snapshot)
            self._failures = 0
            # The first picture comes first: files may have gained much.
            is_behind = False
            if self._follows and snapshot is not None and snapshot.complete:
                is_behind = self._follow(source)
            if snapshot is not None and self._is_check_due(snapshot, engine):
                self._check(engine)
                continue
            self._enter("idle")
            # What can wait leaves the screen a moment to paint what could not.
            is_busy = more_to_read or is_behind
            self._woken.wait(min(_BREATH, self._poll_seconds) if is_busy else self._poll_seconds)
            self._woken.clear()

    def _read(self, reader: Reader, view: View, last: Snapshot | None) -> Snapshot:
        snapshot = reader.read(view)
        if view.open_id is None:
            self._report(Read(snapshot))
            return snapshot
        known = last is not None and last.details is not None
        if not known or (last and last.details and last.details.experiment.experiment_id != view.open_id):
            # The details import slowly the first time: the rest is shown meanwhile.
            self._report(Read(snapshot))
        snapshot = reader.with_details(snapshot, view.open_id)
        self._report(Read(snapshot))
        return snapshot

    def _read_more(self, reader: Reader, snapshot: Snapshot) -> tuple[bool, Snapshot]:
        more = reader.with_more(snapshot)
        if more is None:
            return False, snapshot
        self._report(Read(more))
        return True, more

    def _follow(self, source: _Source) -> bool:
        """Record what the configured sources have gained, for a moment; tell whether there is more.

        The watch tells whether there is news to read.
        """
        if time.monotonic() < self._follow_not_before:
            return False
        is_named = source.is_named()
        if is_named:
            self._enter("importing")
        try:
            report = source.poll(self._stopping.is_set) if is_named else None
        except Exception as error:
            self._follow_failures += 1
            pause = self._pause(self._follow_failures, _LONGEST_CHECK_PAUSE)
            self._follow_not_before = time.monotonic() + pause
            self._report(FollowFailed(_words(error), pause))
            return False
        rejected = tuple(report.rejected) if report is not None else ()
        if self._follow_failures or rejected:
            self._follow_failures = 0
            self._report(Followed(rejected))
        return source.is_behind

    def _is_check_due(self, snapshot: Snapshot, engine: Engine) -> bool:
        if not self._checks or not snapshot.enabled or self._stopping.is_set():
            return False
        if not snapshot.complete:
            # The first picture comes first: a check may have much to import.
            return False
        if time.monotonic() < self._check_not_before:
            return False
        now = engine.clock.now()
        due = snapshot.next_check_at
        last = self._checked_at
        tidy = last is None or time.monotonic() - last >= _HOUSEKEEPING_SECONDS
        return (due is not None and due <= now) or (tidy and bool(snapshot.experiments))

    def _check(self, engine: Engine) -> None:
        self._enter("checking")
        try:
            results = engine.check()
        except Exception as error:
            self._check_failures += 1
            pause = self._pause(self._check_failures, _LONGEST_CHECK_PAUSE)
            self._check_not_before = time.monotonic() + pause
            self._report(CheckFailed(_words(error), pause))
            return
        self._checked_at = time.monotonic()
        self._check_failures = 0 if _got_further(results) else self._check_failures + 1
        # One that another process holds stays due; asking again at once would only get in its way.
        pause = self._pause(self._check_failures, _LONGEST_CHECK_PAUSE) if self._check_failures else 0.0
        self._check_not_before = self._checked_at + max(pause, self._poll_seconds)
        self._again = True
        self._report(Checked(tuple(results)))

    def _trouble(self, error: Exception) -> float:
        self._failures += 1
        pause = self._pause(self._failures, _LONGEST_PAUSE)
        self._report(Trouble(_words(error), pause))
        return pause

    def _pause(self, failures: int, longest: float) -> float:
        pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, 16), longest)
        return float(pause * (0.75 + 0.5 * self._jitter()))

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._since = time.monotonic()


class _Source:
    """The telemetry that the configuration names; nothing is loaded as long as it names none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._follower: TelemetryFollower | None = None

    def is_named(self) -> bool:
        """Tell whether the configuration names any, as it is at present.

        Raises:
            ConfigError: if it cannot be used.
        """
        return bool(self._engine.settings.telemetry.sources)

    @property
    def is_behind(self) -> bool:
        """Whether the last poll has left something."""
        return self._follower is not None and self._follower.is_behind

    def poll(self, stop: Callable[[], bool]) -> ImportReport:
        """Record what the files have gained, but no longer than a moment if they have gained much."""
        if self._follower is None:
            self._follower = self._engine.follow()
        end = time.monotonic() + _FOLLOW_SECONDS
        return self._follower.poll(stop, lambda: time.monotonic() > end)

    def close(self) -> None:
        """Close the files that are open."""
        if self._follower is not None:
            self._follower.close()


def _got_further(results: Sequence[CheckResult]) -> bool:
    """Tell whether a check has left nothing that was due."""
    return all(one.outcome != "busy" for one in results)


def _words(error: Exception) -> str:
    """Return an error in one line; one that nobody foresaw says what it is."""
    if isinstance(error, PrxError):
        return safe_text(error, 500)
    return safe_text(f"{type(error).__name__}: {error}", 500)


def worth_telling(results: Sequence[CheckResult]) -> list[CheckResult]:
    """Return the results that an operator wants to hear of: a look that decides nothing is none."""
    told = ("concluded", "verdict", "extended", "rolled_back")
    return [one for one in results if one.outcome in told or is_stuck(one)]


def is_stuck(result: CheckResult) -> bool:
    """Tell whether a promoted change does harm, and yet could not be rolled back."""
    return result.outcome == "watched" and result.look is not None and result.look.significant
