from __future__ import annotations

import pytest
from scipy import stats
from scipy.special import betaln

from prx_engine.experiments.blocks import attrition, blocks, sample_ratio
from prx_engine.fitness.arms import Arm, Arms
from prx_engine.fitness.moments import Moments
from tests.support.evidence import scores


def assigned(control: int, treatment: int) -> Arms:
    return {"control": Arm(control), "treatment": Arm(treatment)}


def scored(control: tuple[int, int], treatment: tuple[int, int]) -> Arms:
    one = scores(task_completion=0.5)
    return {
        "control": Arm(control[1], Moments.of([one] * control[0])),
        "treatment": Arm(treatment[1], Moments.of([one] * treatment[0])),
    }


def test_the_sample_ratio_is_judged_by_a_bayes_factor() -> None:
    found = sample_ratio(assigned(160, 100), 0.5, latched=False)
    log = betaln(50 + 100, 50 + 160) - betaln(50, 50) - 260 * -0.6931471805599453
    assert found.bayes_factor == pytest.approx(float(2.718281828459045**log), rel=1e-9)
    assert found.p_value == pytest.approx(stats.chisquare([160, 100]).pvalue, rel=1e-9)
    assert not found.mismatch
    assert sample_ratio(assigned(190, 100), 0.5, latched=False).mismatch


def test_the_ratio_meant_is_that_of_the_split() -> None:
    assert not sample_ratio(assigned(900, 100), 0.1, latched=False).mismatch
    assert sample_ratio(assigned(900, 100), 0.5, latched=False).mismatch


def test_a_mismatch_once_seen_stays() -> None:
    assert sample_ratio(assigned(100, 100), 0.5, latched=True).mismatch


@pytest.mark.parametrize("split", [0.0, 1.0])
def test_all_traffic_to_one_arm_has_no_ratio(split: float) -> None:
    found = sample_ratio(assigned(500, 0), split, latched=False)
    assert (found.bayes_factor, found.p_value, found.mismatch) == (1.0, None, False)


def test_without_sessions_there_is_no_ratio() -> None:
    assert sample_ratio(assigned(0, 0), 0.5, latched=False).p_value is None


def test_attrition_is_a_chi_square_of_scored_and_unscored_sessions() -> None:
    found = attrition(scored((95, 100), (70, 100)))
    expected = stats.chi2_contingency([[95, 5], [70, 30]], correction=False).pvalue
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    assert found.suspicious
    assert (found.control_scored, found.treatment_assigned) == (95, 100)


def test_a_little_attrition_may_be_chance() -> None:
    found = attrition(scored((95, 100), (85, 100)))
    assert 0.001 < found.p_value < 0.05
    assert not found.suspicious


def test_arms_that_lose_alike_are_not_suspicious() -> None:
    assert attrition(scored((50, 100), (50, 100))).p_value == 1.0
    assert not attrition(scored((0, 0), (0, 0))).suspicious


def test_what_blocks_has_a_name() -> None:
    assert blocks(mismatch=False, suspicious_attrition=False) == []
    assert blocks(mismatch=True, suspicious_attrition=True) == ["sample_ratio_mismatch", "attrition"]
