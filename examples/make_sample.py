"""Writes sessions.jsonl: a made-up comparison of 200 + 200 sessions, for trying things out.

A judge compares each answer with a reference, 0 to 1. Answers of the control nearly always lose and now and
then win: heavily skewed scores. Those of the treatment win half of the time. Running this again writes the
same file.
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
    """A score close to 0, with a long tail."""
    return chance.random() ** 12


def treatment(chance: random.Random) -> float:
    """A score close to 0 or to 1."""
    distance = chance.random() ** 6
    return distance if chance.random() < 0.5 else 1 - distance


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
