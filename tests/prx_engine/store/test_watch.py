"""Noticing that somebody has written, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prx_engine import Engine
from prx_engine.errors import StoreError
from prx_engine.store import ChangeWatch
from tests.support.engines import OpenEngine


@pytest.fixture
def watch(engine: Engine) -> Iterator[ChangeWatch]:
    watch = engine.watch()
    watch.changed()
    yield watch
    watch.close()


def test_the_first_question_is_answered_with_yes(engine: Engine) -> None:
    watch = engine.watch()
    assert watch.changed()
    assert not watch.changed()
    watch.close()


def test_a_foreign_write_is_noticed_once(watch: ChangeWatch, open_engine: OpenEngine) -> None:
    open_engine().record("s", tokens=1)
    assert watch.changed()
    assert not watch.changed()


def test_a_write_of_the_same_engine_is_noticed(engine: Engine, watch: ChangeWatch) -> None:
    engine.record("s", tokens=1)
    assert watch.changed()
    assert not watch.changed()


def test_reading_is_not_noticed(engine: Engine, watch: ChangeWatch, open_engine: OpenEngine) -> None:
    engine.experiments("all")
    engine.fitness()
    engine.verify()
    open_engine().history()
    assert not watch.changed()


def test_recording_what_is_known_already_is_not_a_change_of_scores(
    engine: Engine, watch: ChangeWatch
) -> None:
    engine.record("s", tokens=1)
    assert watch.changed()
    engine.record("s", tokens=1)
    assert not watch.changed()


def test_two_watches_notice_independently(engine: Engine, watch: ChangeWatch) -> None:
    other = engine.watch()
    other.changed()
    engine.record("s", tokens=1)
    assert watch.changed()
    assert other.changed()
    other.close()


def test_a_checkpoint_is_not_noticed(engine: Engine, watch: ChangeWatch) -> None:
    engine.record("s", tokens=1)
    watch.changed()
    engine._store.database.execute_sql("PRAGMA wal_checkpoint(PASSIVE)")
    assert not watch.changed()


def test_a_broken_database_is_one_line(engine: Engine, tmp_path: Path) -> None:
    engine.close()
    watch = engine.watch()
    (tmp_path / "prx.db").write_bytes(b"no database " * 1000)
    with pytest.raises(StoreError, match="not a database of experiments, or damaged"):
        watch.changed()
    watch.close()
