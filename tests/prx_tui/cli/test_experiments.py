from __future__ import annotations

import json

import pytest

from tests.prx_tui.cli.conftest import WEEK_LATER, Prx


def test_create_prints_the_id_alone_and_says_that_something_has_to_run_the_checks(run: Prx) -> None:
    result = run(
        "evolution", "experiments", "create", "--layer", "L2", "--hypothesis", "h", "--treatment", "t"
    )
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    assert len(line) == 36
    assert "nothing converges unless checks run" in result.stderr
    assert "warning" not in result.stderr


def test_extend_says_the_new_planned_end(run: Prx) -> None:
    identifier = run.create("L2", "h")
    result = run("evolution", "experiments", "extend", identifier, "--hours", "48")
    assert f"extended {identifier[-8:]} to 2026-06-10 00:00 UTC" in result.stderr


@pytest.mark.parametrize("split", ["0", "1"])
def test_create_warns_of_a_split_that_can_never_be_decided(run: Prx, split: str) -> None:
    result = run(
        *("evolution", "experiments", "create", "--layer", "L2", "--hypothesis", "h", "--treatment", "t"),
        *("--traffic-split", split),
    )
    assert result.exit_code == 0
    assert f"warning: with traffic_split = {split}" in result.stderr


def test_create_takes_settings_and_files_of_the_treatment(run: Prx) -> None:
    text = run.folder / "new.md"
    text.write_text("Be brief.\n", encoding="utf-8")
    identifier = run.create(
        "L2",
        "h",
        *("--set", "agent.temperature=0.2", "--set", "agent.model=fast", "--set", 'agent.name="a=b"'),
        *("--set", "agent.stop=[1, 2]", "--put", f"prompts/system.md={text}"),
        *(
            "--decision",
            "d-7",
            "--control",
            "320 tokens",
            "--duration-hours",
            "48",
            "--min-sample-size",
            "20",
        ),
    )
    experiment = run.json("experiments", "--id", identifier)
    assert experiment["treatment"]["config"] == {
        "agent.temperature": 0.2,
        "agent.model": "fast",
        "agent.name": "a=b",
        "agent.stop": [1, 2],
    }
    assert experiment["treatment"]["files"] == {"prompts/system.md": "Be brief.\n"}
    assert (experiment["decision_id"], experiment["control"]["description"]) == ("d-7", "320 tokens")
    assert experiment["planned_end_at"] == "2026-06-03T00:00:00Z"
    assert experiment["parameters"]["experiments"]["min_sample_size"] == 20


PROPOSAL = """
layer = "L3"
hypothesis = "cheaper routing costs no quality"
decision_id = "d-8"
duration_hours = 72
traffic_split = 0.25
min_sample_size = 30
control = "the big model for everything"

[treatment]
description = "the small model for lookups"
[treatment.config]
router.default = "small"
"router.retries" = 2
[treatment.files]
"skills/route.md" = "Route."
"""


@pytest.mark.parametrize("from_stdin", [False, True])
def test_create_reads_a_whole_proposal(run: Prx, from_stdin: bool) -> None:
    file = run.folder / "proposal.toml"
    file.write_text(PROPOSAL, encoding="utf-8")
    name = "-" if from_stdin else str(file)
    identifier = run.done("experiments", "create", "--file", name, input=PROPOSAL if from_stdin else None)
    experiment = run.json("experiments", "--id", identifier.strip())
    assert (experiment["layer"], experiment["decision_id"]) == ("L3", "d-8")
    assert experiment["control"]["description"] == "the big model for everything"
    assert experiment["treatment"]["config"] == {"router.default": "small", "router.retries": 2}
    assert experiment["treatment"]["files"] == {"skills/route.md": "Route."}
    assert experiment["parameters"]["experiments"]["traffic_split"] == 0.25


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("hypothesis =", "hypotesis ="), "hypotesis: no such key; did you mean hypothesis?"),
        (("description =", "descripton ="), "treatment.descripton: no such key; did you mean description?"),
        (('layer = "L3"', ""), "layer: missing"),
        (('layer = "L3"', 'layer = "L4"'), "layer: found L4; allowed: L1, L2, L3"),
        (('layer = "L3"', "layer = 3"), "layer: found 3; allowed: a text"),
        (('control = "the big', 'control = 3 # "'), "control: found 3; allowed: a text, or a table of"),
        (("= 2\n", "= 2026-06-01\n"), "treatment.config.router.retries: found 2026-06-01; allowed:"),
        (("= 2\n", "= inf\n"), "treatment.config.router.retries: found inf; allowed:"),
        (
            ("traffic_split = 0.25", "traffic_split = 2"),
            "traffic_split: found 2; allowed: a number from 0 to 1",
        ),
        (('"Route."', "5"), "treatment.files.skills/route.md: found 5;"),
        (('layer = "L3"', "layer = "), "not TOML"),
    ],
)
def test_what_is_wrong_with_a_proposal_is_one_line(run: Prx, change: tuple[str, str], told: str) -> None:
    file = run.folder / "proposal.toml"
    file.write_text(PROPOSAL.replace(*change), encoding="utf-8")
    assert told in run.refused("experiments", "create", "--file", str(file))


def test_a_proposal_that_cannot_be_read_is_one_line(run: Prx) -> None:
    missing = run.folder / "none.toml"
    assert run.refused("experiments", "create", "--file", str(missing)) == (
        f"prx: {missing}: No such file or directory"
    )
    assert "Is a directory" in run.refused("experiments", "create", "--file", str(run.folder))
    assert "not UTF-8" in run.refused("experiments", "create", "--file", "-", input=b"\xff\xfe")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--layer", "L2"), "--hypothesis is missing"),
        (("--file", "x.toml", "--layer", "L2"), "--layer cannot stand beside --file"),
        (("--layer", "L9"), "L9"),
        (("--layer", "L2", "--hypothesis", "h", "--treatment", "t", "--set", "x"), "write it as KEY=VALUE"),
        (
            ("--layer", "L2", "--hypothesis", "h", "--treatment", "t", "--set", "x=1", "--set", "x=2"),
            "x is set twice",
        ),
        *(
            (("--layer", "L2", "--hypothesis", "h", "--treatment", "t", "--set", f"x={value}"), "in quotes")
            for value in ("nan", "inf", "2026-01-01", "[1", "{a")
        ),
    ],
)
def test_wrong_usage_of_create(run: Prx, options: tuple[str, ...], told: str) -> None:
    assert told in run.refused("experiments", "create", *options, code=2)


def test_a_second_experiment_in_a_layer_is_refused(run: Prx) -> None:
    identifier = run.create()
    line = run.refused("experiments", "create", "--layer", "L2", "--hypothesis", "other", "--treatment", "t")
    assert identifier[-8:] in line


def test_the_listing_shows_what_is_active(run: Prx) -> None:
    identifier = run.create()
    title, row = run.done("experiments").splitlines()
    assert title.split("  ")[0] == "Id"
    assert row.startswith(f"{identifier[-8:]}  L2     running")
    assert "in 1 d" in row
    assert row.endswith("a shorter prompt is clearer")
    assert run.done("experiments", "--status", "running") == run.done("experiments")
    assert run.json("experiments")[0]["experiment_id"] == identifier


def test_the_listing_is_complete_in_a_pipe(run: Prx) -> None:
    hypothesis = "why " * 100
    run.create("L1", hypothesis)
    run.create("L2", "short")
    lines = run.done("experiments").splitlines()
    assert lines[2].endswith(hypothesis.strip())
    assert len(lines[1]) < 150


def test_an_empty_listing_says_how_to_create_one(run: Prx) -> None:
    identifier = run.create()
    run.done("experiments", "cancel", identifier)
    result = run("evolution", "experiments")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "prx: no active experiments; 1 in all (--status all)\n"
    assert run.done("experiments", "--json") == "[]\n"


def test_filters(run: Prx) -> None:
    first, second = run.create("L1"), run.create("L2")
    run.done("experiments", "cancel", first)
    assert [e["experiment_id"] for e in run.json("experiments", "--status", "cancelled")] == [first]
    assert [e["experiment_id"] for e in run.json("experiments", "--status", "all", "--layer", "L2")] == [
        second
    ]
    assert len(run.json("experiments", "--status", "all", "--limit", "1")) == 1


@pytest.mark.parametrize("where", ["before", "after", "far before"])
def test_json_stands_on_either_side_of_a_subcommand(run: Prx, where: str) -> None:
    identifier = run.create()
    args = {
        "before": ("evolution", "experiments", "--json", "cancel", identifier),
        "after": ("evolution", "experiments", "cancel", identifier, "--json"),
        "far before": ("--json", "evolution", "experiments", "cancel", identifier),
    }[where]
    result = run(*args)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "cancelled"


@pytest.mark.parametrize("level", range(4))
def test_the_database_stands_at_every_level(run: Prx, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    identifier = run.create()
    monkeypatch.setenv("PRX_DATABASE_URL", str(run.folder / "other.db"))
    words = ["evolution", "experiments", "cancel", identifier]
    words[level:level] = ["--database", str(run.database)]
    result = run(*words)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    "options", [("--status", "running"), ("--layer", "L2"), ("--id", "4f"), ("--limit", "3"), ("--details",)]
)
def test_any_other_option_before_a_subcommand_is_wrong_usage(run: Prx, options: tuple[str, ...]) -> None:
    identifier = run.create()
    line = run.refused("experiments", *options, "cancel", identifier, code=2)
    assert f"{options[0]} cannot stand before the subcommand cancel" in line
    assert run.json("experiments", "--id", identifier)["status"] == "running"


def test_unknown_and_ambiguous_ids(run: Prx) -> None:
    first, second = run.create("L1"), run.create("L2")
    assert "no experiment ffffffff" in run.refused("experiments", "cancel", "ffffffff")
    assert "no experiment --- " not in run.refused("experiments", "--id", "zzz")
    prefix = first[:8]
    assert second.startswith(prefix)
    line = run.refused("experiments", "--id", prefix)
    assert "several experiments" in line
    assert first in line
    assert second in line
    assert run.json("experiments", "--id", first[-8:])["experiment_id"] == first


def test_wrong_states_say_what_is_possible(run: Prx) -> None:
    identifier = run.create()
    line = run.refused("experiments", "rollback", identifier)
    assert "possible now: cancel, extend, promote, reject" in line
    run.done("experiments", "reject", identifier, "--reason", "no")
    for action in ("cancel", "extend", "promote", "reject"):
        assert "it is converged" in run.refused("experiments", action, identifier)


def test_an_operator_steers(run: Prx) -> None:
    identifier = run.create("L2", "h", "--set", "a.b=1")
    result = run("evolution", "experiments", "extend", identifier[-8:], "--hours", "48")
    assert result.stdout == ""
    assert f"extended {identifier[-8:]} to " in result.stderr
    assert run.json("experiments", "--id", identifier)["planned_end_at"] == "2026-06-10T00:00:00Z"
    assert "the treatment is the default now" in run("evolution", "experiments", "promote", identifier).stderr
    assert run.json("assign", "s-1", "--layer", "L2")["config"] == {"a.b": 1}
    assert run.json("experiments", "rollback", identifier, "--reason", "bad")["promotion"] == "rolled_back"


def test_an_extension_past_the_maximum_is_refused(run: Prx) -> None:
    identifier = run.create()
    assert "552 hours are left" in run.refused("experiments", "extend", identifier, "--hours", "600")


def test_one_experiment_says_what_happens_next(run: Prx) -> None:
    identifier = run.create()
    told = run.done("experiments", "--id", identifier)
    assert "next check 2026-06-02 00:00 UTC, in 1 d" in told
    assert "a decision still needs 100 of 100 control sessions and 100 of 100 treatment sessions" in told
    run.now(WEEK_LATER)
    assert "overdue 6 d" in run.done("experiments", "--id", identifier)
    assert "Forecast" in run.done("experiments", "--id", identifier, "--details")
    run.now("2026-11-30T00:00:00Z")
    told = run.done("experiments", "--id", identifier, "--details")
    assert "its maximum, 2026-07-01 00:00 UTC, has passed: the next check decides" in told
    assert "still needs" not in told
    assert "Forecast" not in told


def test_details_have_a_section_for_everything(run: Prx) -> None:
    identifier = run.create("L2", "h", "--set", "a.b=1")
    told = run.done("experiments", "--id", identifier, "--details")
    for section in (
        "Control",
        "Treatment",
        "Split and losses",
        "Dimensions",
        "Looks",
        "Looks for harm",
        "Events",
    ):
        assert f"\n{section}\n" in told
    assert "a.b = 1" in told
    assert "none so far" in told
    assert run.json("experiments", "--id", identifier, "--details")["events"][0]["action"] == "created"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--details",), "--details needs --id"),
        (("--id", "4f", "--status", "running"), "--status cannot stand beside --id"),
        (("--status", "walking"), "walking"),
        (("--limit", "0"), "0"),
        (("4f1c09ab",), "No such command '4f1c09ab'"),
        (("--database", ""), "--database"),
    ],
)
def test_wrong_usage_is_one_line(run: Prx, options: tuple[str, ...], told: str) -> None:
    assert told in run.refused("experiments", *options, code=2)


HOSTILE = {
    "markup": "[bold]x[/bold] [/] [link=file:///etc/passwd]y[/link]",
    "escapes": "\x1b]0;owned\x07 \x1b[2J\x9b31m",
    "directions": "a\u202egnp.exe\u2066",
    "wide": "提示詞 👩‍👩‍👧 ｆｕｌｌ",
    "lines": "one\ntwo\r\nthree\u2028four",
    "long": "x" * 1_000_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_shown_as_text(run: Prx, text: str) -> None:
    file = run.folder / "proposal.toml"
    quoted = json.dumps(text, ensure_ascii=True).replace("\\/", "/")
    quoted = json.dumps(text) if all(ord(c) < 0x10000 for c in text) else json.dumps(text, ensure_ascii=False)
    file.write_text(
        f'layer = "L2"\nhypothesis = {quoted}\ntreatment = {quoted}\ndecision_id = {quoted}\n',
        encoding="utf-8",
    )
    identifier = run.done("experiments", "create", "--file", str(file)).strip()
    run.done("assign", "s-1")
    for args in (
        ("experiments",),
        ("experiments", "--id", identifier),
        ("experiments", "--id", identifier, "--details"),
        ("status",),
        ("check",),
        ("experiments", "--json"),
        ("experiments", "cancel", identifier, "--reason", text[:1000].replace("\0", "")),
        ("experiments", "--id", identifier, "--details"),
    ):
        result = run("evolution", *args)
        assert result.exit_code == 0, result.output[:2000]
        for character in result.output.replace("\n", ""):
            assert character.isprintable() or character in "\u200d"
    if text.startswith("["):
        assert text in run.done("experiments", "--id", identifier)
    assert run.json("experiments", "--id", identifier)["hypothesis"] == text.strip()
    assert len(run.done("experiments", "--status", "all").splitlines()) == 2
