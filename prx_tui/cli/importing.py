"""`prx evolution import`: session lines of files into the database."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, Final

import click

from prx_tui.cli.call import Call, common_options, pass_call
from prx_tui.cli.output import put_json, say
from prx_tui.cli.reporting import FAILED
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_engine import Engine
    from prx_engine.records import ImportReport

_SHOWN_REJECTIONS: Final = 20
_BIG: Final = 4 * 1024 * 1024
"""Bytes of a file from which on progress is shown."""

_LONGEST_LINE: Final = 17 * 1024 * 1024
"""Bytes of a line that are read: more than the engine takes, so that it refuses what is cut off."""


@click.command("import")
@common_options
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "native"]),
    default="auto",
    show_default=True,
    help="Format of the files; native is one JSON object a line.",
)
@click.option("--rejects", metavar="FILE", help="Save the lines that are refused in this file.")
@pass_call
def import_files(call: Call, files: tuple[str, ...], format_: str, rejects: str | None) -> int:
    """Import sessions, one JSON object a line; - reads stdin.

    Importing the same lines again changes nothing. Lines that are wrong are reported and passed over, the
    others are imported, and the exit code is 1.

    \b
    Examples:
      prx evolution import sessions.jsonl
      my-agent --log | prx evolution import -
      prx evolution import *.jsonl --rejects bad.jsonl

    \b
    A line:
      {"session_id": "s-17", "started_at": "2026-06-01T08:00:00Z", "relevance": [0.9, 0.7],
       "tool_calls": 6, "tool_calls_succeeded": 5, "first_token_ms": [420, 610], "tokens": 5210,
       "tasks_succeeded": 1, "recall_relevance": [0.8], "thumbs_up": 1}
    """
    with ExitStack() as stack:
        engine = stack.enter_context(call.engine(create=True))
        saved = stack.enter_context(open(rejects, "wb")) if rejects is not None else None
        reports = [_import(engine, name, saved) for name in files]
    if call.json:
        put_json(
            [
                {"file": name, "error": None, **report.model_dump(mode="json")}
                if not isinstance(report, str)
                else {"file": name, "error": report}
                for name, report in zip(files, reports, strict=True)
            ]
        )
    unread = sum(isinstance(report, str) for report in reports)
    refused = sum(report.refused for report in reports if not isinstance(report, str))
    if not unread and not refused:
        return 0
    say(
        " and ".join(
            part
            for part in (
                f"{_count(unread, 'file')} could not be read" if unread else "",
                f"{_count(refused, 'line')} refused; everything else is imported" if refused else "",
            )
            if part
        )
    )
    return FAILED


def _import(engine: Engine, name: str, saved: IO[bytes] | None) -> ImportReport | str:
    """Import one file; return the report, or why it could not be read."""
    label = "stdin" if name == "-" else name
    refused: list[tuple[int, bytes]] = []

    def refuse(number: int, line: bytes) -> None:
        if saved is not None:
            refused.append((number, line))

    try:
        if name == "-":
            report = engine.import_lines(_lines(sys.stdin.buffer), label, on_rejected=refuse)
        else:
            with open(name, "rb") as file, _progress(file, label) as progress:
                report = engine.import_lines(_lines(file, progress), label, on_rejected=refuse)
    except OSError as error:
        say(f"{label}: {error.strerror}")
        return str(error.strerror)
    finally:
        if saved is not None:
            saved.writelines(line + b"\n" for _, line in sorted(refused))
    _say_report(label, report)
    return report


def _lines(file: IO[bytes], progress: Any = None) -> Iterator[bytes]:
    """The lines of a file; of a line without end no more than is needed to refuse it."""
    unreported = 0
    while line := file.readline(_LONGEST_LINE):
        yield line
        unreported += len(line)
        while not line.endswith(b"\n") and (line := file.readline(_LONGEST_LINE)):
            unreported += len(line)
        if progress is not None and unreported > _BIG // 16:
            progress.update(unreported)
            unreported = 0


def _progress(file: IO[bytes], label: str) -> Any:
    """A progress bar on stderr: seen only for a big file and on a terminal."""
    status = os.fstat(file.fileno())
    big = stat.S_ISREG(status.st_mode) and status.st_size >= _BIG
    return click.progressbar(
        length=max(status.st_size, 1),
        label=safe_text(label, 40),
        file=sys.stderr,
        hidden=not (big and sys.stderr.isatty()),
    )


def _say_report(label: str, report: ImportReport) -> None:
    told = f"{label}: {_count(report.lines, 'line')}, {_count(report.sessions, 'session')}"
    if report.recorded and report.missing_dimensions:
        told += f"; no data for: {', '.join(report.missing_dimensions)}"
    say(told)
    if report.without_experiment:
        say(
            f"{label}: {_count(report.without_experiment, 'session')} stated a variant, but no experiment"
            " of the layer was active when they started; they count for the deployment alone"
        )
    told_of = report.rejected[:_SHOWN_REJECTIONS]
    for rejected in told_of:
        say(f"{label}:{rejected.line}: {rejected.problem}")
    if report.refused > len(told_of):
        say(f"{label}: and {_count(report.refused - len(told_of), 'line')} more refused")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
