"""The demo's deployment: a throw-away folder with a configuration, a prompt and a database."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prx_engine.engine import Engine
from prx_tui.demo.cast import CONFIGURATION, FIRST_DAY, FIRST_PROMPT, PROMPT_FILE
from prx_tui.demo.clock import DemoClock
from prx_tui.demo.ids import SeededIds


class Deployment:
    """One deployment; its engines share a clock and a source of ids.

    Args:
        folder: where everything of it is.
        seed: of the demo.
        clock: of all its engines.
    """

    def __init__(self, folder: Path, seed: int, clock: DemoClock) -> None:
        self.folder = folder
        self.seed = seed
        self.clock = clock
        self._ids = SeededIds(seed)

    def engine(self, actor: str = "operator") -> Engine:
        """Open an engine on it."""
        return Engine.open(
            self.folder / "experiments.db",
            self.folder / "config.toml",
            clock=self.clock,
            ids=self._ids,
            actor=actor,
        )


@contextmanager
def throw_away_deployment(seed: int, clock: DemoClock | None = None) -> Iterator[Deployment]:
    """Make a deployment without sessions whose clock stands at FIRST_DAY, and remove it in the end."""
    # A checkpoint of another connection may still be writing while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="prx-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "config.toml").write_text(CONFIGURATION, encoding="utf-8")
        prompt = folder / "workspace" / PROMPT_FILE
        prompt.parent.mkdir(parents=True)
        prompt.write_text(FIRST_PROMPT, encoding="utf-8")
        yield Deployment(folder, seed, clock or DemoClock(FIRST_DAY))
