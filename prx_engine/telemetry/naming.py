"""Finds the sessions of records that do not name theirs, by what they have in common with records that do.

A trace, or a response, belongs to the session that the first record to name one has named. What comes before
waits in the database and is found when that record comes, from whichever file; after a week it is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from prx_engine.clock import format_time, parse_time
from prx_engine.store import Store
from prx_engine.store.schema import SessionKeys, WaitingPieces, dump_json, utc_text
from prx_engine.telemetry.formats import Piece

_KEPT: Final = timedelta(days=7)
_AT_ONCE: Final = 5000
"""Keys in one query: databases limit the number of parameters."""


class Naming:
    """Names the sessions of pieces; to be used inside write transactions.

    Args:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def sessions(self, pieces: Sequence[Piece], now: datetime) -> tuple[list[str | None], list[Piece]]:
        """Return the session of each piece, None if it has to wait, and pieces that need not wait any more.

        Args:
            pieces: of one batch.
            now: the engine's time.
        """
        if not any(piece.keys for piece in pieces):
            return [piece.session_id for piece in pieces], []
        known = self._known({key for piece in pieces for key in piece.keys})
        named: dict[str, str] = {}
        for piece in pieces:
            if piece.session_id is not None:
                named |= {k: piece.session_id for k in piece.keys if k not in known and k not in named}
        known |= named
        self._store.insert_new(
            SessionKeys,
            ("key", "session_id", "at"),
            [(key, session, utc_text(now)) for key, session in sorted(named.items())],
        )
        found = [
            piece.session_id or next((known[key] for key in piece.keys if key in known), None)
            for piece in pieces
        ]
        self._wait([p for p, session in zip(pieces, found, strict=True) if session is None], now)
        return found, self._released(named)

    def forget(self, now: datetime) -> None:
        """Give up what has been waiting, and what has been known, for too long."""
        limit = now - _KEPT
        for table in (SessionKeys, WaitingPieces):
            self._store.execute(table.delete().where(table.at < limit))

    def _known(self, keys: set[str]) -> dict[str, str]:
        known: dict[str, str] = {}
        for some in _portions(sorted(keys)):
            query = SessionKeys.select(SessionKeys.key, SessionKeys.session_id)
            known |= dict(self._store.tuples(query.where(SessionKeys.key << some)))
        return known

    def _wait(self, pieces: Iterable[Piece], now: datetime) -> None:
        rows = {
            (key, piece.source): (key, piece.source, _written(piece), utc_text(now))
            for piece in pieces
            for key in piece.keys
        }
        self._store.insert_or_replace(
            WaitingPieces, ("key", "source", "piece", "at"), [row for _, row in sorted(rows.items())]
        )

    def _released(self, named: Mapping[str, str]) -> list[Piece]:
        """Take the pieces that wait for one of the keys out of the database."""
        released: dict[str, Piece] = {}
        for some in _portions(sorted(named)):
            query = WaitingPieces.select(WaitingPieces.key, WaitingPieces.source, WaitingPieces.piece)
            for key, source, written in self._store.tuples(query.where(WaitingPieces.key << some)):
                released.setdefault(source, _read(source, written, named[key]))
        for sources in _portions(sorted(released)):
            self._store.execute(WaitingPieces.delete().where(WaitingPieces.source << sources))
        return list(released.values())


def _portions(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _written(piece: Piece) -> str:
    return dump_json({"fields": dict(piece.fields), "at": piece.at and format_time(piece.at)})


def _read(source: str, written: Mapping[str, Any], session_id: str) -> Piece:
    at = written["at"]
    return Piece(source, written["fields"], session_id, at=at and parse_time(at))
