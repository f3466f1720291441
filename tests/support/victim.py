"""A process that works until it is killed.

It prints one line after each call that came back: what was acknowledged must be there afterwards.
"""

from __future__ import annotations

import itertools
import json
import random

from prx_engine import Engine
from tests.support.clock import ManualClock
from tests.support.sessions import random_metrics


def main(database: str, config: str, name: str, seed: str) -> None:
    source = random.Random(int(seed))
    clock = ManualClock("2026-06-01T01:00:00Z")
    with Engine.open(database, config=config, clock=clock) as engine:
        for i in itertools.count():
            acknowledged: list[object] = []
            act = source.choice(["assign", "record", "record", "import", "check"])
            session = f"{name}-{i}"
            if act == "assign":
                acknowledged = [session, engine.assign(session)["L2"].variant]
            elif act == "record":
                engine.record(session, source="first", thumbs_up=1, **random_metrics_without_thumbs(source))
                engine.record("shared", source=session, thumbs_up=1)
                acknowledged = [session]
            elif act == "import":
                lines = [
                    json.dumps(
                        random_metrics(source)
                        | {"session_id": f"{session}-{k}", "layer": "L2", "variant": source.choice(VARIANTS)}
                    ).encode()
                    for k in range(source.randint(1, 40))
                ]
                engine.import_lines(lines)
                acknowledged = [session, len(lines)]
            else:
                clock.advance(hours=1)
                engine.check()
            print(json.dumps([act, *acknowledged]), flush=True)


VARIANTS = ("control", "treatment")


def random_metrics_without_thumbs(source: random.Random) -> dict[str, object]:
    return {name: value for name, value in random_metrics(source).items() if not name.startswith("thumbs")}
