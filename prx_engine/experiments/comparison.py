"""The two arms compared: the test of the means, its effect sizes, and each dimension by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from prx_engine import statistics
from prx_engine.configuration import Weights
from prx_engine.dimensions import DIMENSIONS, VARIANTS, Dimension, VariantName
from prx_engine.fitness.arms import Arms
from prx_engine.fitness.clusters import ClusterSums, Joint, dimension_joint_variance
from prx_engine.fitness.group import GroupFitness, dimension_mean, dimension_mean_variance, group_fitness
from prx_engine.fitness.moments import Moments
from prx_engine.records import Comparison, DimensionComparison, Interval, MeansTest

Histograms = Mapping[VariantName, statistics.Histogram]


def arm_fitness(
    arms: Arms, weights: Weights, counted: Sequence[Dimension]
) -> tuple[GroupFitness, GroupFitness] | None:
    """Return the fitness of control and treatment; None unless both have two observations of what counts."""
    if not counted or any(
        arm.moments.observations(DIMENSIONS.index(name)) < 2 for arm in arms.values() for name in counted
    ):
        return None
    control = group_fitness(arms["control"].moments, weights, counted)
    treatment = group_fitness(arms["treatment"].moments, weights, counted)
    return (control, treatment) if control and treatment else None


def as_arm(group: GroupFitness) -> statistics.Arm:
    """Return a group's fitness as the tests want it."""
    return statistics.Arm(group.mean, group.variance, group.n)


def means_test(control: GroupFitness, treatment: GroupFitness, joint: Joint | None) -> statistics.WelchResult:
    """Return the t test of the difference: Welch's, or that of clusters."""
    if joint is None:
        return statistics.welch(as_arm(control), as_arm(treatment))
    difference = statistics.mean_difference(control.mean, treatment.mean)
    return statistics.t_test(difference, joint.difference, joint.df)


def compare(
    control: GroupFitness,
    treatment: GroupFitness,
    rule: MeansTest,
    level: float,
    histograms: Callable[[], Histograms],
    joint: Joint | None = None,
) -> Comparison:
    """Compare the fitness of the two arms.

    Args:
        control: its fitness.
        treatment: its fitness, over the same dimensions.
        rule: the test that gives the p-value.
        level: two-sided level of the intervals, the alpha threshold of the look.
        histograms: reads the session fitness of both arms; called only if the rule needs it.
        joint: variances from clusters; the t test with them decides alone, whatever the rule.
    """
    arms = as_arm(control), as_arm(treatment)
    welch = means_test(control, treatment, joint)
    p_value, p_mann_whitney, p_hall = welch.p_value, None, None
    if rule == "robust" and joint is None:
        scores = histograms()
        robust = statistics.robust(*arms, scores["control"], scores["treatment"])
        p_value, p_mann_whitney, p_hall = (
            robust.p_value,
            robust.mann_whitney.p_value,
            robust.hall.p_value,
        )
    q = statistics.t_quantile(level, welch.df)
    difference = statistics.difference_interval(welch, q)
    lift = _lift_interval(control, treatment, joint, q)
    return Comparison(
        test=rule if joint is None else "clustered",
        p_value=p_value,
        p_welch=welch.p_value,
        p_mann_whitney=p_mann_whitney,
        p_hall=p_hall,
        difference=welch.difference,
        difference_interval=Interval(lower=difference.lower, upper=difference.upper),
        lift=statistics.lift(control.mean, treatment.mean),
        lift_interval=Interval(lower=lift.lower, upper=lift.upper),
        hedges_g=statistics.hedges_g(
            control.mean,
            treatment.mean,
            math.sqrt(control.variance * control.n),
            math.sqrt(treatment.variance * treatment.n),
            control.n,
            treatment.n,
        ),
        degrees_of_freedom=welch.df,
        variance=joint.difference if joint else control.variance + treatment.variance,
        clusters=joint.clusters if joint else None,
    )


def _lift_interval(
    control: GroupFitness, treatment: GroupFitness, joint: Joint | None, q: float
) -> statistics.Interval:
    if joint is None:
        return statistics.fieller_interval(as_arm(control), as_arm(treatment), q)
    return statistics.fieller_interval(
        statistics.Arm(control.mean, joint.control, control.n),
        statistics.Arm(treatment.mean, joint.treatment, treatment.n),
        q,
        joint.covariance,
    )


def compare_dimensions(
    arms: Arms, counted: Sequence[Dimension], clusters: ClusterSums | None = None
) -> dict[Dimension, DimensionComparison]:
    """Compare the two arms on every dimension, with p-values adjusted for their number (Bonferroni 1936)."""
    control, treatment = arms["control"].moments, arms["treatment"].moments
    p_values = [_dimension_p(arms, d, clusters) for d in range(len(DIMENSIONS))]
    adjusted = iter(statistics.bonferroni([p for p in p_values if p is not None]))
    comparisons: dict[Dimension, DimensionComparison] = {}
    for d, name in enumerate(DIMENSIONS):
        means = dimension_mean(control, d), dimension_mean(treatment, d)
        comparisons[name] = DimensionComparison(
            control=means[0],
            treatment=means[1],
            difference=None if means[0] is None or means[1] is None else means[1] - means[0],
            p_value=p_values[d],
            p_adjusted=None if p_values[d] is None else next(adjusted),
            control_sessions=control.observations(d),
            treatment_sessions=treatment.observations(d),
            counts=name in counted,
        )
    return comparisons


def _dimension_p(arms: Arms, d: int, clusters: ClusterSums | None) -> float | None:
    if any(arm.moments.observations(d) < 2 for arm in arms.values()):
        return None
    control, treatment = (_dimension_arm(arms[name].moments, d) for name in VARIANTS)
    if clusters is None:
        return statistics.welch(control, treatment).p_value
    joint = dimension_joint_variance(clusters, arms, d)
    if joint is None:
        return None
    difference = statistics.mean_difference(control.mean, treatment.mean)
    return statistics.t_test(difference, joint.difference, joint.df).p_value


def _dimension_arm(moments: Moments, d: int) -> statistics.Arm:
    return statistics.Arm(
        dimension_mean(moments, d) or 0.0, dimension_mean_variance(moments, d), moments.observations(d)
    )
