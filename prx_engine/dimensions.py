"""The six dimensions of a session's fitness, and the fixed vocabulary around them."""

from __future__ import annotations

from typing import Final, Literal, get_args

Dimension = Literal[
    "response_relevance",
    "task_completion",
    "response_latency",
    "token_efficiency",
    "memory_precision",
    "user_satisfaction",
]
Layer = Literal["L1", "L2", "L3"]
VariantName = Literal["control", "treatment"]

DIMENSIONS: Final[tuple[Dimension, ...]] = get_args(Dimension)
LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)
VARIANTS: Final[tuple[VariantName, ...]] = get_args(VariantName)

UNIT: Final = 10_000
"""Scores are stored as whole numbers of 1/UNIT, so that sums of them are exact."""
