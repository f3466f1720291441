"""`assign` and `record`: what agents do with sessions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from prx_engine.text import shown
from prx_tui.cli.call import Call, common_options, pass_call, say_if_disabled
from prx_tui.cli.experiments import LAYER
from prx_tui.cli.listing import short
from prx_tui.cli.output import Column, put, put_json, put_table
from prx_tui.cli.reporting import Refused, binary_stdin
from prx_tui.formatting import NONE, words

if TYPE_CHECKING:
    from prx_engine.dimensions import Layer

F = TypeVar("F", bound=Callable[..., Any])

_COUNTS: Final = {
    "tool_calls": "Tool calls made.",
    "tool_calls_succeeded": "Tool calls that succeeded.",
    "tasks": "Tasks given.",
    "tasks_succeeded": "Tasks that succeeded.",
    "tokens": "Tokens used.",
    "thumbs_up": "Signs of approval.",
    "thumbs_down": "Signs of disapproval.",
    "corrections": "Corrections by the user.",
}
_LISTS: Final = {
    "relevance": "A judge's score of a response, 0–1. May be repeated.",
    "first_token_ms": "Milliseconds to the first token of a response. May be repeated.",
    "recall_relevance": "Relevance of a recalled memory, 0–1. May be repeated.",
}
_TEXTS: Final = {
    "started_at": ("TIME", "When the session started, as 2026-06-01T08:00:00Z; else now."),
    "cluster": ("NAME", "The user or task that the session belongs to."),
    "source": ("NAME", "Who reports; a later report of the same source replaces its earlier fields."),
    "experiment_id": ("ID", "Only with --variant: the experiment, by its whole id."),
}


@click.command
@common_options
@click.argument("session")
@click.option(
    "--layer",
    type=LAYER,
    help="Print one word for this layer: control, treatment or default. The session is assigned in the other"
    " layers all the same.",
)
@pass_call
def assign(call: Call, session: str, layer: Layer | None) -> None:
    """Tell which variant a session runs, the same for ever after.

    SESSION is the agent's own name of the session.

    \b
    Examples:
      prx evolution assign s-17 --layer L2
      prx evolution assign s-17 --json        with the configuration and files to use
    """
    with call.engine(create=True) as engine:
        answers = engine.assign(session)
        if call.json:
            put_json(answers if layer is None else answers[layer])
            return
        say_if_disabled(engine)
    if layer is not None:
        put(answers[layer].variant or "default")
        return
    put_table(
        [Column("Layer"), Column("Variant"), Column("Experiment"), Column("Why")],
        [
            (
                answer.layer,
                answer.variant or "default",
                short(answer.experiment_id) if answer.experiment_id else NONE,
                words(answer.reason),
            )
            for answer in answers.values()
        ],
    )


def _metric_options(command: F) -> F:
    for name, text in reversed(_COUNTS.items()):
        command = click.option(_option(name), name, type=int, metavar="N", help=text)(command)
    for name, text in reversed(_LISTS.items()):
        command = click.option(_option(name), name, type=float, multiple=True, metavar="X", help=text)(
            command
        )
    for name, (metavar, text) in reversed(_TEXTS.items()):
        command = click.option(_option(name), name, metavar=metavar, help=text)(command)
    return command


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@click.command
@common_options
@click.argument("session")
@click.option("--json-file", metavar="FILE", help="A JSON object with the fields; - reads stdin.")
@_metric_options
@click.option(
    "--score",
    "scores",
    metavar="DIMENSION=X",
    multiple=True,
    help="A ready-made score, 0–1, instead of raw metrics. May be repeated.",
)
@click.option("--layer", type=LAYER, help="Only with --variant: the layer.")
@click.option(
    "--variant",
    type=click.Choice(["control", "treatment"]),
    help="The variant that an agent which splits its own traffic has chosen.",
)
@pass_call
def record(
    call: Call, /, session: str, json_file: str | None, scores: tuple[str, ...], **options: Any
) -> None:
    """Record what is known of a session; call it as often as there is news.

    Options stand above the fields of the file.

    \b
    Examples:
      prx evolution record s-17 --tokens 5210 --thumbs-up 1 --first-token-ms 420 --first-token-ms 610
      prx evolution record s-17 --score task_completion=0.8
      my-agent --report | prx evolution record s-17 --json-file -
    """
    fields = _read_object(json_file) if json_file is not None else {}
    if fields.pop("session_id", session) != session:
        raise Refused(f"session_id: the file is about another session than {shown(session)}")
    for name, value in options.items():
        if value not in (None, ()):
            fields[name] = list(value) if isinstance(value, tuple) else value
    if scores:
        fields["scores"] = _table_of(fields.get("scores")) | _scores(scores)
    if not fields:
        raise click.UsageError("nothing to record; give a metric such as --tokens N, or --json-file FILE")
    if "self" in fields:  # the one name that a call cannot hand on for the engine to refuse
        raise Refused("self: no such field")
    with call.engine(create=True) as engine:
        engine.record(session, **fields)
        if call.json:
            put_json({"session_id": session, "recorded": True})


def _read_object(name: str) -> dict[str, Any]:
    where = "stdin" if name == "-" else name
    try:
        if name == "-":
            content = binary_stdin().read()
        else:
            with open(name, "rb") as file:
                content = file.read()
        fields = json.loads(content.decode("utf-8-sig"), parse_constant=_no_constant)
    except OSError as error:
        raise Refused(f"{where}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"{where}: not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where}: not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise Refused(f"{where}: not a JSON object, but {shown(fields)}")
    return fields


def _table_of(scores: object) -> dict[str, Any]:
    """The scores of the file, for those of options to stand above."""
    if scores is None:
        return {}
    if not isinstance(scores, dict):
        raise Refused(f'scores: found {shown(scores)}; allowed: an object such as {{"task_completion": 0.8}}')
    return scores


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _scores(pairs: tuple[str, ...]) -> dict[str, float]:
    scores = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            scores[name.strip()] = float(text)
        except ValueError:
            raise click.BadParameter(f"--score: found {shown(pair)}; write it as DIMENSION=0.8") from None
    return scores
