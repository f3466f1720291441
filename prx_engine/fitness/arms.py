"""The two arms of an experiment over some of its sessions."""

from __future__ import annotations

from dataclasses import dataclass, field

from prx_engine.dimensions import VariantName
from prx_engine.fitness.moments import Moments


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: how many sessions were assigned to it, and the moments of those that were scored."""

    assigned: int = 0
    moments: Moments = field(default_factory=Moments)

    def __add__(self, other: Arm) -> Arm:
        return Arm(self.assigned + other.assigned, self.moments + other.moments)


Arms = dict[VariantName, Arm]


def empty_arms() -> Arms:
    """Return both arms without a session."""
    return {"control": Arm(), "treatment": Arm()}


def added(first: Arms, second: Arms) -> Arms:
    """Return both arms over the sessions of two disjoint groups."""
    return {name: arm + second[name] for name, arm in first.items()}
