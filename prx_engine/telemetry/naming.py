"""Finds the sessions of records that do not name theirs, by what they have in common with records that do.

A record may have names of its own, such as its span, and ask for the session of others, such as its parent's.
Whatever asks before it can be answered waits in the database, and is found when the answer comes, from
whichever file. What has waited long enough for its parent gets the session of its whole trace, if that is one
session; a name that turns out to be that of several sessions names none. After a week nothing waits any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from prx_engine.clock import clock_hour, format_time, parse_time
from prx_engine.store import Lock, Store
from prx_engine.store.schema import SessionKeys, WaitingPieces, dump_json, utc_text
from prx_engine.telemetry.formats import Piece

_KEPT: Final = timedelta(days=7)
_AT_ONCE: Final = 5000
"""Keys in one query: databases limit the number of parameters."""

_SEVERAL: Final = ""
"""Stands as the session of a name that several sessions have."""


class Naming:
    """Names the sessions of pieces; to be used inside write transactions.

    Args:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def sessions(
        self, pieces: Sequence[Piece], now: datetime, settle: datetime | None = None
    ) -> tuple[list[str | None], list[Piece]]:
        """Return the session of each piece, None if it has to wait, and pieces that need not wait any more.

        Args:
            pieces: of one batch.
            now: the engine's time.
            settle: what waits since then or longer gets the session of its trace; nothing if not given.
        """
        if settle is None and not any(piece.keys or piece.asks for piece in pieces):
            return [piece.session_id for piece in pieces], []
        # What two files tell about one name is put together only by whoever comes second.
        self._store.hold(Lock.NAMING)
        settled = [] if settle is None else self._settled(settle)
        batch = _Batch(self._known, [*pieces, *settled])
        released = {piece.source: piece for piece in settled}
        while keys := batch.resolve():
            found = self._waiting_for(keys, batch)
            released |= {piece.source: piece for piece in found}
            batch.add(found)
        self._write(batch, now)
        self._remove(released)
        waiting = [piece for piece, session in zip(pieces, batch.sessions, strict=False) if session is None]
        self._wait(waiting, now)
        return batch.sessions[: len(pieces)], list(released.values())

    def waits(self, since: datetime) -> bool:
        """Tell whether there is anything that waits since then or longer."""
        query = WaitingPieces.select(WaitingPieces.key).where(WaitingPieces.at <= since)
        return self._store.row(query) is not None

    def forget(self, now: datetime) -> None:
        """Give up what has been waiting, and what has been known, for too long."""
        limit = now - _KEPT
        self._store.hold(Lock.NAMING)
        self._store.execute(SessionKeys.delete().where(SessionKeys.hour < clock_hour(limit)))
        self._store.execute(WaitingPieces.delete().where(WaitingPieces.at < limit))

    def _known(self, keys: Iterable[str]) -> dict[str, str]:
        known: dict[str, str] = {}
        for some in _portions(sorted(keys)):
            query = SessionKeys.select(SessionKeys.key, SessionKeys.session_id)
            known |= dict(self._store.tuples(query.where(SessionKeys.key << some)))
        return known

    def _settled(self, since: datetime) -> list[Piece]:
        query = (
            WaitingPieces.select(WaitingPieces.source, WaitingPieces.piece, SessionKeys.session_id)
            .join(SessionKeys, on=(SessionKeys.key == WaitingPieces.fallback))
            .where(WaitingPieces.at <= since, SessionKeys.session_id != _SEVERAL)
        )
        rows = self._store.tuples(query)
        return list({source: _read(source, written, session) for source, written, session in rows}.values())

    def _waiting_for(self, keys: Iterable[str], batch: _Batch) -> list[Piece]:
        found: dict[str, Piece] = {}
        for some in _portions(sorted(keys)):
            query = WaitingPieces.select(WaitingPieces.key, WaitingPieces.source, WaitingPieces.piece)
            for key, source, written in self._store.tuples(query.where(WaitingPieces.key << some)):
                found.setdefault(source, _read(source, written, batch.known[key]))
        return list(found.values())

    def _write(self, batch: _Batch, now: datetime) -> None:
        hour = clock_hour(now)
        self._store.insert_or_replace(
            SessionKeys,
            ("key", "session_id", "hour"),
            [(key, batch.known[key], hour) for key in sorted(batch.learned)],
        )

    def _remove(self, found: Iterable[str]) -> None:
        for sources in _portions(sorted(found)):
            self._store.execute(WaitingPieces.delete().where(WaitingPieces.source << sources))

    def _wait(self, pieces: Iterable[Piece], now: datetime) -> None:
        rows = {
            (key, piece.source): (key, piece.source, piece.fallback, _written(piece), utc_text(now))
            for piece in pieces
            for key in piece.asks
        }
        columns = ("key", "source", "fallback", "piece", "at")
        self._store.insert_or_replace(WaitingPieces, columns, [row for _, row in sorted(rows.items())])


class _Batch:
    """Pieces whose sessions are being found.

    Attributes:
        sessions: of the pieces, as far as they are known.
        known: names and their sessions, of the database and of this batch.
        learned: names that the database does not have yet, or has as those of another session.
    """

    def __init__(self, look_up: Any, pieces: Sequence[Piece]) -> None:
        self._look_up = look_up
        self._pieces: list[Piece] = []
        self._new: set[str] = set()
        self.sessions: list[str | None] = []
        self.known: dict[str, str] = {}
        self.learned: set[str] = set()
        self.add(pieces)

    def add(self, pieces: Sequence[Piece]) -> None:
        """Add pieces, those that know their session and those that do not."""
        names = {name for piece in pieces for name in (*piece.keys, *piece.asks)}
        self.known = self._look_up(names - self.known.keys()) | self.known
        for piece in pieces:
            self._pieces.append(piece)
            self.sessions.append(piece.session_id)
            if piece.session_id is not None:
                self._learn(piece, piece.session_id)

    def resolve(self) -> set[str]:
        """Find what sessions can be found; return the names that have become known since the last call."""
        progress = True
        while progress:
            progress = False
            for place, piece in enumerate(self._pieces):
                if self.sessions[place] is None and (session := self._answer(piece)):
                    self.sessions[place] = session
                    self._learn(piece, session)
                    progress = True
        new, self._new = self._new, set()
        return {key for key in new if self.known[key] != _SEVERAL}

    def _answer(self, piece: Piece) -> str | None:
        return next((session for name in piece.asks if (session := self.known.get(name))), None)

    def _learn(self, piece: Piece, session: str) -> None:
        for key in piece.keys:
            present = self.known.get(key)
            if present is None:
                self._new.add(key)
            if present not in (session, _SEVERAL):
                self.known[key] = session if present is None else _SEVERAL
                self.learned.add(key)


def _portions(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _written(piece: Piece) -> str:
    return dump_json(
        {"fields": dict(piece.fields), "keys": piece.keys, "at": piece.at and format_time(piece.at)}
    )


def _read(source: str, written: Any, session_id: str) -> Piece:
    at = written["at"]
    keys = tuple(written["keys"])
    return Piece(source, written["fields"], session_id, keys, at=at and parse_time(at))
