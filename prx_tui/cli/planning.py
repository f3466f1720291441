"""`prx evolution plan`: what an experiment would do, before it is started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click

from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.output import Column, put, put_fields, put_json, put_table, styled
from prx_tui.cli.proposals import settings_of
from prx_tui.formatting import NONE, half_up, p_value, percent

if TYPE_CHECKING:
    from prx_engine import Engine
    from prx_engine.records import Plan, PlannedCase, PlannedDay

_HOURS_A_DAY: Final = 24
_CASES: Final = (
    Column("If the lift is", right=True),
    Column("Treatment wins", right=True),
    Column("Rejected", right=True),
    Column("Undecided", right=True),
    Column("Decided by the planned end", right=True),
    Column("Days", right=True),
)
_DAYS: Final = (
    Column("Day", right=True),
    Column("Sessions C + T", right=True),
    Column("p needed", right=True),
    Column("Finds a lift of", right=True),
    Column("Wins", right=True),
    Column("Decided", right=True),
)


class Percentage(click.ParamType[float]):
    """A share: 3%, or 0.03."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip().replace("−", "-")
        try:
            return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"found {value!s}; write it as 3% or 0.03", param, ctx)


@click.command
@common_options
@click.option("--lift", type=Percentage(), metavar="LIFT", help="True lift to plan for: 3% or 0.03.")
@click.option("--sessions-a-day", type=float, metavar="N", help="Scored sessions of both arms together.")
@click.option("--mean", type=float, metavar="X", help="Mean fitness of a session, 0 to 1.")
@click.option("--sd", type=float, metavar="X", help="Standard deviation of the fitness of a session.")
@click.option("--duration-hours", type=int, metavar="N", help="Planned duration.")
@click.option("--traffic-split", type=float, metavar="F", help="Share of the treatment.")
@click.option("--min-sample-size", type=int, metavar="N", help="Scored sessions that each arm needs.")
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Any other setting, for this plan.")
@pass_call
def plan(
    call: Call,
    lift: float | None,
    sessions_a_day: float | None,
    mean: float | None,
    sd: float | None,
    duration_hours: int | None,
    traffic_split: float | None,
    min_sample_size: int | None,
    pairs: tuple[str, ...],
) -> None:
    """Tell what an experiment would do, before it is started: is a week enough, is the traffic?

    Traffic, mean and spread are those of the last seven days unless they are given.

    \b
    Examples:
      prx evolution plan
      prx evolution plan --lift 3%
      prx evolution plan --sessions-a-day 80 --mean 0.72 --sd 0.18 --duration-hours 336
      prx evolution plan --set sequential.planned_share=0.5 --json
    """
    given = {
        "default_duration_hours": duration_hours,
        "traffic_split": traffic_split,
        "min_sample_size": min_sample_size,
    }
    settings = settings_of(pairs) | {name: value for name, value in given.items() if value is not None}
    with _engine(call, needs_sessions=None in (sessions_a_day, mean, sd)) as engine:
        found = engine.plan(
            lift=lift, sessions_a_day=sessions_a_day, mean=mean, standard_deviation=sd, settings=settings
        )
    if call.json:
        put_json(found)
    else:
        put_plan(found)


@contextmanager
def _engine(call: Call, *, needs_sessions: bool) -> Iterator[Engine]:
    """Open the engine; one that nothing is read from needs no database of its own."""
    if needs_sessions:
        with call.engine() as engine:
            yield engine
        return
    from prx_engine import Engine

    with TemporaryDirectory(prefix="prx-plan-") as folder, Engine.open(Path(folder, "plan.db")) as engine:
        yield engine


def put_plan(plan: Plan) -> None:
    """Write a plan: what it rests on, what it can find, how it would end, and what it knows by when."""
    put_fields(_summary(plan))
    put()
    put_table(_CASES, [_case(case) for case in plan.cases])
    put()
    put(styled(f"Day by day, if the lift is {percent(plan.lift, signed=True)}", bold=True))
    put_table(_DAYS, [_day(day) for day in plan.days])


def _summary(plan: Plan) -> Iterator[tuple[str, str]]:
    settings = plan.parameters.experiments
    source = "of the last 7 days" if plan.measured else "as given"
    yield (
        "Sessions",
        f"{half_up(plan.sessions_a_day, 1)} a day, fitness {half_up(plan.mean, 3)} ±"
        f" {half_up(plan.standard_deviation, 3)} each ({source})",
    )
    yield "First look", _first_look(plan)
    yield (
        "Finds 4 times in 5",
        f"a lift of {percent(plan.detectable_by_plan, signed=True)} by day"
        f" {_days(settings.default_duration_hours)}, of {percent(plan.detectable_by_maximum, signed=True)} by"
        f" day {_days(settings.auto_converge.max_duration_hours)}",
    )
    yield (
        "Traffic needed",
        f"{_needed(plan)} for a lift of {percent(plan.lift, signed=True)} by day"
        f" {_days(settings.default_duration_hours)}",
    )
    yield "Promoted for nothing", f"{percent(plan.false_promotion)} of changes without effect"


def _first_look(plan: Plan) -> str:
    minimum = plan.parameters.experiments.min_sample_size
    if plan.enough_sessions_hours is None:
        return f"never: an arm does not reach {minimum} sessions by the maximum"
    first = next((day.hours for day in plan.days if day.alpha_threshold is not None), None)
    return f"on day {_days(first)}, with {minimum} sessions in each arm" if first is not None else NONE


def _needed(plan: Plan) -> str:
    if plan.sessions_a_day_needed is None:
        return "no traffic is enough"
    return f"{half_up(plan.sessions_a_day_needed, 0)} sessions a day"


def _days(hours: float) -> str:
    return f"{hours / _HOURS_A_DAY:g}" if hours % _HOURS_A_DAY == 0 else half_up(hours / _HOURS_A_DAY, 1)


def _case(case: PlannedCase) -> list[str]:
    return [
        percent(case.lift, signed=True),
        percent(case.treatment_wins),
        percent(case.rejected),
        percent(max(case.undecided, 0.0)),
        percent(case.decided_by_plan),
        half_up(case.mean_hours / _HOURS_A_DAY, 1),
    ]


def _day(day: PlannedDay) -> list[str]:
    return [
        _days(day.hours),
        f"{day.control_sessions} + {day.treatment_sessions}",
        p_value(day.alpha_threshold),
        percent(day.detectable_lift, signed=True),
        percent(day.treatment_wins),
        percent(day.decided),
    ]
