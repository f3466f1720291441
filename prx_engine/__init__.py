"""Controlled experiments for agents that change themselves.

from prx_engine import Engine

engine = Engine.open()
variant = engine.assign("session-17")["L2"].variant
engine.record("session-17", tokens=5210, thumbs_up=1)
"""

from prx_engine.engine import Engine
from prx_engine.records import Variant

__all__ = ["Engine", "Variant"]
