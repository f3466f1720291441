"""Text from the data is text, on every place where it shows."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from prx_engine import Engine
from prx_tui.app import Dashboard
from tests.prx_tui.conftest import POLL_SECONDS, press, screen_text, settled, told, until
from tests.support.clock import ManualClock

HOSTILE = {
    "markup": "[/] [b]x[/i] [@click=app.quit]y[/] [red]z",
    "escapes": "\x1b]0;owned\x07 \x1b[2J \x9b31m \x00".replace("\x00", "\x01"),
    "directions": "abc \u202egnp.exe\u202c \u2066x\u2069 שלום",
    "wide": "日本語の仮説 ✓ 🎉👩‍👩‍👧‍👦 ﷽",
    "lines": "one\ntwo\r\nthree\tfour\u2028five",
    "huge": "x" * 1_000_000,
    "surrogate-free": "e\u0301" * 200 + "\u200b" * 50,
}


def hostile_engine(folder: Path, text: str, clock: ManualClock) -> Engine:
    engine = Engine.open(folder / "prx.db", config=folder / "none.toml", clock=clock, actor=text[:2000])
    engine.create_experiment(
        "L2",
        {
            "description": text,
            "config": {"agent.prompt": text, "agent.other": [text[:50], {"deep": text[:50]}]},
            "files": {"prompts/a.md": text, f"prompts/{_file_name(text)}.md": "x"},
        },
        control={"description": text, "files": {"prompts/a.md": f"before\n{text}"}},
        hypothesis=text,
        decision_id=text[:4000],
    )
    other = engine.create_experiment("L1", "z", hypothesis=text)
    engine.cancel(other.experiment_id, text[:5000])
    return engine


def _file_name(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and c not in "/\\")[:30] or "x"


def assert_harmless(text: str) -> None:
    found = {
        f"U+{ord(c):04X}"
        for c in text.replace("\n", "")
        if unicodedata.category(c) in ("Cc", "Cs") or c in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
        or c in "\u2066\u2067\u2068\u2069"
    }  # fmt: skip
    assert not found


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_hostile_text_is_only_text_everywhere(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    text, clock = HOSTILE[kind], ManualClock()
    with hostile_engine(tmp_path, text, clock):
        board = Dashboard(
            lambda: Engine.open(
                tmp_path / "prx.db",
                config=tmp_path / "none.toml",
                clock=clock,
                actor=text[:2000],
                create=False,
            ),
            checks=False,
            poll_seconds=POLL_SECONDS,
        )
        async with board.run_test(size=size, notifications=True) as pilot:
            await settled(pilot)
            seen = [screen_text(board)]

            async def look(*keys: str) -> None:
                await press(pilot, *keys)
                seen.append(screen_text(board))

            if kind == "markup":
                assert "[/] [b]x[/i]" in seen[0]
            await look("c")
            await look("escape", "e")
            await look("escape", "enter")
            await settled(pilot)
            for _ in range(4):
                await look("]")
            await look("c", "w", "x", "enter", "y")
            await until(pilot, lambda: "ancelled" in told(board), "the announcement")
            await look("escape", "]", "]")
            await look("c", "/", "[", "b", "]", "[", "/", "]")
            await look("escape", "ctrl+p", "O", "p", "e", "n")
            await look("escape", "escape")
            for shown in seen:
                assert_harmless(shown)
            assert_harmless(told(board))


async def test_hostile_text_in_a_banner(tmp_path: Path) -> None:
    def fail() -> Engine:
        raise RuntimeError("[/] \x1b]0;owned\x07 [b]x[/i]")

    board = Dashboard(fail, poll_seconds=POLL_SECONDS)
    async with board.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "[/]" in screen_text(board), "the banner")
        assert "[b]x[/i]" in screen_text(board)
        assert_harmless(screen_text(board))
