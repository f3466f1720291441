"""Promotions and rollbacks from the command line."""

from __future__ import annotations

import json

import pytest

from tests.prx_tui.cli.conftest import Prx

CONFIG = "# mine\n[memory]\ntop_k = 5\n"


@pytest.fixture
def deployed(run: Prx) -> Prx:
    run.config.write_text(CONFIG)
    (run.folder / "workspace").mkdir()
    (run.folder / "workspace" / "a.md").write_text("one\ntwo\n")
    (run.folder / "new.md").write_text("one\n2\n")
    return run


def create(run: Prx) -> str:
    return run.create("L2", "h", "--set", "memory.top_k=8", "--put", f"a.md={run.folder / 'new.md'}")


def test_a_promotion_and_its_rollback_change_the_files(deployed: Prx) -> None:
    create(deployed)
    (experiment,) = deployed.json("experiments")
    deployed.done("experiments", "promote", experiment["experiment_id"])
    assert "top_k = 8" in deployed.config.read_text()
    assert deployed.json("experiments", "rollback")["promotion"] == "rolled_back"
    assert deployed.config.read_text() == CONFIG
    assert "nothing to roll back" in deployed.refused("experiments", "rollback")


def test_a_conflict_is_refused_by_name_until_it_is_forced(deployed: Prx) -> None:
    identifier = create(deployed)
    deployed.config.write_text(CONFIG.replace("5", "6"))
    told = deployed.refused("experiments", "promote", identifier)
    assert told.endswith("is in conflict (--force overrides): memory.top_k is 6 now, was 5")
    assert "memory.top_k is 6 now, was 5" in deployed.done("experiments", "--id", identifier)
    deployed.done("experiments", "promote", identifier, "--force")
    deployed.config.write_text(CONFIG.replace("5", "7"))
    told = deployed.refused("experiments", "rollback", identifier)
    assert told.endswith("cannot roll back: memory.top_k is 7 now, was promoted as 8; --force overrides")
    deployed.done("experiments", "rollback", identifier, "--force")
    assert deployed.config.read_text() == CONFIG.replace("5", "6")


def test_snapshots_are_listed(deployed: Prx) -> None:
    identifier = create(deployed)
    assert "no snapshots" in deployed("evolution", "experiments", "rollback", "--list").stderr
    deployed.done("experiments", "promote", identifier)
    listed = deployed.done("experiments", "rollback", "--list")
    assert str(deployed.config) in listed
    assert listed.count("promotion") == 2
    for snapshot in deployed.json("experiments", "rollback", "--list", identifier):
        assert snapshot["content"] in (CONFIG, "one\ntwo\n")
        assert len(snapshot["version_id"]) == 36
        assert snapshot["created_at"] == "2026-06-01T00:00:00Z"
    assert "--force cannot stand beside --list" in deployed.refused(
        "experiments", "rollback", "--list", "--force", code=2
    )


def test_details_show_the_difference(deployed: Prx) -> None:
    told = deployed.done("experiments", "--id", create(deployed), "--details")
    assert "\nmemory.top_k: 5 → 8\n" in told
    assert "\na.md\n  @@ -1,2 +1,2 @@\n   one\n  -two\n  +2\n" in told


def test_a_treatment_is_the_difference_of_two_files(deployed: Prx) -> None:
    new = deployed.folder / "new.toml"
    new.write_text(CONFIG.replace("5", "8") + "[model]\nname = 'small'\n")
    difference = ("--from-diff", str(deployed.config), str(new))
    (layer, hypothesis) = (("--layer", "L3"), ("--hypothesis", "h"))
    identifier = deployed.done("experiments", "create", *layer, *hypothesis, *difference).strip()
    treatment = deployed.json("experiments", "--id", identifier)["treatment"]
    assert treatment["config"] == {"memory.top_k": 8, "model.name": "small"}
    assert treatment["description"] == f"{new} instead of {deployed.config}"
    command = ("experiments", "create", "--layer", "L1", *hypothesis, *difference)
    assert "memory.top_k is set twice" in deployed.refused(*command, "--set", "memory.top_k=9", code=2)
    new.write_text(CONFIG)
    assert "sets nothing that" in deployed.refused(*command)
    new.write_text("[memory]\n")
    assert "new file: memory.top_k is missing" in deployed.refused(*command)
    new.unlink()
    assert "No such file" in deployed.refused(*command)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--set", "a b=1"), "config: found a b; allowed: a dotted TOML key"),
        (("--set", "memory.top_k.x=1"), "memory.top_k is not a table"),
        (("--put", "../a.md=new.md"), "allowed is a path in the workspace"),
        (("--put", "A.md=new.md"), "the workspace has a.md; write it the same way"),
    ],
)
def test_what_could_not_be_promoted_is_refused_at_once(
    deployed: Prx, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(deployed.folder)
    command = ("experiments", "create", "--layer", "L2", "--hypothesis", "h", "--treatment", "t")
    assert told in deployed.refused(*command, *options)


def test_a_proposal_may_be_json(run: Prx) -> None:
    file = run.folder / "proposal.json"
    proposal = {"layer": "L1", "hypothesis": "h", "treatment": {"config": {"a.b": 1}}}
    file.write_text(json.dumps(proposal))
    identifier = run.done("experiments", "create", "--file", str(file)).strip()
    assert run.json("experiments", "--id", identifier)["treatment"]["config"] == {"a.b": 1}
    file.write_text('{"layer": }')
    assert "not JSON: Expecting value" in run.refused("experiments", "create", "--file", str(file))
