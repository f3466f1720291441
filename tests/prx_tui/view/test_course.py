"""The charts of an experiment, and the story above them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.records import ExperimentDetails, Look
from prx_tui.view.course import sequential_picture
from prx_tui.view.experiment import look_lines
from prx_tui.view.spans import Line, plain, width_of
from prx_tui.view.status import notices
from prx_tui.view.story import full_story, story
from tests.prx_tui.scenes import NOW
from tests.support.clock import ManualClock

ROUTING, PLANNING, MEMORIES = "Route simple", "A plan before", "Keep 30"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, templates: Callable[[str], Path]) -> Iterator[Engine]:
    folder = templates("busy")
    database, config = folder / "prx.db", folder / "config.toml"
    with Engine.open(database, config=config, clock=ManualClock(NOW), read_only=True) as one:
        yield one


def details_of(engine: Engine, start: str, **changes: Any) -> ExperimentDetails:
    (found,) = [one for one in engine.experiments("all") if one.hypothesis.startswith(start)]
    return engine.details(found.experiment_id).model_copy(update=changes)


def text(lines: list[Line]) -> str:
    return "\n".join(map(plain, lines))


def test_the_sequential_picture_has_the_looks_the_boundaries_and_those_to_come(engine: Engine) -> None:
    details = details_of(engine, ROUTING)
    drawn = sequential_picture(details, NOW, 76, 14)
    assert len(drawn) <= 14
    assert all(width_of(one) <= 76 for one in drawn)
    shown = text(drawn[: next(i for i, one in enumerate(drawn) if "└" in plain(one))])
    assert shown.count("●") == len(details.looks)
    assert shown.count("◦") == len({one.at for one in details.harm_looks} - {one.at for one in details.looks})
    for name in ("treatment wins", "control wins", "regression"):
        assert name in shown
    for label in ("now", "planned end", "0.0┤"):
        assert label in text(drawn)
    last, coming = details.looks[-1], details.forecast.looks[0] if details.forecast else None
    assert coming is not None
    assert f"boundary ±{last.boundary:.2f}" in text(drawn)
    assert f"±{coming.boundary:.2f}" in text(drawn)


def test_the_future_of_the_picture_is_dimmed(engine: Engine) -> None:
    for one in sequential_picture(details_of(engine, ROUTING), NOW, 76, 14, legend=False)[:-1]:
        spans = list(one)
        now = next((i for i, span in enumerate(spans) if "┊" in span.text), None)
        if now is not None:
            right_of_now = spans[now].text.split("┊")[1]
            rest = [span for span in spans[now + 1 :] if span.text.strip()]
            assert right_of_now == "" or spans[now].tone == "dim"
            assert all(span.tone == "dim" for span in rest)


def test_before_the_first_look_the_picture_shows_what_is_to_come(engine: Engine) -> None:
    shown = text(sequential_picture(details_of(engine, MEMORIES), NOW, 76, 14))
    assert "treatment wins" in shown
    nothing = details_of(engine, MEMORIES, looks=[], harm_looks=[], forecast=None)
    assert "No look was held yet" in text(sequential_picture(nothing, NOW, 76, 14))


def test_what_lies_beyond_the_picture_is_marked_at_its_edge(engine: Engine) -> None:
    details = details_of(engine, ROUTING)
    far = [one.model_copy(update={"z": z}) for one, z in zip(details.looks, (40.0, -40.0), strict=False)]
    odd = [*far, *(one.model_copy(update={"z": None, "boundary": math.inf}) for one in details.looks[2:])]
    drawn = [plain(one) for one in sequential_picture(details.model_copy(update={"looks": odd}), NOW, 76, 14)]
    assert "6.0┤" in drawn[0]
    assert "▲" in drawn[0]
    assert "▼" in "".join(drawn)


def test_long_after_the_maximum_nothing_is_told_of_chances_and_now_is_not_in_the_picture(
    engine: Engine,
) -> None:
    details = details_of(engine, ROUTING)
    late = NOW + timedelta(days=170)
    assert "now" in text(sequential_picture(details, NOW, 76, 14))
    drawn = text(sequential_picture(details, late, 76, 14, legend=False))
    assert "now" not in drawn
    assert "28 Jun" in drawn
    full = text(full_story(details.experiment, late, enabled=True, decides=True, details=details))
    assert "would win" not in full
    assert "sessions a day" not in full


@pytest.mark.parametrize("size", [(20, 4), (8, 2), (60, 3)])
def test_without_room_there_is_no_picture(engine: Engine, size: tuple[int, int]) -> None:
    assert "┤" not in text(sequential_picture(details_of(engine, ROUTING), NOW, *size))


@pytest.mark.parametrize("start", [ROUTING, PLANNING, MEMORIES])
def test_a_brief_story_is_part_of_the_full_one(engine: Engine, start: str) -> None:
    details = details_of(engine, start)
    brief = story(details.experiment, NOW, details=details, brief=True)
    full = full_story(details.experiment, NOW, enabled=True, decides=True, details=details)
    assert len(text(brief)) < len(text(full))
    for one in brief:
        assert plain(one) in text(full)
    assert "would win 4 times in 5" in text(full)


# A promoted change


def watch_look(details: ExperimentDetails, **changes: Any) -> Look:
    values = {"series": "watch", "k": 2, "control_fitness": 0.74, "treatment_fitness": 0.761, "lift": 0.028}
    return next(iter((*details.looks, *details.harm_looks))).model_copy(update=values | changes)


def promoted(engine: Engine, **changes: Any) -> ExperimentDetails:
    details = details_of(engine, "Two examples")
    watched: dict[str, Any] = {
        "promotion": "applied",
        "promotion_note": None,
        "watch_ends_at": NOW + timedelta(days=3),
        "next_check_at": NOW + timedelta(hours=5),
    }
    return details.model_copy(update={"experiment": details.experiment.model_copy(update=watched | changes)})


def test_the_watch_over_a_promoted_change_is_told(engine: Engine) -> None:
    details = promoted(engine).model_copy(update={"watch_looks": []})
    told = text(story(details.experiment, NOW, details=details))
    assert "Watched until 11 Jun 10:00; next look in 5 h." in told
    assert "rolled back by itself" in told
    looks = [watch_look(details, significant=False, outcome="watched")]
    watched = details.model_copy(update={"watch_looks": looks})
    told = text(story(watched.experiment, NOW, details=watched))
    assert "Since the promotion fitness 0.740 → 0.761 (+2.8 %" in told
    assert "no regression" in told
    assert "Since the promotion" in text(look_lines(watched, 100))
    harmed = promoted(engine, promotion="rolled_back", watch_ends_at=None, next_check_at=None)
    harmed = harmed.model_copy(update={"watch_looks": [watch_look(details, significant=True)]})
    told = text(story(harmed.experiment, NOW, details=harmed))
    assert "was rolled back" in told
    assert "worse beyond chance" in told


def test_a_rollback_that_failed_and_a_late_watch_need_somebody(engine: Engine) -> None:
    def found(**changes: Any) -> list[str]:
        return [one.short for one in notices(promoted(engine, **changes).experiment, NOW)]

    assert found() == []
    assert found(promotion_note="x.toml was changed") == ["not rolled back"]
    assert found(next_check_at=NOW - timedelta(hours=2)) == ["overdue 2 h"]
    details = promoted(engine, promotion_note="cannot be rolled back: x.toml was changed")
    told = text(story(details.experiment, NOW, details=details))
    assert "▲ Still promoted: cannot be rolled back: x.toml was changed. Mend that, then R" in told
