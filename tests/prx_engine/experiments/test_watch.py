"""The watch over a promoted change: what does harm comes back by itself, what does none stays."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prx_engine import Engine
from prx_engine.clock import format_time
from prx_engine.errors import PromotionConflict
from prx_engine.experiments.analysis import Subject, is_harm
from prx_engine.experiments.comparison import Histograms
from prx_engine.experiments.schedule import Schedule
from prx_engine.experiments.watch import Watched, sessions_since, watch_looks
from prx_engine.fitness.arms import Arm
from prx_engine.fitness.moments import Moments
from prx_engine.records import Experiment, Look
from prx_engine.scoring.scores import Scorer
from prx_engine.statistics import Histogram
from prx_engine.statistics.spending import pocock
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.evidence import CREATED, parameters
from tests.support.experiments import actions, around, at, feed_both
from tests.support.sessions import random_metrics

CHANGE = {"config": {"agent.style": "short"}}
DAY = 24


def win(engine: Engine, clock: ManualClock) -> Experiment:
    """An experiment whose treatment has won at 0.80 against 0.70 and is applied, 48 hours after creation."""
    experiment = engine.create_experiment("L2", CHANGE, hypothesis="shorter")
    clock.set(at(experiment, 48))
    feed_both(engine, experiment, 0.70, 0.80, 200, hours=47)
    engine.check()
    state = engine.experiment(experiment.experiment_id)
    assert state.promotion == "applied"
    return state


def live(engine: Engine, clock: ManualClock, values: Iterable[float], hours: float = DAY) -> None:
    """Let some hours pass, in which sessions come that nobody has assigned."""
    values, since = list(values), clock.now()
    clock.advance(hours=hours)
    lines = (
        json.dumps(
            {
                "session_id": f"d-{format_time(since)}-{i}",
                "started_at": format_time(since + timedelta(hours=hours * i / len(values))),
                "scores": {"response_relevance": value},
            }
        ).encode()
        for i, value in enumerate(values)
    )
    assert not engine.import_lines(lines).rejected


def state(engine: Engine, experiment: Experiment) -> Experiment:
    return engine.experiment(experiment.experiment_id)


def looks(engine: Engine, experiment: Experiment) -> list[Look]:
    return engine.details(experiment.experiment_id).watch_looks


def test_a_regression_rolls_the_change_back_and_says_so(
    engine: Engine, clock: ManualClock, tmp_path: Path
) -> None:
    experiment = win(engine, clock)
    since = clock.now()
    assert experiment.watch_ends_at == since + timedelta(hours=168)
    live(engine, clock, around(0.60, 100), 23)
    assert engine.check() == []
    clock.advance(hours=1)
    (result,) = engine.check()
    assert (result.experiment_id, result.outcome) == (experiment.experiment_id, "rolled_back")
    assert result.reason.startswith("regression after the promotion: fitness 0.700 → 0.600 (-14.3 %, 100")
    end = state(engine, experiment)
    assert (end.status, end.winner, end.promotion) == ("converged", "treatment", "rolled_back")
    assert (end.next_check_at, end.watch_ends_at) == (None, None)
    assert (tmp_path / "config.toml").exists() is False
    assert engine.assign("after")["L2"].config == {}
    (event, *_) = engine.events()
    assert (event.action, event.actor, event.reason) == ("rolled_back", "engine", result.reason)
    (look,) = looks(engine, experiment)
    assert (look.series, look.k, look.held, look.significant, look.outcome) == (
        "watch",
        1,
        True,
        True,
        "regression",
    )
    assert (look.control_sessions, look.treatment_sessions) == (200, 100)
    assert look.alpha_spent == pytest.approx(pocock(24 / 168, 0.05))
    assert engine.check() == []


def test_no_change_stays_and_the_watch_ends(engine: Engine, clock: ManualClock) -> None:
    experiment = win(engine, clock)
    for _ in range(7):
        live(engine, clock, around(0.70, 50))
        (result,) = engine.check()
        assert result.outcome == "watched"
        assert engine.check() == []
    end = state(engine, experiment)
    assert (end.promotion, end.watch_ends_at, end.next_check_at) == ("applied", None, None)
    assert [look.k for look in looks(engine, experiment)] == list(range(1, 8))
    assert looks(engine, experiment)[-1].alpha_spent == pytest.approx(0.05)
    assert actions(engine, experiment)[-2:] == ["promoted", "watch_ended"]
    assert end.last_look is not None
    assert end.last_look.series == "efficacy"
    live(engine, clock, around(0.1, 500))
    assert engine.check() == []


def test_a_drop_within_regression_delta_stays(engine: Engine, clock: ManualClock) -> None:
    experiment = win(engine, clock)
    live(engine, clock, around(0.68, 2000))
    (result,) = engine.check()
    (look,) = looks(engine, experiment)
    assert look.significant
    assert result.outcome == "watched"
    assert state(engine, experiment).promotion == "applied"


def test_too_few_sessions_are_no_look(engine: Engine, clock: ManualClock) -> None:
    experiment = win(engine, clock)
    live(engine, clock, [0.1] * 9)
    (result,) = engine.check()
    assert (result.outcome, result.reason) == ("watched", "no regression: too few sessions to compare")
    assert looks(engine, experiment) == []
    assert state(engine, experiment).next_check_at == clock.now() + timedelta(hours=DAY)


def test_looks_that_nobody_held_are_charged(engine: Engine, clock: ManualClock) -> None:
    experiment = win(engine, clock)
    for _ in range(3):
        live(engine, clock, around(0.70, 50))
    clock.advance(hours=5)
    engine.check(experiment.experiment_id)
    found = looks(engine, experiment)
    assert [(look.k, look.held, look.outcome, look.treatment_sessions) for look in found] == [
        (1, False, "missed", 50),
        (2, False, "missed", 100),
        (3, True, "watched", 150),
    ]


def test_sessions_from_before_the_promotion_do_not_count(engine: Engine, clock: ManualClock) -> None:
    experiment = win(engine, clock)
    for i in range(50):
        engine.record(
            f"early-{i}", started_at=clock.now() - timedelta(hours=1), scores={"response_relevance": 0.1}
        )
    live(engine, clock, around(0.70, 20))
    engine.check()
    assert [look.treatment_sessions for look in looks(engine, experiment)] == [20]


def test_sessions_since_are_scored_under_the_pinned_parameters(
    open_engine: OpenEngine, clock: ManualClock
) -> None:
    engine = open_engine()
    engine.create_experiment("L2", CHANGE, hypothesis="shorter")
    pinned = Scorer(engine.settings.fitness)
    source = random.Random(7)
    reports = [random_metrics(source) for _ in range(200)]
    start = clock.now()
    changed = open_engine(
        config="[self_evolution.fitness.weights]\nresponse_relevance = 0.0\ntask_completion = 0.55\n"
        "[self_evolution.fitness.normalization]\ntokens_per_task = [10, 20]\n"
    )
    clock.advance(hours=2 * DAY)
    for i, report in enumerate(reports):
        # Two sources, the later one first, so that the reports of a session have to be joined.
        started_at = format_time(start + timedelta(minutes=14 * i))
        half = {name: value for k, (name, value) in enumerate(report.items()) if k % 2}
        rest = {name: value for name, value in report.items() if name not in half}
        try:
            changed.record(f"s-{i}", started_at=started_at, source="z", **half)
            changed.record(f"s-{i}", started_at=started_at, source="a", **rest)
        except ValueError:
            changed.record(f"s-{i}", started_at=started_at, **report)
    arms, counts = engine._store.read(lambda: sessions_since(engine._store, start, [DAY, 2 * DAY], pinned))
    stored = [engine._store.read(partial(_combined, engine, f"s-{i}")) for i in range(200)]
    expected = [pinned.scores(report) for report in stored]
    first_day = [scores for i, scores in enumerate(expected) if 14 * i < 24 * 60]
    assert arms == {
        DAY: Arm(len(first_day), Moments.of(first_day)),
        2 * DAY: Arm(200, Moments.of(expected)),
    }
    assert sum(counts.values()) == Moments.of(expected).n


def _combined(engine: Engine, session_id: str) -> Any:
    from prx_engine.scoring.metrics import combine
    from prx_engine.store.schema import SessionReports

    rows = engine._store.tuples(
        SessionReports.select(SessionReports.report)
        .where(SessionReports.session_id == session_id)
        .order_by(SessionReports.source)
    )
    return combine([json.loads(text) for (text,) in rows])


def test_another_host_leaves_the_rollback_to_the_right_one(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = win(engine, clock)
    live(engine, clock, around(0.60, 100))
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "elsewhere")
        for _ in range(2):
            (result,) = engine.check()
            assert result.outcome == "watched"
            assert "cannot be rolled back: waits for host" in result.reason
    present = state(engine, experiment)
    assert (present.promotion, present.promotion_note) == ("applied", result.reason)
    assert actions(engine, experiment).count("rollback_failed") == 1
    (result,) = engine.check()
    assert result.outcome == "rolled_back"
    assert state(engine, experiment).promotion == "rolled_back"


def test_a_conflict_keeps_the_change_and_names_the_key(
    engine: Engine, clock: ManualClock, tmp_path: Path
) -> None:
    experiment = win(engine, clock)
    live(engine, clock, around(0.60, 100))
    (tmp_path / "config.toml").write_text("[agent]\nstyle = 'mine'\n")
    (result,) = engine.check()
    assert result.reason.endswith('cannot be rolled back: agent.style is "mine" now, was promoted as "short"')
    assert state(engine, experiment).promotion == "applied"
    with pytest.raises(PromotionConflict):
        engine.rollback()


def test_an_operator_is_faster(engine: Engine, clock: ManualClock) -> None:
    experiment = win(engine, clock)
    live(engine, clock, around(0.60, 100))
    engine.rollback(experiment.experiment_id)
    assert engine.check() == []
    assert looks(engine, experiment) == []


def test_a_change_promoted_by_hand_without_evidence_is_watched_in_vain(
    engine: Engine, clock: ManualClock
) -> None:
    experiment = engine.create_experiment("L2", CHANGE, hypothesis="trust me")
    engine.promote(experiment.experiment_id)
    live(engine, clock, [0.1] * 50)
    clock.advance(hours=200)
    (result,) = engine.check()
    assert result.reason == "no regression until the end of the watch: too few sessions to compare"


def rolls_back(drop: float, a_day: int, seed: int) -> bool:
    """Replay a week of scores after a promotion through the looks of the watch."""
    random = np.random.default_rng(seed)
    settings = parameters()

    def arm(units: np.ndarray) -> Arm:
        return Arm(len(units), Moments.of((int(u), *(None,) * 5) for u in units))

    def histogram(units: np.ndarray) -> Histogram:
        return Histogram.from_units((int(u), 1) for u in units)

    def histograms(before: np.ndarray, seen: np.ndarray) -> Histograms:
        return {"control": histogram(before), "treatment": histogram(seen)}

    def draw(mean: float, n: int) -> np.ndarray:
        return np.rint(random.beta(8 * mean, 8 * (1 - mean), n) * 10_000).astype(int)

    control = draw(0.7, a_day * 7 // 2)
    since = draw(0.7 * (1 - drop), a_day * 7)
    past: tuple[Look, ...] = ()
    for day in range(1, 8):
        seen = since[: a_day * day]
        subject = Subject(CREATED, settings, Schedule(DAY, 168, 168, 0), harm_looks=past)
        new = watch_looks(
            Watched(subject, arm(control), ("response_relevance",)),
            {day * DAY: arm(seen)},
            partial(histograms, control, seen),
        )
        past = (*past, *new)
        if new and is_harm(settings, new[-1]):
            return True
    return False


def test_no_change_is_rarely_rolled_back_and_a_loss_of_a_tenth_is() -> None:
    runs, alpha = 150, 0.05
    false = sum(rolls_back(0.0, 30, seed) for seed in range(runs))
    assert false <= runs * alpha + 3 * (runs * alpha * (1 - alpha)) ** 0.5
    assert sum(rolls_back(0.1, 30, seed) for seed in range(40)) >= 36
