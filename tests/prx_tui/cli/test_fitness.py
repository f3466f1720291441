from __future__ import annotations

import json

import pytest

from tests.prx_tui.cli.conftest import Prx

EXAMPLE = {
    "response_relevance": 0.82,
    "task_completion": 0.78,
    "response_latency": 0.69,
    "token_efficiency": 0.65,
    "memory_precision": 0.71,
    "user_satisfaction": 0.60,
}
DOCUMENTED = """\
Current Fitness Score: 0.74

Dimension            Score   Weight  Contribution
response_relevance   0.82    0.30    0.246
task_completion      0.78    0.25    0.195
response_latency     0.69    0.15    0.104
token_efficiency     0.65    0.10    0.065
memory_precision     0.71    0.10    0.071
user_satisfaction    0.60    0.10    0.060

Trend (last 7 days): +0.03 (improving)
"""
NOW = "2026-06-08T12:00:00Z"


def lines(day: str, scores: dict[str, float], count: int = 10) -> str:
    return "".join(
        json.dumps({"session_id": f"{day}-{i}", "started_at": f"{day}T10:00:00Z", "scores": scores}) + "\n"
        for i in range(count)
    )


@pytest.fixture
def deployment(run: Prx) -> Prx:
    run.now(NOW)
    earlier = EXAMPLE | {"response_relevance": 0.72}
    run.done("import", "-", input=lines("2026-06-01", earlier) + lines("2026-06-08", EXAMPLE))
    return run


def test_the_breakdown_is_that_of_the_documentation(deployment: Prx) -> None:
    assert deployment.done("fitness", "--breakdown") == DOCUMENTED


def test_the_plain_form_says_score_and_trend(deployment: Prx) -> None:
    assert (
        deployment.done("fitness") == "Current Fitness Score: 0.74\nTrend (last 7 days): +0.03 (improving)\n"
    )
    told = deployment.json("fitness")
    assert told["trend"] == "improving"
    assert told["fitness"]["dimensions"]["response_latency"]["contribution"] == 0.1035


def test_a_decline_has_a_sign_that_scripts_can_read(run: Prx) -> None:
    run.now(NOW)
    later = EXAMPLE | {"response_relevance": 0.72}
    run.done("import", "-", input=lines("2026-06-01", EXAMPLE) + lines("2026-06-08", later))
    assert run.done("fitness").endswith("Trend (last 7 days): -0.03 (declining)\n")


def test_no_change_reads_as_a_change(run: Prx) -> None:
    run.now(NOW)
    run.done("import", "-", input=lines("2026-06-01", EXAMPLE) + lines("2026-06-08", EXAMPLE))
    assert run.done("fitness").endswith("Trend (last 7 days): +0.00 (stable)\n")
    assert ", ±0.00 against 7 days ago (stable)" in run.done("status")


def test_too_few_sessions_say_how_many_are_missing(run: Prx) -> None:
    run.now(NOW)
    run.done("import", "-", input=lines("2026-06-08", EXAMPLE, 3))
    told = run.done("fitness", "--breakdown")
    assert told.startswith("Current Fitness Score: –\n")
    assert "3 with scores in the last 24 h, 7 more are needed" in told
    assert run.json("fitness")["missing_sessions"] == 7


def test_dimensions_that_do_not_count_are_marked(run: Prx) -> None:
    run.now(NOW)
    run.done("import", "-", input=lines("2026-06-08", {"task_completion": 0.4, "token_efficiency": 0.4}))
    told = run.done("fitness", "--breakdown").splitlines()
    assert "response_relevance * –       0.00    –" in told
    assert "task_completion      0.40    0.71    0.286" in told
    assert (
        "Not counted: * (fewer than 10 sessions with data); their weights are spread over the others" in told
    )
    assert told[-1] == "Alert: below the minimum acceptable fitness of 0.50"


def test_the_history_has_one_row_a_day(deployment: Prx) -> None:
    title, *rows = deployment.done("fitness", "--history", "--last", "30d").splitlines()
    assert title.split() == ["Day", "Fitness", "Sessions"]
    assert len(rows) == 30
    assert rows[-1].split() == ["2026-06-08", "0.741", "10"]
    assert rows[-2].split() == ["2026-06-07", "–", "0"]
    assert [day["day"] for day in deployment.json("fitness", "--history", "--last", "2d")] == [
        "2026-06-07",
        "2026-06-08",
    ]


@pytest.mark.parametrize(("last", "days"), [("1w", 7), ("48h", 2), ("30h", 2), ("1h", 1)])
def test_the_history_takes_weeks_and_hours(deployment: Prx, last: str, days: int) -> None:
    assert len(deployment.json("fitness", "--history", "--last", last)) == days


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--last", "30d"), "--last needs --history"),
        (("--history", "--last", "30"), "found 30; write it as Nh, Nd, Nw"),
        (("--history", "--last", "month"), "found month"),
        (("--history", "--breakdown"), "give one of them"),
    ],
)
def test_wrong_usage(deployment: Prx, options: tuple[str, ...], told: str) -> None:
    assert told in deployment.refused("fitness", *options, code=2)


def test_a_history_beyond_all_bounds_is_refused(deployment: Prx) -> None:
    assert "days: found 9999" in deployment.refused("fitness", "--history", "--last", "9999d")


def test_a_terminal_shows_bars() -> None:
    from prx_tui.cli.fitness import bar

    assert bar(None) == ""
    assert bar(0.0) == ""
    assert bar(0.5) == "█" * 10
    assert bar(0.74) == "█" * 14 + "▊"
    assert bar(1.0) == "█" * 20
