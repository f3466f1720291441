"""A watch notices that the file it watches is not the database any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from prx_engine.errors import StoreError
from prx_engine.store import ChangeWatch, Store


def test_a_removed_file_is_an_error_instead_of_no_change(tmp_path: Path) -> None:
    path = tmp_path / "prx.db"
    store = Store(str(path))
    watch = ChangeWatch(store)
    assert watch.changed()
    path.unlink()
    with pytest.raises(StoreError, match="removed or replaced"):
        watch.changed()
    watch.close()
    store.close()


def test_a_replaced_file_is_an_error(tmp_path: Path) -> None:
    path, other = tmp_path / "prx.db", tmp_path / "other.db"
    store = Store(str(path))
    Store(str(other)).close()
    watch = ChangeWatch(store)
    assert watch.changed()
    other.replace(path)
    with pytest.raises(StoreError, match="removed or replaced"):
        watch.changed()
    watch.close()
    store.close()
