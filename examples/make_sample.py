"""Writes sessions.jsonl: a made-up comparison of 200 + 200 sessions, for trying things out.

A judge scores each answer, 0 to 1. Most answers are good and a few are very bad: heavily skewed scores. With
the treatment the bad ones are rarer. Running this again writes the same file.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

FILE = Path(__file__).with_name("sessions.jsonl")
SESSIONS = 200
START = datetime(2026, 6, 1, 0, 10, tzinfo=UTC)
APART = timedelta(minutes=48)


def control(chance: random.Random) -> float:
    """A score close to 1, with a long tail towards 0."""
    return 1 - chance.random() ** 3


def treatment(chance: random.Random) -> float:
    """The same with a shorter tail."""
    return 1 - chance.random() ** 6


def lines() -> list[str]:
    """The lines of the file, in the order in which the sessions started."""
    chance = random.Random(20260601)
    made = []
    for i in range(SESSIONS):
        started = (START + i * APART).isoformat().replace("+00:00", "Z")
        for variant, score in (("control", control), ("treatment", treatment)):
            made.append(
                json.dumps(
                    {
                        "session_id": f"sample-{variant}-{i:03}",
                        "layer": "L3",
                        "variant": variant,
                        "started_at": started,
                        "relevance": [round(score(chance), 4)],
                    }
                )
            )
    return made


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
