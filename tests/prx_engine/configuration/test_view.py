from __future__ import annotations

import json
from pathlib import Path

import pytest

from prx_engine.configuration import ConfigurationFile, InvalidConfiguration, SelfEvolution, describe


def test_all_settings_are_listed_once_with_their_full_keys(tmp_path: Path) -> None:
    lines = describe(SelfEvolution(), ConfigurationFile(tmp_path / "config.toml"))

    keys = [line.key for line in lines]
    assert len(keys) == len(set(keys)) == 34
    assert keys[:2] == ["self_evolution.database", "self_evolution.experiments.enabled"]
    assert keys[-1] == "self_evolution.telemetry.evaluations.user_satisfaction"
    assert all(line.value == line.default and not line.from_file and line.allowed for line in lines)


def test_a_line_says_where_its_value_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        "[self_evolution.experiments]\ntraffic_split = 0.5\nmin_sample_size = 50\n"
        "[[self_evolution.telemetry.sources]]\npath = 'x'\n"
    )
    file = ConfigurationFile(path)

    stated = {line.key: line for line in describe(file.load(), file) if line.from_file}

    assert [key.rpartition(".")[2] for key in stated] == ["min_sample_size", "traffic_split", "sources"]
    size = stated["self_evolution.experiments.min_sample_size"]
    assert (size.value, size.default, size.allowed) == (50, 100, "a whole number from 2 to 1000000000")
    assert stated["self_evolution.telemetry.sources"].value == [{"path": "x", "format": "auto"}]


def test_a_value_that_the_caller_has_put_in_place_is_not_from_the_file(tmp_path: Path) -> None:
    settings = SelfEvolution(database="elsewhere.db")

    line = describe(settings, ConfigurationFile(tmp_path / "config.toml"))[0]

    assert (line.value, line.from_file) == ("elsewhere.db", False)


def test_values_are_ready_for_json(tmp_path: Path) -> None:
    lines = describe(SelfEvolution(), ConfigurationFile(tmp_path / "config.toml"))

    assert json.loads(json.dumps([line.value for line in lines])) == [line.value for line in lines]


def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[[")

    with pytest.raises(InvalidConfiguration):
        describe(SelfEvolution(), ConfigurationFile(path))
