"""Files that a promotion changes: what they were, what they become, and how they come back."""

from prx_engine.promotion.base import Base
from prx_engine.promotion.documents import changes_between
from prx_engine.promotion.keys import literal, shared_key
from prx_engine.promotion.place import Place, locked, this_host
from prx_engine.promotion.replacement import FileChange, Replacement, remove_snapshot, write_snapshot
from prx_engine.promotion.workspace import folded, shown_path

__all__ = [
    "Base",
    "FileChange",
    "Place",
    "Replacement",
    "changes_between",
    "folded",
    "literal",
    "locked",
    "remove_snapshot",
    "shared_key",
    "shown_path",
    "this_host",
    "write_snapshot",
]
