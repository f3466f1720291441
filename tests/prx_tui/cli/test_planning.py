from __future__ import annotations

import json

import pytest

from tests.prx_tui.cli.conftest import Prx

GROUND = ("--sessions-a-day", "80", "--mean", "0.72", "--sd", "0.18")


def test_a_plan_tells_what_a_week_is_worth(run: Prx) -> None:
    told = run.done("plan", *GROUND, "--lift", "3%")
    assert "80.0 a day, fitness 0.720 ± 0.180 each (as given)" in told
    assert "on day 3, with 100 sessions in each arm" in told
    assert "a lift of +6.2 % by day 7, of +3.5 % by day 30" in told
    assert "342 sessions a day for a lift of +3.0 % by day 7" in told
    assert "2.5 % of changes without effect" in told
    assert not run.database.exists()


def test_a_plan_in_json_has_the_same_figures(run: Prx) -> None:
    plan = run.json("plan", *GROUND, "--lift", "0.03")
    assert plan["lift"] == 0.03
    assert plan["measured"] is False
    assert plan["detectable_by_plan"] == pytest.approx(0.0621, abs=2e-4)
    assert plan["sessions_a_day_needed"] == pytest.approx(342, abs=3)
    assert [day["hours"] for day in plan["days"]] == list(range(24, 721, 24))
    wins = [day["treatment_wins"] for day in plan["days"]]
    assert wins == sorted(wins)
    (case,) = [case for case in plan["cases"] if case["lift"] == 0.03]
    assert case["treatment_wins"] == pytest.approx(wins[-1])
    assert case["treatment_wins"] + case["rejected"] + case["undecided"] == pytest.approx(1)


def test_the_traffic_that_a_plan_asks_for_is_enough(run: Prx) -> None:
    needed = run.json("plan", *GROUND, "--lift", "0.03")["sessions_a_day_needed"]
    plan = run.json(
        "plan", "--sessions-a-day", str(needed), "--mean", "0.72", "--sd", "0.18", "--lift", "0.03"
    )
    (end,) = [day for day in plan["days"] if day["hours"] == 168]
    assert end["treatment_wins"] == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("share", ["0.5", "0.8"])
def test_planned_share_trades_the_week_for_the_month(run: Prx, share: str) -> None:
    plan = run.json("plan", *GROUND, "--lift", "0.03", "--set", f"sequential.planned_share={share}")
    (end,) = [day for day in plan["days"] if day["hours"] == 168]
    by_week, by_month = (0.20, 0.71) if share == "0.5" else (0.255, 0.64)
    assert end["treatment_wins"] == pytest.approx(by_week, abs=0.02)
    assert plan["days"][-1]["treatment_wins"] == pytest.approx(by_month, abs=0.02)


def test_the_sessions_of_the_last_seven_days_tell_what_is_not_given(run: Prx) -> None:
    lines = "\n".join(
        json.dumps(
            {
                "session_id": f"s{i}",
                "started_at": f"2026-06-0{1 + i // 60}T{i % 24:02}:00:00Z",
                "relevance": [0.5 + 0.4 * (i % 2)],
            }
        )
        for i in range(420)
    )
    run.now("2026-06-07T23:59:00Z")
    run.done("import", "-", input=lines)
    plan = run.json("plan")
    assert plan["measured"] is True
    assert plan["sessions_a_day"] == pytest.approx(60)
    assert plan["mean"] == pytest.approx(0.7)
    assert plan["standard_deviation"] == pytest.approx(0.2, rel=0.01)
    assert run.json("plan", "--sd", "0.1")["standard_deviation"] == 0.1


def test_hourly_looks_are_shown_by_the_day(run: Prx) -> None:
    hours = ("auto_converge.check_interval_hours=2", "auto_converge.max_duration_hours=200")
    plan = run.json("plan", *GROUND, "--duration-hours", "100", "--set", hours[0], "--set", hours[1])
    assert [day["hours"] for day in plan["days"]] == [24, 48, 72, 96, 100, 120, 144, 168, 192, 200]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "no database at"),
        ((*GROUND, "--set", "min_effect=1"), "did you mean min_effect_size?"),
        ((*GROUND, "--traffic-split", "2"), "experiments.traffic_split: found 2"),
        (("--sessions-a-day", "80", "--mean", "2", "--sd", "0.1"), "mean: found 2; allowed"),
        ((*GROUND, "--lift", "-1"), "lift: found -1; allowed"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(run: Prx, arguments: tuple[str, ...], line: str) -> None:
    assert line in run.refused("plan", *arguments)


def test_too_few_sessions_tell_nothing(run: Prx) -> None:
    run.done("record", "s-1", "--tokens", "2000")
    assert "fewer than 30 scored sessions in the last 7 days" in run.refused("plan")


def test_an_arm_without_traffic_never_has_a_look(run: Prx) -> None:
    told = run.done("plan", *GROUND, "--traffic-split", "0")
    assert "never: an arm does not reach 100 sessions by the maximum" in told
    assert "no traffic is enough" in told


def test_a_lift_is_a_share_or_a_percentage(run: Prx) -> None:
    assert "write it as 3% or 0.03" in run.refused("plan", *GROUND, "--lift", "much", code=2)


@pytest.mark.parametrize("a_day", ["5", "80", "3000"])
def test_a_large_lift_needs_as_many_sessions_as_a_look_does(run: Prx, a_day: str) -> None:
    spread = ("--mean", "0.6", "--sd", "0.18", "--sessions-a-day", a_day)
    for lift in ("15%", "30%", "60%"):
        # A look takes 100 sessions in each arm, within the 7 days that are planned.
        assert run.json("plan", *spread, "--lift", lift)["sessions_a_day_needed"] == pytest.approx(
            200 / 7, rel=0.02
        )


def test_a_lift_beyond_the_best_fitness_is_refused(run: Prx) -> None:
    text = run.refused("plan", "--mean", "0.72", "--sd", "0.18", "--sessions-a-day", "80", "--lift", "3")
    assert "lift: found +300.0 %; a fitness of 0.72 rises by 38.9 % at most" in text
