"""Engines for tests: on files of the test's own folder, under its clock, closed when it is over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from prx_engine import Engine
from prx_engine.clock import Clock


class OpenEngine(Protocol):
    """Opens an engine.

    ``database`` is ``prx.db`` in the test's folder if not given; ``config`` is the text of the
    configuration file, written before the engine opens (an earlier text stays if not given).
    """

    def __call__(
        self, database: str | Path | None = None, *, config: str | None = None, clock: Clock | None = None
    ) -> Engine: ...


@contextlib.contextmanager
def engines(folder: Path, clock: Clock) -> Iterator[OpenEngine]:
    """Open engines on demand; close all of them at the end."""
    default_clock = clock
    with contextlib.ExitStack() as stack:

        def open_engine(
            database: str | Path | None = None, *, config: str | None = None, clock: Clock | None = None
        ) -> Engine:
            path = folder / "config.toml"
            if config is not None:
                path.write_text(config)
            engine = Engine.open(
                database or folder / "prx.db", config=path, clock=clock or default_clock, actor="tester"
            )
            return stack.enter_context(engine)

        yield open_engine
