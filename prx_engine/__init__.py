"""Controlled experiments for agents that change themselves.

from prx_engine import Engine

engine = Engine.open()
variant = engine.assign("session-17")["L2"].variant
engine.record("session-17", tokens=5210, thumbs_up=1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prx_engine.engine import Engine
    from prx_engine.records import Variant

__all__ = ["Engine", "Variant"]

_HOMES = {"Engine": "prx_engine.engine", "Variant": "prx_engine.records"}


def __getattr__(name: str) -> object:
    # Late: whoever wants the statistics or the errors alone does not wait for the database and its records.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
