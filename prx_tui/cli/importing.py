"""`prx evolution import`: what agents have written, as sessions in the database."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from prx_engine.errors import StoreBusy
from prx_tui.cli.call import Call, common_options, pass_call, refuse_fixed_clock
from prx_tui.cli.output import put_json, say
from prx_tui.cli.reporting import FAILED, binary_stdin
from prx_tui.text import safe_text

if TYPE_CHECKING:
    from prx_engine import Engine
    from prx_engine.records import ImportReport
    from prx_engine.telemetry.following import TelemetryFollower
    from prx_engine.telemetry.places import Place

FORMATS: Final = ("auto", "native", "otlp", "codex", "claude-code", "langfuse", "prx")

_SHOWN_REJECTIONS: Final = 20
_POLL_SECONDS: Final = 1.0
_BIG: Final = 4 * 1024 * 1024
"""Bytes of a file from which on progress is shown."""

_LONGEST_LINE: Final = 17 * 1024 * 1024
"""Bytes of a line of stdin that are read: more than the engine takes, so that it refuses what is cut off."""

Refuse = Callable[[int, bytes], None]


@click.command("import")
@common_options
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="Format of the files; auto recognises it by their content.",
)
@click.option("--follow", is_flag=True, help="Go on with what the files gain, for ever; keeps its place.")
@click.option("--rejects", metavar="FILE", help="Save the lines that are refused in this file.")
@pass_call
def import_files(
    call: Call, files: tuple[str, ...], format_: str, follow: bool, rejects: str | None
) -> int | None:
    """Import sessions from files, folders and globs of what agents write; - reads stdin.

    Formats: native session lines, OpenTelemetry (otlp), Codex rollouts, Claude Code transcripts, Langfuse
    exports, PRX's own logs and memory; also compressed (gzip, zstd).

    Importing the same again changes nothing. Lines that are wrong are reported and passed over, the others
    are imported, and the exit code is 1.

    \b
    Examples:
      prx evolution import sessions.jsonl
      my-agent --log | prx evolution import -
      prx evolution import ~/.codex/sessions --follow
      prx evolution import *.jsonl --rejects refused.txt

    \b
    A native line:
      {"session_id": "s-17", "started_at": "2026-06-01T08:00:00Z", "relevance": [0.9, 0.7],
       "tool_calls": 6, "tool_calls_succeeded": 5, "first_token_ms": [420, 610], "tokens": 5210,
       "tasks_succeeded": 1, "recall_relevance": [0.8], "thumbs_up": 1}
    """
    if follow:
        if "-" in files or rejects is not None:
            raise click.UsageError("--follow: goes neither with stdin nor with --rejects")
        refuse_fixed_clock("import --follow")
        with call.engine(create=True) as engine:
            follow_files(call, engine.follow(*files, format=format_), "; ".join(files))
        return None
    if "-" in files:
        binary_stdin()  # if it is closed nothing is imported, not the half of it
    if rejects is not None:
        _refuse_to_overwrite(rejects, files)
    with ExitStack() as stack:
        engine = stack.enter_context(call.engine(create=True))
        saved = stack.enter_context(open(rejects, "wb")) if rejects is not None else None
        reports = list(_imported(engine, files, format_, saved))
    if call.json:
        put_json(
            [
                {"file": name, "error": None, **report.model_dump(mode="json")}
                if not isinstance(report, str)
                else {"file": name, "error": report}
                for name, report in reports
            ]
        )
    unread = sum(isinstance(report, str) for _, report in reports)
    refused = sum(report.refused for _, report in reports if not isinstance(report, str))
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


def follow_files(call: Call, follower: TelemetryFollower, told: str) -> None:
    """Record what files gain until told to stop."""
    with call.stopping() as stop:
        say(f"following {safe_text(told)}; Ctrl-C stops")
        try:
            while True:
                with suppress(StoreBusy):  # the next poll goes on where this one was
                    say_followed(follower.poll(lambda: stop.wait(0)))
                if stop.wait(_POLL_SECONDS):
                    say("stopped")
                    return
        finally:
            follower.close()


def say_followed(report: ImportReport) -> None:
    """Tell what one poll has brought, if it has brought anything."""
    if report.recorded:
        say(f"{_count(report.sessions, 'session')} with news in {_count(report.lines, 'line')}")
    for rejected in report.rejected:
        say(f"{rejected.file}:{rejected.line}: {rejected.problem}")
    _say_more(report, "")


def _refuse_to_overwrite(rejects: str, files: tuple[str, ...]) -> None:
    from prx_engine.telemetry.places import places

    for name in files:
        for place in places(name) if name != "-" else ():
            if os.path.exists(rejects) and os.path.samefile(place.path, rejects):
                raise click.UsageError(
                    f"--rejects: {safe_text(rejects)} is one of the files to import; name another one"
                )


def _imported(
    engine: Engine, files: tuple[str, ...], format_: str, saved: IO[bytes] | None
) -> Iterator[tuple[str, ImportReport | str]]:
    """Import files; return the report of each, or why it could not be read."""
    from prx_engine.telemetry.places import has_telemetry, places

    def refuse(_: int, line: bytes) -> None:
        if saved is not None:
            saved.write(line + b"\n")

    for name in files:
        if name == "-":
            report = engine.import_lines(_lines(binary_stdin()), "stdin", format=format_, on_rejected=refuse)
            _say_report("stdin", report)
            yield name, report
            continue
        found = places(name)
        if not found:
            say(f"{name}: no file fits")
            yield name, "no file fits"
        known = [place for place in found if place.named or has_telemetry(place.path)]
        if found and not known:
            say(f"{name}: {_count(len(found), 'file')}, none of a known format")
            yield name, "no file of a known format"
        for place in known:
            yield str(place.path), _import(engine, place, format_, refuse)


def _import(engine: Engine, place: Place, format_: str, refuse: Refuse) -> ImportReport | str:
    """Import one file; return the report, or why it could not be read."""
    label = str(place.path)
    try:
        with _progress(place.path, label) as progress:
            report = engine.import_file(
                place.path, format=format_, on_rejected=refuse, on_progress=_moves(progress)
            )
    except OSError as error:
        say(f"{label}: {error.strerror}")
        return str(error.strerror)
    _say_report(label, report)
    return report


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream; of a line without end no more than is needed to refuse it."""
    while line := file.readline(_LONGEST_LINE):
        yield line
        while not line.endswith(b"\n") and (line := file.readline(_LONGEST_LINE)):
            pass


def _progress(path: Path, label: str) -> Any:
    """A progress bar on stderr: seen only for a big file and on a terminal."""
    status = os.stat(path)
    big = stat.S_ISREG(status.st_mode) and status.st_size >= _BIG
    return click.progressbar(
        length=max(status.st_size, 1),
        label=safe_text(label, 40),
        file=sys.stderr,
        hidden=not (big and sys.stderr.isatty()),
    )


def _moves(progress: Any) -> Callable[[int], None]:
    """Return what moves the bar to a number of bytes, seldom enough to cost nothing."""

    def move(position: int) -> None:
        if position - progress.pos > _BIG // 16:
            progress.update(position - progress.pos)

    return move


def _say_report(label: str, report: ImportReport) -> None:
    told = f"{label}: {_count(report.lines, 'line')}, {_count(report.sessions, 'session')}"
    if report.lines and not (report.sessions or report.refused or report.waiting):
        told += f"; nothing of the format {report.format} tells of a session"
    if report.recorded and report.missing_dimensions:
        told += f"; no data for: {', '.join(report.missing_dimensions)}"
    say(told)
    if report.waiting:
        say(
            f"{label}: {_count(report.waiting, 'record')} named no session; counted as soon as another"
            " record names that of their trace"
        )
    if report.without_experiment:
        say(
            f"{label}: {_count(report.without_experiment, 'session')} stated a variant, but no experiment"
            " of the layer was active when they started; they count for the deployment alone"
        )
    for rejected in report.rejected[:_SHOWN_REJECTIONS]:
        say(f"{label}:{rejected.line}: {rejected.problem}")
    _say_more(report, f"{label}: ")


def _say_more(report: ImportReport, label: str) -> None:
    told = len({(rejected.file, rejected.line) for rejected in report.rejected[:_SHOWN_REJECTIONS]})
    if report.refused > told:
        say(f"{label}and {_count(report.refused - told, 'line')} more refused")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
