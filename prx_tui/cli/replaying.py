"""`prx evolution replay`: a recorded stream, decided again under settings of choice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

import click

from prx_engine.dimensions import LAYERS, Layer
from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.output import Column, put, put_fields, put_json, put_table, say
from prx_tui.cli.proposals import settings_of
from prx_tui.cli.reporting import binary_stdin
from prx_tui.forecast import forecast_sentence
from prx_tui.formatting import NONE, half_up, moment, p_value, percent, words
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_engine.records import CheckResult, Experiment, Replay

_SHOWN_REJECTIONS: Final = 5
_CHECKS: Final = (
    Column("Check (UTC)"),
    Column("Look", right=True),
    Column("Sessions C + T", right=True),
    Column("Fitness C → T"),
    Column("Lift", right=True),
    Column("p", right=True),
    Column("needed", right=True),
    Column("Outcome"),
)


@click.command
@common_options
@click.argument("file", metavar="FILE")
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting to try; may be repeated.")
@click.option("--layer", type=click.Choice(LAYERS), help="Whose experiment, if the file has several.")
@pass_call
def replay(call: Call, file: str, pairs: tuple[str, ...], layer: Layer | None) -> int | None:
    """Decide about recorded sessions again: every check in its turn, on a throw-away database.

    FILE has native session lines that state a variant; - is stdin. Nothing else is read or changed.

    \b
    Examples:
      prx evolution replay sessions.jsonl
      prx evolution replay sessions.jsonl --set min_effect_size=0.01 --set sequential.spending=pocock
      prx evolution replay sessions.jsonl --json
    """
    from prx_engine.configuration import ConfigurationFile, config_path
    from prx_engine.replay import replay as replayed

    settings = ConfigurationFile(config_path(os.environ)).current()
    with _lines(file) as lines:
        found = replayed(lines, settings, settings_of(pairs), layer, "stdin" if file == "-" else file)
    if call.json:
        put_json(found)
    else:
        put_replay(found)
    for rejected in found.rejected[:_SHOWN_REJECTIONS]:
        say(f"{rejected.file}:{rejected.line}: {rejected.problem}")
    if len(found.rejected) > _SHOWN_REJECTIONS:
        say(f"{len(found.rejected) - _SHOWN_REJECTIONS} more lines are no session lines")
    return 1 if found.rejected else None


@contextmanager
def _lines(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield binary_stdin()
        return
    with open(file, "rb") as stream:
        yield stream


def put_replay(replay: Replay) -> None:
    """Write what each check found, and how it ended."""
    put_table(_CHECKS, [_row(check) for check in replay.checks])
    put()
    put_fields(_ending(replay))


def _row(check: CheckResult) -> list[str]:
    outcome: str = words(check.conclusion or check.outcome)
    if check.missing:
        outcome += f": {'; '.join(safe_text(item) for item in check.missing)}"
    look = check.look
    if look is None:
        return [moment(check.at), NONE, NONE, NONE, NONE, NONE, NONE, outcome]
    return [
        moment(check.at),
        str(look.k),
        f"{look.control_sessions} + {look.treatment_sessions}",
        f"{half_up(look.control_fitness, 3)} → {half_up(look.treatment_fitness, 3)}",
        percent(look.lift, signed=True),
        p_value(look.p_value),
        p_value(look.alpha_threshold),
        outcome,
    ]


def _ending(replay: Replay) -> Iterator[tuple[str, str]]:
    experiment = replay.details.experiment
    yield "Verdict", _verdict(experiment)
    if replay.checks:
        yield "Why", safe_text(replay.checks[-1].reason)
    yield (
        "Sessions",
        f"{experiment.control_sessions} control + {experiment.treatment_sessions} treatment, from"
        f" {moment(experiment.created_at)} UTC on",
    )
    if experiment.blocked_by:
        yield "Blocked by", ", ".join(words(block) for block in experiment.blocked_by)
    if replay.details.forecast is not None:
        yield "Forecast", forecast_sentence(replay.details.forecast, experiment)


def _verdict(experiment: Experiment) -> str:
    if experiment.conclusion is None:
        return f"none yet: still {experiment.status} at the end of the file"
    return f"{words(experiment.conclusion)}, on {moment(experiment.converged_at)} UTC"
