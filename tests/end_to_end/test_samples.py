"""Real sessions, from the file to the verdict, against SciPy and NumPy on the stored scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from prx_engine import Engine
from prx_engine.dimensions import DIMENSIONS, UNIT, Dimension, Layer
from prx_engine.experiments.evidence import StoredEvidence
from prx_engine.records import Experiment
from prx_engine.statistics import robust, welch
from prx_engine.statistics.means import Arm
from prx_engine.store.schema import Assignments, Experiments
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.experiments import at, feed


def stored(engine: Engine, experiment: Experiment, column: str) -> dict[str, NDArray[Any]]:
    """The scores in the database, by variant, those that are missing left out."""
    found: dict[str, list[float]] = {"control": [], "treatment": []}
    query = (
        Assignments.select(Assignments.variant, getattr(Assignments, column))
        .join(Experiments, on=(Assignments.experiment == Experiments.number))
        .where(Experiments.experiment_id == experiment.experiment_id)
    )
    for variant, score in engine._store.tuples(query):
        if score is not None:
            found[variant].append(score / UNIT)
    return {variant: np.array(scores) for variant, scores in found.items()}


def hall(control: NDArray[Any], treatment: NDArray[Any]) -> float:
    """Two-sided p of Hall's corrected t, written down again from the formula."""
    n_c, n_t = len(control), len(treatment)
    v = control.var(ddof=1) / n_c + treatment.var(ddof=1) / n_t
    result = stats.ttest_ind(treatment, control, equal_var=False)
    a = (stats.moment(treatment, 3) / n_t**2 - stats.moment(control, 3) / n_c**2) / v**1.5
    t = result.statistic
    return float(2 * stats.t.sf(abs(t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6), result.df))


def import_sample(
    engine: Engine, clock: ManualClock, path: Path, layer: Layer, **settings: Any
) -> Experiment:
    experiment = engine.create_experiment(layer, "another model", hypothesis=path.name, **settings)
    clock.set("2026-06-08T00:00:00Z")
    with path.open("rb") as lines:
        report = engine.import_lines(lines, path.name)
    assert report.rejected == []
    assert report.without_experiment == 0
    return experiment


def agrees_with_scipy(
    engine: Engine, experiment: Experiment, dimension: Dimension
) -> dict[str, NDArray[Any]]:
    """Compare the deciding look with SciPy and NumPy; give back the scores for further comparisons."""
    scores = stored(engine, experiment, dimension)
    c, t = scores["control"], scores["treatment"]
    end = engine.experiment(experiment.experiment_id)
    look = end.last_look
    assert look is not None
    welch_p = stats.ttest_ind(t, c, equal_var=False).pvalue
    ranks_p = stats.mannwhitneyu(t, c, use_continuity=False, method="asymptotic").pvalue
    assert look.p_welch == pytest.approx(welch_p, rel=1e-9)
    assert look.p_mann_whitney == pytest.approx(ranks_p, rel=1e-9)
    assert look.p_hall == pytest.approx(hall(c, t), rel=1e-9)
    assert end.p_value == pytest.approx(max(welch_p, ranks_p, hall(c, t)), rel=1e-9)
    assert end.control_fitness.composite == pytest.approx(c.mean(), rel=1e-9)
    assert end.treatment_fitness.composite == pytest.approx(t.mean(), rel=1e-9)
    assert end.lift == pytest.approx((t.mean() - c.mean()) / c.mean(), rel=1e-9)
    assert end.control_fitness.standard_error == pytest.approx(stats.sem(c), rel=1e-9)
    return scores


def test_a_stronger_model_wins_on_skewed_real_scores(
    engine: Engine, clock: ManualClock, samples: Path
) -> None:
    path = samples / "sessions" / "alpaca_eval.sessions.jsonl"
    experiment = import_sample(engine, clock, path, "L3")
    (result,) = engine.check()
    end = engine.experiment(experiment.experiment_id)
    assert (end.status, end.winner, end.conclusion) == ("converged", "treatment", "treatment_wins")
    assert result.look is not None
    assert result.look.p_hall == pytest.approx(8.4e-95, rel=0.01)
    assert result.look.p_welch == pytest.approx(3.8e-118, rel=0.02)
    assert result.look.p_mann_whitney == pytest.approx(3.7e-151, rel=0.02)
    assert end.p_value == result.look.p_hall
    assert end.control_fitness.composite == pytest.approx(0.0742, abs=5e-5)
    assert end.treatment_fitness.composite == pytest.approx(0.5130, abs=5e-5)
    scores = agrees_with_scipy(engine, experiment, "response_relevance")
    assert (len(scores["control"]), len(scores["treatment"])) == (805, 805)
    assert {name for name, d in end.control_fitness.dimensions.items() if d.counts} == {"response_relevance"}
    assert end.control_fitness.dimensions["response_relevance"].weight == 1.0
    dimensions = engine.details(experiment.experiment_id).dimensions
    assert {name for name, d in dimensions.items() if d.control_sessions} == {"response_relevance"}
    assert engine.verify().problems == []


def test_two_halves_of_the_same_runs_are_extended_and_not_decided(
    engine: Engine, clock: ManualClock, samples: Path
) -> None:
    path = samples / "sessions" / "tau_bench_airline.sessions.jsonl"
    experiment = import_sample(engine, clock, path, "L2", min_sample_size=50)
    (result,) = engine.check()
    assert (result.outcome, result.conclusion, result.winner) == ("extended", None, None)
    look = result.look
    assert look is not None
    scores = stored(engine, experiment, "task_completion")
    c, t = scores["control"], scores["treatment"]
    assert (len(c), len(t)) == (93, 89)
    # Whatever test the first look has pinned, all three are computed here, from the engine's totals.
    number = engine._catalog.row(experiment.experiment_id)["number"]
    evidence = StoredEvidence(engine._store, number)
    histograms, arms = evidence.session_fitness(168), evidence.arms(168)
    d = DIMENSIONS.index("task_completion")
    for name, sample in scores.items():
        moments = arms[name].moments  # type: ignore[index]
        assert moments.observations(d) == len(sample)
        assert moments.total(d, d) == round(sample.sum() * UNIT)
    control, treatment = (Arm(float(x.mean()), float(x.var(ddof=1) / len(x)), len(x)) for x in (c, t))
    found = robust(control, treatment, histograms["control"], histograms["treatment"])
    assert found.welch.p_value == pytest.approx(0.816, abs=5e-4)
    assert found.hall.p_value == pytest.approx(0.817, abs=5e-4)
    assert found.mann_whitney.p_value == pytest.approx(0.843, abs=5e-4)
    assert found.welch.p_value == pytest.approx(stats.ttest_ind(t, c, equal_var=False).pvalue, rel=1e-9)
    assert found.mann_whitney.p_value == pytest.approx(
        stats.mannwhitneyu(t, c, use_continuity=False, method="asymptotic").pvalue, rel=1e-9
    )
    assert found.hall.p_value == pytest.approx(hall(c, t), rel=1e-9)
    assert look.p_welch == pytest.approx(welch(control, treatment).p_value, rel=1e-9)
    assert look.lift_interval is not None
    assert look.lift_interval.upper == pytest.approx(0.027, abs=0.002)
    state = engine.experiment(experiment.experiment_id)
    assert (state.status, state.extensions, state.planned_end_at) == ("running", 1, at(experiment, 336))


def twin(seed: int, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores like those of the first sample: most of control at 0, treatment U-shaped."""
    rng = np.random.default_rng(seed)
    return np.round(rng.beta(0.08, 1.0, n), 4), np.round(rng.beta(0.35, 0.33, n), 4)


def test_a_synthetic_twin_of_the_skewed_scores_is_promoted(
    open_engine: OpenEngine, engine: Engine, clock: ManualClock
) -> None:
    experiment = engine.create_experiment("L3", {"config": {"model": "b"}}, hypothesis="a stronger model")
    clock.set("2026-06-08T00:00:00Z")
    control, treatment = twin(20260601, 300)
    feed(engine, experiment, "control", [float(x) for x in control], hours=168)
    feed(engine, experiment, "treatment", [float(x) for x in treatment], hours=168)
    (result,) = engine.check()
    assert result.look is not None
    assert result.look.p_hall is not None
    end = engine.experiment(experiment.experiment_id)
    assert (end.status, end.winner, end.promotion) == ("converged", "treatment", "applied")
    assert end.p_value is not None
    assert 0 < end.p_value < 1e-20
    agrees_with_scipy(engine, experiment, "response_relevance")
    assert [look.held for look in engine.details(experiment.experiment_id).looks] == [False] * 4 + [True]
    assert engine.verify().problems == []


def test_a_synthetic_twin_without_effect_is_extended(engine: Engine, clock: ManualClock) -> None:
    experiment = engine.create_experiment("L3", "the same model", hypothesis="nothing")
    clock.set("2026-06-08T00:00:00Z")
    for variant, seed in (("control", 3), ("treatment", 4)):
        scores = [float(x) for x in twin(seed, 300)[0]]
        feed(engine, experiment, variant, scores, hours=168)  # type: ignore[arg-type]
    (result,) = engine.check()
    assert result.outcome == "extended"
    agrees_with_scipy(engine, experiment, "response_relevance")
