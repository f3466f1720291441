"""The scenarios of the study."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from tests.study.worlds import (
    Draw,
    Feedback,
    Scenario,
    beta,
    binary,
    decaying,
    drifting,
    growing,
    normal,
    stopping,
)
from tests.support.evidence import parameters

_HOURLY = parameters(interval=1)
_HOURLY_SHORT = parameters(interval=1, duration=48, maximum=192)
_LIFTS = (-0.08, -0.04, 0.01, 0.02, 0.03, 0.05)
_A_DAY = (8, 40, 200)

_SHAPES: dict[str, Draw] = {
    "normal": normal(),
    "beta(0.5, 3)": beta(0.5, 3),
    "U-shaped beta(0.5, 0.5)": beta(0.5, 0.5),
    "0/1": binary(),
}

_REFERENCE = {
    "no effect, normal, 40 a day": "no effect, normal, 40 a day and arm",
    "no effect, 0/1, 40 a day": "no effect, 0/1 with mean 0.8, 40 a day and arm",
    "no effect, normal, 72 + 8 a day": "no effect, normal, traffic_split 0.1, 80 a day in all",
    "no effect, normal, 8 a day": "no effect, normal, 8 a day and arm",
    "no effect, normal, 200 a day": "no effect, normal, 200 a day and arm",
    "lift −8 %, normal, 40 a day": "lift -8 %, normal, 40 a day and arm",
    "lift −4 %, normal, 40 a day": "lift -4 %, normal, 40 a day and arm",
    "lift +2 %, normal, 40 a day": "lift +2 %, normal, 40 a day and arm",
    "lift +3 %, normal, 40 a day": "lift +3 %, normal, 40 a day and arm",
    "lift +5 %, normal, 40 a day": "lift +5 %, normal, 40 a day and arm",
}


def _no_effect() -> list[Scenario]:
    plain = [
        Scenario(f"no effect, {shape}, {a_day} a day", draw, draw, a_day=(a_day, a_day))
        for (shape, draw), a_day in product(_SHAPES.items(), _A_DAY)
    ]
    unequal = [
        Scenario(f"no effect, {shape}, 72 + 8 a day", draw, draw, a_day=(72, 8))
        for shape, draw in _SHAPES.items()
    ]
    return plain + unequal


def _lifts() -> list[Scenario]:
    return [
        Scenario(
            f"lift {_signed(lift)}, normal, {a_day} a day", normal(), normal(0.72 * (1 + lift)),
            effect=lift, a_day=(a_day, a_day),
        )
        for lift, a_day in product(_LIFTS, _A_DAY)
    ]  # fmt: skip


def _signed(lift: float) -> str:
    return f"{'−' if lift < 0 else '+'}{abs(lift):.0%}".replace("%", " %")


def _null(name: str, **changes: object) -> Scenario:
    return replace(Scenario(f"no effect, {name}", normal(), normal()), **changes)  # type: ignore[arg-type]


def _special() -> list[Scenario]:
    return [
        _null("beta(.5, 3) and beta(2, 12)", control=beta(0.5, 3), treatment=beta(2, 12)),
        _null("beta(2, 12) and beta(.5, 3)", control=beta(2, 12), treatment=beta(0.5, 3)),
        _null("0/1 of .8 and beta(4, 1)", control=binary(), treatment=beta(4, 1)),
        _null("beta(4, 1) and 0/1 of .8", control=beta(4, 1), treatment=binary()),
        _null("feedback in 30 %", feedback=Feedback(0.3, 0.3)),
        _null("feedback in 2 %", feedback=Feedback(0.02, 0.02)),
        _null("feedback in 30 % and 10 %", feedback=Feedback(0.3, 0.1)),
        _null("feedback in 30 % from day 8", feedback=Feedback(0.3, 0.3, from_day=8)),
        _null("growing traffic", traffic=growing),
        _null("decaying traffic", traffic=decaying),
        _null("traffic that stops on day 10", traffic=stopping),
        _null("growing spread", control=drifting(0.06, 0.30), treatment=drifting(0.06, 0.30)),
        _null("shrinking spread", control=drifting(0.30, 0.06), treatment=drifting(0.30, 0.06)),
        _null("half of the checks missed", checks="half missed"),
        _null("checked only when treatment would win", checks="only when treatment would win"),
        _null("extended by odd hours while it leads", checks="extended while it leads"),
        _null("Pocock spending", settings=parameters(spending="pocock")),
        _null("planned_share 0.5", settings=parameters(planned_share=0.5)),
        _null("hourly checks up to day 8, 40 a day", settings=_HOURLY_SHORT),
        _null("hourly checks up to day 8, 200 a day", settings=_HOURLY_SHORT, a_day=(200, 200)),
        _null("hourly checks, 8 a day", settings=_HOURLY, a_day=(8, 8), runs_share=0.2),
        _null("hourly checks, 40 a day", settings=_HOURLY, runs_share=0.2),
        Scenario(
            "lift +3 %, planned_share 0.5", normal(), normal(0.72 * 1.03), effect=0.03,
            settings=parameters(planned_share=0.5),
        ),
        Scenario(
            "lift +3 %, hourly checks, 40 a day", normal(), normal(0.72 * 1.03), effect=0.03,
            settings=_HOURLY, runs_share=0.2,
        ),
    ]  # fmt: skip


SCENARIOS = {
    scenario.name: replace(scenario, reference=_REFERENCE.get(scenario.name))
    # Those that can be compared, or try something odd, come first: a study may be cut short.
    for scenario in sorted(
        (*_special(), *_no_effect(), *_lifts()),
        key=lambda scenario: (scenario.runs_share < 1, scenario.name not in _REFERENCE),
    )
}
