from __future__ import annotations

from pathlib import Path

import pytest

from prx_tui.demo import pictures
from prx_tui.demo.cast import FIRST_DAY
from prx_tui.demo.pictures import LIGHT, PICTURES, Picture, take_pictures


def test_every_screen_has_a_picture_and_every_picture_a_name_of_its_own() -> None:
    names = [picture.name for picture in PICTURES]
    assert len(set(names)) == len(names)
    assert {"experiments", "experiment", "fitness", "help", "confirmation", "experiments-light"} <= set(names)
    assert {picture.size for picture in PICTURES} >= {(80, 24), (120, 40)}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(pictures, "_prepare", lambda deployment: deployment.clock.move_to(FIRST_DAY))
    wanted = (Picture("list", size=(80, 24), theme=LIGHT), Picture("help", ("question_mark",), size=(80, 24)))
    first, second = (take_pictures(tmp_path / name, 1, wanted) for name in ("first", "second"))
    assert [path.name for path in first] == ["list.svg", "help.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert all("<svg" in path.read_text(encoding="utf-8") for path in first)
    assert first[0].read_bytes() != first[1].read_bytes()
