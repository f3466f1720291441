"""The demo: the dashboard on a throw-away database with a simulated agent behind it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_DEFAULT_SEED: Final = 1


def run_demo(*, seed: int = _DEFAULT_SEED, screenshots: str | None = None) -> int:
    """Make the demo's history, open the dashboard on it, and return the exit code once it is closed.

    Args:
        seed: another number is another story; the same number is the same one.
        screenshots: write pictures of the screens into this folder instead of opening them.
    """
    if screenshots is not None:
        from prx_tui.demo.pictures import take_pictures

        for path in take_pictures(Path(screenshots), seed):
            print(path)
        return 0
    return _run(seed)


def _run(seed: int) -> int:
    from prx_tui.app import run_dashboard
    from prx_tui.demo.agent import AgentThread
    from prx_tui.demo.cast import HISTORY, NEXT
    from prx_tui.demo.clock import GRACE
    from prx_tui.demo.deployment import throw_away_deployment
    from prx_tui.demo.history import World, make_history
    from prx_tui.ending import ending_with

    with ending_with(sys.exit), throw_away_deployment(seed) as deployment:
        world = World(seed, HISTORY + NEXT)
        arrivals = make_history(deployment, world, _tell)
        agent = AgentThread(deployment, world, arrivals)
        agent.start()
        try:
            return run_dashboard(engine_factory=deployment.engine, grace=GRACE)
        finally:
            agent.stop()


def _tell(share: float) -> None:
    """Tell whoever waits how far the history is; the line is gone when the dashboard opens."""
    if sys.stderr.isatty():
        text = f"\rmaking 45 days of history… {share:.0%}" if share < 1 else "\r\x1b[K"
        print(text, end="", file=sys.stderr, flush=True)
