"""What the screens say about experiments and about the deployment."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.records import Experiment, Interval, Look, Variant
from prx_tui.operations import OPERATIONS, hours_left, state
from prx_tui.view import experiments as listing
from prx_tui.view.experiment import change_lines, event_lines, lifecycle_bar, look_lines, title
from prx_tui.view.fitness import dimension_rows, headline, history_chart, trend_words
from prx_tui.view.header import fitness_words
from prx_tui.view.spans import Line, plain
from prx_tui.view.status import Checking, notices, status_cell
from prx_tui.view.story import story
from tests.support.clock import ManualClock

NOW = ManualClock().now()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("words")
    with Engine.open(
        folder / "prx.db", config=folder / "none.toml", clock=ManualClock(NOW), actor="op"
    ) as one:
        yield one


@pytest.fixture(scope="module")
def fresh(engine: Engine) -> Experiment:
    return engine.create_experiment("L2", {"config": {"a.b": 1}}, hypothesis="Be brief", decision_id="d-1")


def like(experiment: Experiment, **changes: Any) -> Experiment:
    return experiment.model_copy(update=changes)


def look(**changes: Any) -> Look:
    values: dict[str, Any] = {
        "series": "efficacy", "k": 3, "at": NOW, "held": True, "information": 1.0,
        "control_sessions": 118, "treatment_sessions": 122,
        "control_fitness": 0.718, "treatment_fitness": 0.749, "lift": 0.043,
        "lift_interval": Interval(lower=-0.002, upper=0.089), "p_value": 0.031, "p_welch": 0.031,
        "p_mann_whitney": None, "p_hall": None, "z": 2.15, "boundary": 2.65, "alpha_threshold": 0.0081,
        "alpha_spent": 0.01, "significant": False, "outcome": "look",
    }  # fmt: skip
    return Look(**values | changes)


def text(lines: list[Line]) -> str:
    return "\n".join(plain(one) for one in lines)


def told(experiment: Experiment, after: timedelta = timedelta(hours=1), **options: Any) -> str:
    return text(story(experiment, NOW + after, **options))


def test_what_needs_attention_says_what_it_is(fresh: Experiment) -> None:
    def found(after: timedelta = timedelta(), **changes: Any) -> list[str]:
        return [notice.short for notice in notices(like(fresh, **changes), NOW + after)]

    assert found() == []
    assert found(blocked_by=["sample_ratio_mismatch", "attrition"]) == ["ratio mismatch", "attrition"]
    assert found(verdict="treatment_wins", next_check_at=None) == ["verdict: treatment wins"]
    assert found(status="converged", promotion="conflict") == ["promotion conflict"]
    assert found(timedelta(hours=26)) == ["overdue 2 h"]
    assert found(timedelta(hours=24, minutes=10)) == []
    parameters = fresh.parameters.model_copy(
        update={"experiments": fresh.parameters.experiments.model_copy(update={"traffic_split": 1.0})}
    )
    assert found(parameters=parameters) == ["one arm only"]
    assert notices(fresh, NOW + timedelta(days=9), enabled=False) == []


def test_a_check_is_overdue_only_after_its_grace_and_nobody_is_blamed_for_what_runs(
    fresh: Experiment,
) -> None:
    opened = NOW + timedelta(hours=30)
    here = Checking(timedelta(hours=2), since=opened)
    due = fresh.next_check_at
    assert due is not None
    assert notices(fresh, opened + timedelta(hours=1), checking=here) == []
    assert here.words(due, opened + timedelta(hours=1)) == "due now"
    late = opened + timedelta(hours=3)
    assert here.words(due, late) == "overdue 9 h"
    (notice,) = notices(fresh, late, checking=here)
    assert "this dashboard" in notice.text
    assert "cron" not in notice.text
    (notice,) = notices(fresh, late)
    assert "cron" in notice.text
    (notice,) = notices(like(fresh, status="converged", promotion="applied"), late, checking=here)
    assert "no harm of the promotion is noticed" in notice.text


def test_a_status_is_readable_without_colour(fresh: Experiment) -> None:
    for status, shown in (
        ("running", "○ running"), ("evaluating", "● evaluating"),
        ("converged", "✓ converged"), ("cancelled", "✗ cancelled"),
    ):  # fmt: skip
        assert plain(status_cell(like(fresh, status=status), [])) == shown
    needing = like(fresh, blocked_by=["attrition"])
    assert plain(status_cell(needing, notices(needing, NOW))) == "▲ running"


def test_the_first_lines_say_what_happens_next_and_why(fresh: Experiment) -> None:
    assert told(fresh).startswith(
        "Next check in 23 h. A first look needs 100 scored sessions in each arm; control has 0, treatment 0."
    )
    assert "undecided then, it is extended, until 1 Jul 00:00 at most." in told(fresh)
    undecided = told(like(fresh, status="evaluating", last_look=look()))
    assert "Treatment leads by 4.3 % at look 3, but p = .031 had to reach .0081: not decided." in undecided
    behind = told(like(fresh, last_look=look(lift=-0.02)))
    assert "Treatment trails by 2.0 %" in behind
    small = told(like(fresh, last_look=look(lift=0.01, significant=True)))
    assert "reaches the .0081 needed at look 3; at least 2.0 % is worth a promotion." in small
    assert "The check is due now." in told(fresh, timedelta(hours=24, minutes=1))
    assert "The check is overdue by 6 h" in told(fresh, timedelta(hours=30))
    assert "switched off in the configuration" in told(fresh, enabled=False)
    assert "A conclusion waits for you as a verdict" in told(fresh, decides=False)
    last = told(like(fresh, planned_end_at=fresh.max_end_at))
    assert "the maximum; undecided then, control stays." in last


def test_what_lies_in_the_past_is_not_told_as_ahead(fresh: Experiment) -> None:
    planned = told(fresh, timedelta(days=8))
    assert (
        "The planned end, 8 Jun 00:00, has passed: undecided at the next check, it is extended,"
        " until 1 Jul 00:00 at most." in planned
    )
    looked = like(fresh, control_fitness=fresh.control_fitness.model_copy(update={"sessions": 9}))
    for late in (fresh, looked, like(fresh, planned_end_at=fresh.max_end_at)):
        overran = told(late, timedelta(days=183))
        assert overran.endswith(
            "The maximum, 1 Jul 00:00, has passed: the next check decides; undecided, control stays."
        )
    bar = plain(lifecycle_bar(fresh, NOW + timedelta(days=183), 120))
    assert "day 30 of at most 30, overdue" in bar


def test_an_ended_experiment_says_how_and_with_what_consequence(fresh: Experiment) -> None:
    def ended(**changes: Any) -> str:
        return told(
            like(fresh, **{"status": "converged", "converged_at": NOW, "next_check_at": None} | changes)
        )

    won = {"conclusion": "treatment_wins", "winner": "treatment"}
    assert "Converged 1 h ago: treatment wins." in ended(**won, promotion="applied")
    assert "R rolls it back" in ended(**won, promotion="applied")
    assert "p applies it now" in ended(**won, promotion="pending")
    assert "p tries again" in ended(**won, promotion="conflict")
    assert "rolled back: what was there before" in ended(**won, promotion="rolled_back")
    assert "nothing to write" in ended(**won)
    assert "L2 stays as it was" in ended(conclusion="deferred")
    assert "Cancelled 1 h ago." in ended(status="cancelled", conclusion="cancelled")


def test_where_it_stands(fresh: Experiment) -> None:
    bar = plain(lifecycle_bar(like(fresh, status="evaluating", last_look=look(), extensions=2), NOW, 120))
    assert bar.startswith("create ─── run ─── ● evaluate ┄┄┄ converge")
    assert "day 1 of 7 (at most 30)" in bar
    assert "look 3" in bar
    assert "extended 2 times" in bar
    assert "● cancelled" in plain(lifecycle_bar(like(fresh, status="cancelled", converged_at=NOW), NOW, 120))
    assert len(plain(lifecycle_bar(fresh, NOW, 50))) <= 50
    assert plain(title(fresh, [], 100)).startswith("Be brief ")
    assert "decision d-1" in plain(title(fresh, [], 100))
    assert len(plain(title(like(fresh, hypothesis="x" * 500), [], 80))) == 80


def test_what_changes_is_a_readable_diff() -> None:
    control = Variant(name="control", config={"a": 1, "c": True}, files={"p.md": "one\ntwo\n"})
    treatment = Variant(
        name="treatment", description="b", config={"a": 2, "b": "new", "c": False},
        files={"p.md": "one\n2\n", "new.md": "fresh\n", "same.md": ""},
    )  # fmt: skip
    shown = text(change_lines(control, treatment))
    for expected in (
        "a  1 → 2",
        "b  ? → new",
        "c  true → false",
        "-two",
        "+2",
        "new.md  full text",
        "+fresh",
    ):
        assert expected in shown
    nothing = text(change_lines(control, Variant(name="treatment")))
    assert "changes no key and no file" in nothing
    long = Variant(name="treatment", files={"p.md": "\n".join(map(str, range(9000)))})
    assert "7000 more lines" in text(change_lines(Variant(name="control"), long))


def test_looks_and_events_are_tables_that_fit(engine: Engine, fresh: Experiment) -> None:
    details = engine.details(fresh.experiment_id)
    assert "No look was held yet." in text(look_lines(details, 78))
    details = details.model_copy(
        update={"looks": [look(), look(k=4, held=False, outcome="missed", p_value=None, z=None)],
                "harm_looks": [look(series="harm", lift_interval=None)]}
    )  # fmt: skip
    for width in (78, 120):
        lines = look_lines(details, width)
        assert max(len(plain(one)) for one in lines) <= width
        assert ".031 / .0081" in text(lines)
        assert "+2.15 / 2.65" in text(lines)
        assert "missed" in text(lines)
    assert "(−0.2…+8.9)" in text(look_lines(details, 120))
    assert "created  by op" in text(event_lines(details.events, 78))
    assert event_lines([], 78) != []


def test_the_looks_leave_out_what_matters_less_before_they_cut_anything(
    engine: Engine, fresh: Experiment
) -> None:
    looks = [look(outcome="treatment_wins", control_sessions=11118, treatment_sessions=11122)]
    details = engine.details(fresh.experiment_id).model_copy(update={"looks": looks})
    narrow, wide = text(look_lines(details, 76)), text(look_lines(details, 120))
    assert "what followed" in narrow
    assert "treatment wins" in narrow
    assert "p / needs" in narrow
    assert "(interval)" not in narrow
    assert "…" not in narrow
    assert "α spent" in wide
    assert "11118/11122" in wide


def test_the_list_filters_by_all_words(fresh: Experiment) -> None:
    def matching(words: str, **changes: Any) -> bool:
        (entry,) = listing.shown([like(fresh, **changes)], {}, NOW, enabled=True)
        return listing.matches(entry, words)

    for words in ("brief", "BE l2", fresh.experiment_id[-8:], "d-1", "running", ""):
        assert matching(words), words
    assert not matching("brief L3")
    assert matching("Ratio mismatch", blocked_by=["sample_ratio_mismatch"])
    promoted = {"status": "converged", "conclusion": "treatment_wins", "promotion": "applied"}
    assert matching("promoted", **promoted)
    assert matching("treatment wins", **promoted)
    assert not matching("rolled back", **promoted)
    assert matching("rolled back", **promoted | {"promotion": "rolled_back"})
    assert matching("deferred", status="converged", conclusion="deferred")


def test_the_list_sorts_by_every_column_both_ways_and_keeps_the_unknown_last(fresh: Experiment) -> None:
    many = [
        like(fresh, experiment_id=f"{n:036x}", hypothesis=f"h{n}", created_at=NOW - timedelta(days=n),
             last_look=look(lift=n / 100, p_value=n / 10) if n != 2 else None)
        for n in range(5)
    ]  # fmt: skip
    entries = listing.shown(many, {}, NOW, enabled=True)
    for by in listing.sortable():
        for reverse in (False, True):
            order = listing.ordered(entries, listing.Order(by, reverse))
            assert sorted(e.experiment.hypothesis for e in order) == [f"h{n}" for n in range(5)], by
    lifts = listing.ordered(entries, listing.Order("lift", True))
    assert [e.experiment.hypothesis for e in lifts] == ["h4", "h3", "h1", "h0", "h2"]


def test_what_needs_attention_comes_first(fresh: Experiment) -> None:
    many = [
        like(fresh, hypothesis="done", status="converged", next_check_at=None),
        like(fresh, hypothesis="fine"),
        like(fresh, hypothesis="blocked", blocked_by=["attrition"]),
        like(fresh, hypothesis="verdict", verdict="regression", next_check_at=None),
    ]
    entries = listing.ordered(listing.shown(many, {}, NOW, enabled=True), listing.Order())
    assert [e.experiment.hypothesis for e in entries] == ["verdict", "blocked", "fine", "done"]


def test_operations_know_what_is_possible(fresh: Experiment) -> None:
    ended = like(fresh, status="converged", conclusion="treatment_wins", promotion="applied")
    assert [id for id, it in OPERATIONS.items() if not it.refusal(fresh)] == [
        "cancel",
        "extend",
        "promote",
        "reject",
    ]
    assert [id for id, it in OPERATIONS.items() if not it.refusal(ended)] == ["rollback"]
    pending = like(ended, promotion="conflict")
    assert [id for id, it in OPERATIONS.items() if not it.refusal(pending)] == ["promote"]
    assert "1 key will be written" in OPERATIONS["promote"].question(fresh)
    assert "have not decided for it" in OPERATIONS["promote"].question(fresh)
    blocked = like(fresh, blocked_by=["attrition"])
    assert "cannot be compared (attrition)" in OPERATIONS["promote"].question(blocked)
    assert "conflict is tried again" in OPERATIONS["promote"].question(pending)
    assert hours_left(fresh, NOW) == 720 - 168
    assert hours_left(fresh, NOW + timedelta(days=40)) == 0
    assert state(fresh) == state(like(fresh, control_sessions=9))
    assert state(fresh) != state(like(fresh, verdict="regression"))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_question_that_stays_open_says_nothing_that_grows_old(fresh: Experiment, operation: str) -> None:
    more = like(fresh, control_sessions=9_001, treatment_sessions=9_002)
    assert OPERATIONS[operation].question(more) == OPERATIONS[operation].question(fresh)


def test_fitness_without_sessions_says_what_is_missing(engine: Engine) -> None:
    deployment, history = engine.fitness(), engine.history(7)
    shown = text(headline(deployment, 78))
    assert "10 more sessions are needed" in shown
    assert "Trend: not known yet" in shown
    assert history_chart(history, 0.5, 78, 10) == []
    for width in (60, 78, 200):
        assert max(len(plain(one)) for one in dimension_rows(deployment, history, width)) <= max(width, 78)


@pytest.mark.parametrize(
    ("change", "trend", "head", "sentence"),
    [
        (0.0001, "stable", " ±0.00 over 7 d", "Trend: stable, ±0.000 against"),
        (0.031, "improving", " ↗ +0.03 over 7 d", "Trend: ↗ improving, +0.031 against"),
        (-0.031, "declining", " ↘ −0.03 over 7 d", "Trend: ↘ declining, −0.031 against"),
    ],
)
def test_a_change_of_fitness_is_not_taken_for_a_fitness(
    engine: Engine, change: float, trend: str, head: str, sentence: str
) -> None:
    deployment = engine.fitness().model_copy(
        update={"change": change, "trend": trend, "missing_sessions": None}
    )
    assert plain(fitness_words(deployment, [])).endswith(head)
    assert trend_words(deployment).startswith(sentence)
