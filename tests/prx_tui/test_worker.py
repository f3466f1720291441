"""The worker watches, reads and checks, and ends when it is told to, whatever it is doing."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.records import CheckResult, ImportReport, Look
from prx_engine.telemetry.following import TelemetryFollower
from prx_tui.snapshot import View
from prx_tui.worker import (
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
from tests.prx_tui.conftest import OpenPlace, Place

SOURCE = '[[self_evolution.telemetry.sources]]\npath = "agent.jsonl"\n'


class Post:
    """Takes the news and gives them out one by one."""

    def __init__(self) -> None:
        self._news: queue.Queue[News] = queue.Queue()

    def __call__(self, news: News) -> None:
        self._news.put(news)

    def next(self, kind: type[News], where: Callable[[Any], bool] = lambda _: True) -> Any:
        while True:
            news = self._news.get(timeout=20)
            if isinstance(news, kind) and where(news):
                return news

    def empty(self) -> bool:
        return self._news.empty()


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[Worker, Post]]]:
    workers: list[Worker] = []

    def started(open_engine: Callable[[], Engine], **options: Any) -> tuple[Worker, Post]:
        post = Post()
        worker = Worker(open_engine, post, **{"checks": False, "poll_seconds": 0.01, **options})
        workers.append(worker)
        worker.start()
        return worker, post

    yield started
    for worker in workers:
        worker.stop(10)


def test_news_come_in_order_and_only_when_there_are_any(place: OpenPlace, start: Any) -> None:
    spot = place()
    worker, post = start(spot.open)
    post.next(Opened)
    snapshot = post.next(Read).snapshot
    assert len(snapshot.active) == 3
    # What has ended comes after the first picture.
    assert (snapshot.complete, len(snapshot.experiments)) == (False, 3)
    assert len(post.next(Read, lambda news: news.snapshot.complete).snapshot.experiments) == 6
    post.next(Read, lambda news: len(news.snapshot.trends) == len(news.snapshot.experiments))
    spot.engine.extend(snapshot.active[0].experiment_id, 24)
    news = post.next(Read, lambda news: news.snapshot.active[0].extensions == 1)
    assert news.snapshot.details is None
    assert worker.phase in ("idle", "reading")


def test_details_are_read_for_the_open_experiment(place: OpenPlace, start: Any) -> None:
    spot = place()
    target = spot.engine.experiments()[0].experiment_id
    worker, post = start(spot.open)
    post.next(Read)
    worker.show(View(open_id=target))
    news = post.next(Read, lambda news: news.snapshot.details is not None)
    assert news.snapshot.details.experiment.experiment_id == target
    worker.show(View(open_id="0"))
    assert post.next(Read, lambda news: news.snapshot.missing_id is not None).snapshot.missing_id == "0"


def test_a_due_check_runs_once_and_the_next_one_in_its_time(place: OpenPlace, start: Any) -> None:
    spot = place()
    _, post = start(spot.open, checks=True)
    post.next(Checked)
    spot.clock.advance(hours=24)
    results = post.next(Checked, lambda news: any(one.at for one in news.results)).results
    assert {one.outcome for one in results} <= {"look", "waiting", "extended", "concluded"}
    assert all(one.next_check_at is None or one.next_check_at > spot.clock.now() for one in results)


def test_no_check_runs_without_being_wanted_or_switched_on(place: OpenPlace, start: Any) -> None:
    for config, checks in (("", False), ("[self_evolution.experiments]\nenabled = false\n", True)):
        spot = place()
        (spot.folder / "config.toml").write_text(config)
        spot.clock.advance(days=3)
        events = spot.engine.events()
        worker, post = start(spot.open, checks=checks)
        post.next(Read, lambda news: len(news.snapshot.trends) == len(news.snapshot.experiments))
        worker.stop(10)
        assert spot.engine.events() == events


def test_a_failing_check_backs_off_and_reading_goes_on(
    place: OpenPlace, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = place()
    calls: list[float] = []

    def fail(self: Engine) -> None:
        calls.append(time.monotonic())
        raise RuntimeError("no")

    monkeypatch.setattr(Engine, "check", fail)
    worker, post = start(spot.open, checks=True, jitter=lambda: 0.5)
    first = post.next(CheckFailed)
    assert (first.problem, first.pause) == ("RuntimeError: no", 1.0)
    spot.engine.extend(spot.engine.experiments()[0].experiment_id, 24)
    post.next(Read, lambda news: any(one.extensions for one in news.snapshot.active[:1]))
    assert len(calls) == 1
    worker.read_again()
    assert post.next(CheckFailed).pause == 2.0


def test_what_the_configured_telemetry_gains_is_recorded(place: OpenPlace, start: Any) -> None:
    spot = place("empty")
    log = spot.folder / "agent.jsonl"
    _, post = start(spot.open, follows=True)
    post.next(Read)
    # Named while the dashboard is open, and relative to the configuration.
    (spot.folder / "config.toml").write_text(SOURCE)
    log.write_bytes(_line(0))
    post.next(Read, lambda news: news.snapshot.fitness.fitness.sessions == 1)
    with log.open("ab") as file:
        file.write(_line(1) + b'{"no": \n')
    assert post.next(Followed).rejected[0].line == 3
    post.next(Read, lambda news: news.snapshot.fitness.fitness.sessions == 2)


def test_much_telemetry_at_once_leaves_the_screen_its_news(
    place: OpenPlace, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prx_tui.worker._FOLLOW_SECONDS", -1.0)
    spot = place("empty")
    (spot.folder / "config.toml").write_text(SOURCE)
    (spot.folder / "agent.jsonl").write_bytes(b"".join(_line(number) for number in range(1200)))
    _, post = start(spot.open, follows=True)
    counts = set()

    def is_all(news: Read) -> bool:
        counts.add(news.snapshot.fitness.fitness.sessions)
        return 1200 in counts

    post.next(Read, is_all)
    assert counts & {500, 1000}


def test_telemetry_that_is_not_wanted_stays_alone(place: OpenPlace, start: Any) -> None:
    spot = place("empty")
    (spot.folder / "config.toml").write_text(SOURCE)
    (spot.folder / "agent.jsonl").write_bytes(_line(0))
    worker, post = start(spot.open)
    post.next(Read, lambda news: news.snapshot.complete)
    worker.read_again()
    assert post.next(Read).snapshot.fitness.fitness.sessions == 0


def test_telemetry_that_fails_backs_off_and_never_stops_the_checks(
    place: OpenPlace, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = place()
    (spot.folder / "config.toml").write_text(SOURCE)
    failing = [True]

    def poll(self: TelemetryFollower, *asked: object) -> Any:
        if failing[0]:
            raise OSError("[/] no disk")
        return ImportReport(
            lines=0, recorded=0, sessions=0, without_experiment=0, missing_dimensions=[], rejected=[]
        )

    monkeypatch.setattr(TelemetryFollower, "poll", poll)
    worker, post = start(spot.open, checks=True, follows=True, jitter=lambda: 0.5)
    first = post.next(FollowFailed)
    assert (first.problem, first.pause) == ("OSError: [/] no disk", 1.0)
    post.next(Checked)
    spot.clock.advance(hours=24)
    post.next(Checked, lambda news: any(one.at for one in news.results))
    worker.read_again()
    assert post.next(FollowFailed).pause == 2.0
    failing[0] = False
    worker.read_again()
    assert post.next(Followed).rejected == ()


def _line(number: int) -> bytes:
    """What is known of a session of its own."""
    return json.dumps({"session_id": f"s-{number}", "thumbs_up": 1}).encode() + b"\n"


def test_pauses_grow_to_their_limit_and_differ(place: OpenPlace) -> None:
    worker = Worker(place().open, lambda _: None, checks=False, jitter=lambda: 0.5)
    assert [worker._pause(n, 5.0) for n in (1, 2, 3, 4, 99)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    worker = Worker(place().open, lambda _: None, checks=False, jitter=lambda: 0.0)
    assert worker._pause(1, 5.0) == 0.75


def test_what_cannot_be_opened_is_tried_again(place: OpenPlace, start: Any) -> None:
    spot = place()
    tries: list[int] = []

    def open_engine() -> Engine:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("[/] not now")
        return spot.open()

    worker, post = start(open_engine)
    assert post.next(Trouble).problem == "OSError: [/] not now"
    worker.read_again()
    post.next(Trouble)
    worker.read_again()
    post.next(Read)


@pytest.mark.parametrize("busy_with", ["opening", "reading", "checking"])
def test_stopping_waits_for_nothing(
    place: OpenPlace, monkeypatch: pytest.MonkeyPatch, busy_with: str
) -> None:
    spot: Place = place()
    release, entered = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> Any:
        entered.set()
        release.wait(30)
        raise RuntimeError("released")

    open_engine: Callable[[], Engine] = spot.open
    if busy_with == "opening":
        open_engine = hang
    else:
        monkeypatch.setattr(Engine, "check" if busy_with == "checking" else "experiments", hang)
    worker = Worker(open_engine, lambda _: None, checks=True, poll_seconds=0.01)
    worker.start()
    assert entered.wait(20)
    before = time.monotonic()
    worker.stop()
    assert time.monotonic() - before < 1.0
    assert worker._thread.daemon
    release.set()
    worker._thread.join(10)
    assert not worker._thread.is_alive()


def test_what_another_process_holds_is_asked_for_less_and_less(
    place: OpenPlace, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = place("trouble")
    pauses: list[float] = []
    held = CheckResult(
        experiment_id="x", layer="L1", hypothesis="x", at=None, outcome="busy", conclusion=None, winner=None,
        missing=[], look=None, reason="another process is checking it", next_check_at=None,
    )  # fmt: skip
    monkeypatch.setattr(Engine, "check", lambda self: [held])
    worker, post = start(spot.open, checks=True, jitter=lambda: 0.5)
    for _ in range(3):
        post.next(Checked)
        pauses.append(worker._pause(worker._check_failures, 300.0))
        worker.read_again()
    assert pauses == [1.0, 2.0, 4.0]


def test_the_watch_over_a_promoted_change_is_checked_when_it_is_due(place: OpenPlace, start: Any) -> None:
    spot = place()
    _, post = start(spot.open, checks=True)
    post.next(Checked)
    for one in spot.engine.experiments():
        spot.engine.cancel(one.experiment_id)
    made = spot.engine.create_experiment("L1", {"config": {"a.b": 1}}, hypothesis="b is 1")
    promoted = spot.engine.promote(made.experiment_id)
    due = promoted.next_check_at
    assert due is not None
    post.next(Read, lambda news: not news.snapshot.active and news.snapshot.next_check_at == due)
    spot.clock.set(due)
    results = post.next(Checked, lambda news: any(one.outcome == "watched" for one in news.results)).results
    assert worth_telling(results) == []
    later = post.next(Read, lambda news: news.snapshot.next_check_at != due).snapshot
    assert later.next_check_at > due


def test_a_look_is_not_worth_telling_but_a_rollback_that_fails_is() -> None:
    def result(outcome: str, look: Any = None) -> CheckResult:
        values: dict[str, Any] = {"outcome": outcome, "look": look}
        return CheckResult.model_construct(**values)

    significant: dict[str, Any] = {"significant": True}
    harm = Look.model_construct(**significant)
    kinds = ("look", "waiting", "busy", "watched", "concluded", "verdict", "extended", "rolled_back")
    told = worth_telling([*map(result, kinds), result("watched", harm)])
    assert [one.outcome for one in told] == ["concluded", "verdict", "extended", "rolled_back", "watched"]
