"""The command line: ``prx``, also installed as ``prx-evolution``, and ``prx-tui``."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import NoReturn


def main() -> NoReturn:
    """Run ``prx``."""
    _write_what_cannot_be_encoded_as_question_marks()
    from prx_tui.cli.program import prx

    prx.main()
    raise AssertionError("the command line ends with an exit code")


def dashboard_main() -> NoReturn:
    """Run ``prx-tui``: the dashboard alone."""
    _write_what_cannot_be_encoded_as_question_marks()
    from prx_tui.cli.screens import dashboard

    dashboard.main(prog_name="prx-tui")
    raise AssertionError("the command line ends with an exit code")


def _write_what_cannot_be_encoded_as_question_marks() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # somebody may have put something else there
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
