"""One Store a database: it owns connections and transactions and hides the dialect."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import peewee

from prx_engine.errors import KeyTaken, PrxError, StoreBusy, StoreError
from prx_engine.store import migrations
from prx_engine.store.locks import Lock
from prx_engine.store.urls import is_almost_postgresql, is_postgresql, libpq_url, without_password
from prx_engine.text import shown, shown_place

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS: Final = 30.0
RESTART_SECONDS: Final = 5.0
"""How long a server that was there may be away: as long as it takes to restart it."""
_SQLITE_PRAGMAS: Final = {"journal_mode": "wal", "foreign_keys": 1, "synchronous": "full"}
_LONGEST_MESSAGE: Final = 300
_LEAST_FREE_BYTES: Final = 64 * 1024
"""The reason why there is no connection stands at the end, after its address."""
_RETRIED_SQLSTATES: Final = frozenset({"40001", "40P01", "55P03"})

_abandoned: Final[list[object]] = []
"""Connections inherited through a fork: closing one in the child would harm the parent's."""


def default_database() -> str:
    """Return the path of the database that is used when nobody names one."""
    from platformdirs import user_data_path

    return str(user_data_path("openprx", appauthor=False) / "experiments.db")


def sqlite_path(url: str) -> Path:
    """Return the file that a SQLite database name means.

    Raises:
        StoreError: if the name has another scheme, or none that is right.
    """
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///")).expanduser()
    if "://" in url:
        raise StoreError(
            f"database {shown(without_password(url))}: unknown scheme;"
            " give a path, sqlite:///PATH or postgresql://…"
        )
    if is_almost_postgresql(url):
        raise StoreError(
            "database: no path and no URL; write it as postgresql://USER:PASSWORD@HOST:PORT/NAME"
        )
    return Path(url).expanduser()


def connect(url: str) -> peewee.Database:
    """Return the peewee database for a name, not yet connected.

    Raises:
        StoreError: if it is no name of a database.
    """
    if is_postgresql(url):
        return peewee.PostgresqlDatabase(libpq_url(url), prefer_psycopg3=True, encoding="UTF8")
    return peewee.SqliteDatabase(str(sqlite_path(url)), pragmas=_SQLITE_PRAGMAS, timeout=BUSY_TIMEOUT_SECONDS)


class _Disconnected(StoreError):
    """The server has closed the connection, or takes none."""


class Store:
    """The database of one deployment; safe to share between threads, and across a fork.

    One exception: a child whose parent forks while another thread writes inherits SQLite's lock, and can
    never write.

    Args:
        url: path or ``sqlite:///…`` for SQLite, ``postgresql://…`` for PostgreSQL.
        create: whether to make a database that does not exist yet.

    Raises:
        StoreError: if there is no such database, or it cannot be used.
        NewerSchema: if a newer release has written it.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.url = url
        self.postgresql = is_postgresql(url)
        if not self.postgresql:
            _prepare_file(sqlite_path(url), create=create)
        self._opened = threading.local()
        self._pid = os.getpid()
        self._database = connect(url)
        self._statements: dict[object, str] = {}
        self._reached = False
        try:
            # Switching a new file to WAL fails at once while another process does the same: no timeout helps.
            self._retried(lambda: self._migrate(create=create))
        except BaseException:
            self.close()
            raise
        self._reached = True

    @property
    def name(self) -> str:
        """The database as messages name it."""
        return f"database {shown_place(without_password(self.url))}"

    @property
    def database(self) -> peewee.Database:
        """The peewee database; its connection is this thread's own."""
        if os.getpid() != self._pid:
            if not self._database.is_closed():
                _abandoned.append(self._database.connection())
            self._pid = os.getpid()
            self._database = connect(self.url)
        return self._database

    def close(self) -> None:
        """Close this thread's connection."""
        if not self.database.is_closed():
            self.database.close()

    def backup(self, target: Path) -> None:
        """Copy the database into a new file, private to its owner, while others go on using it.

        Raises:
            StoreError: if the file exists, cannot be written, or the database is no SQLite file.
        """
        if self.postgresql:
            raise StoreError("PostgreSQL has its own backups: use pg_dump")
        where = f"backup {shown_place(target)}"
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            raise StoreError(f"{where}: {error.strerror}") from None
        try:
            copy = sqlite3.connect(target)
            try:
                self.translated(lambda: self.database.connection().backup(copy))
            finally:
                copy.close()
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def write(self, work: Callable[[], T]) -> T:
        """Run ``work`` in one write transaction and return its result.

        ``work`` may run more than once: it is repeated when the database is busy, two transactions
        have deadlocked or the server has closed the connection, for at most BUSY_TIMEOUT_SECONDS. It may
        even have been committed before, if the connection was lost just then.

        Raises:
            StoreBusy: if the database stays busy.
            StoreError: if the database fails otherwise.
        """
        # A transaction that begins by reading cannot become a writer under load: it must begin as one.
        begin = () if self.postgresql else ("IMMEDIATE",)

        return self._retried(lambda: self._in_transaction(work, *begin))

    @contextmanager
    def patience(self, seconds: float) -> Iterator[None]:
        """Wait no longer than this for a busy database, in this thread and block."""
        self._wait(seconds)
        try:
            yield
        finally:
            with suppress(StoreError):
                self._wait(BUSY_TIMEOUT_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._opened.patience = seconds
        setting = "SET lock_timeout = %d" if self.postgresql else "PRAGMA busy_timeout = %d"
        self._asked(lambda: self.database.execute_sql(setting % (seconds * 1000)))

    def read(self, work: Callable[[], T]) -> T:
        """Run ``work`` on one snapshot of the database and return its result."""
        begin = ("REPEATABLE READ",) if self.postgresql else ("DEFERRED",)

        return self._retried(lambda: self._in_transaction(work, *begin))

    def rows(self, query: Any) -> list[dict[str, Any]]:
        """Return the rows of a query as dictionaries."""
        return self._asked(lambda: list(query.dicts().execute(self.database)))

    def tuples(self, query: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query as tuples."""
        return self._asked(lambda: list(query.tuples().execute(self.database)))

    def often(self, query: Callable[[Store], Any], *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query that is asked very often, as tuples of what the database has.

        Args:
            query: makes the query; called once, since making SQL of a query takes longer than running it.
            parameters: values of the query's parameters, as the database has them, in their order.
        """
        sql = self._statements.get(query)
        if sql is None:
            sql, _ = self.database.get_sql_context().sql(query(self)).query()
            self._statements[query] = sql
        return self._asked(lambda: list(self.database.execute_sql(sql, parameters)))

    def stream(self, query: Any) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query as tuples, without holding them all."""
        return iter(query.tuples().execute(self.database).iterator())

    def row(self, query: Any) -> dict[str, Any] | None:
        """Return the first row of a query, if there is one."""
        return next(iter(self.rows(query.limit(1))), None)

    def execute(self, query: Any) -> Any:
        """Run an insert, update or delete; return the new key or the number of rows touched."""
        return self._asked(lambda: query.execute(self.database))

    @property
    def writes_alone(self) -> bool:
        """Whether a write transaction keeps all others from writing, so that no row needs a lock."""
        return not self.postgresql

    def among(self, field: peewee.Field) -> peewee.Expression:
        """Return the condition that a field is one of many texts, which are one parameter: ``texts``."""
        if self.postgresql:
            return field == peewee.SQL("ANY(%s)", [[]])
        return field.in_(peewee.SQL("(SELECT value FROM json_each(?))", [""]))

    def texts(self, values: Iterable[str]) -> object:
        """Return the parameter that stands for many texts."""
        return list(values) if self.postgresql else json.dumps(list(values))

    def for_update(self, query: Any) -> Any:
        """Lock the rows that a query selects until the transaction ends (SQLite has locked all already)."""
        return query.for_update() if self.postgresql else query

    def hold(self, lock: Lock, *, shared: bool = False) -> None:
        """Wait for a lock and keep it until the transaction ends (SQLite has locked all already)."""
        if self.postgresql:
            statement = f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(%s)"
            self.translated(lambda: self.database.execute_sql(statement, (int(lock),)))

    def insert_new(
        self, model: type[peewee.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> int:
        """Insert rows; those whose key exists already are left as they are. Return how many were new."""
        return self._many("insert", model, columns, rows, lambda _: None)

    def insert_or_replace(
        self, model: type[peewee.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Insert rows; those whose key exists already get the new values."""
        self._many("replace", model, columns, rows, lambda column: f"excluded.{column}")

    def add_to(
        self, model: type[peewee.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Add rows of totals to those with the same key, in the order given; no total is read before."""
        table = model._meta.table_name
        self._many("add", model, columns, rows, lambda column: f"{table}.{column} + excluded.{column}")

    def _many(
        self,
        verb: str,
        model: type[peewee.Model],
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        change: Callable[[str], str | None],
    ) -> int:
        """Insert rows, with ``change`` telling what becomes of a column whose row exists already."""
        key = (verb, model, columns)
        sql = self._statements.get(key)
        if sql is None:
            keys = _key_columns(model)
            names = ", ".join(f'"{c}"' for c in columns)
            parameters = ", ".join([self.database.param] * len(columns))
            changes = ", ".join(f"{c} = {new}" for c in columns if c not in keys and (new := change(c)))
            sql = (
                f"INSERT INTO {model._meta.table_name} ({names}) VALUES ({parameters})"
                f" ON CONFLICT ({', '.join(keys)}) DO " + (f"UPDATE SET {changes}" if changes else "NOTHING")
            )
            self._statements[key] = sql
        return self._asked(lambda: self._executed(sql, rows))

    def _executed(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        cursor = self.database.cursor()
        cursor.executemany(sql, rows)
        return int(cursor.rowcount)

    def _in_transaction(self, work: Callable[[], T], *begin: str) -> T:
        self._drop_lost_connection()
        with self.database.atomic(*begin):
            return work()

    def _drop_lost_connection(self) -> None:
        """Close this thread's connection if its server is gone, or its file removed or replaced.

        SQLite would go on with the removed file, and what it acknowledged would be lost.
        """
        database = self.database
        if isinstance(database, peewee.PostgresqlDatabase):
            lost = not database.is_connection_usable()
        else:
            identity = _file_identity(sqlite_path(self.url))
            lost = identity != getattr(self._opened, "identity", identity)
            self._opened.identity = identity
        if lost and not database.is_closed():
            database.close()

    def _migrate(self, *, create: bool) -> None:
        if self.postgresql:
            encoding = self.database.connection().info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise StoreError(
                    f"{self.name}: its encoding is {encoding}, which lacks characters; create it with"
                    " ENCODING 'UTF8'"
                )
        migrations.migrate(self, create=create)

    def _asked(self, question: Callable[[], T]) -> T:
        """Run one statement, repeated like a transaction if it is not part of one."""
        return self.translated(question) if self.database.in_transaction() else self._retried(question)

    def _retried(self, transaction: Callable[[], T]) -> T:
        started = time.monotonic()
        deadline = started + getattr(self._opened, "patience", BUSY_TIMEOUT_SECONDS)
        # A server that was never there is named at once: it is the wrong one, or nobody has started it.
        away_until = started + RESTART_SECONDS if self._reached else started
        pause = 0.005
        while True:
            try:
                return self.translated(transaction)
            except StoreBusy:
                if time.monotonic() > deadline:
                    raise
            except _Disconnected:
                now = time.monotonic()
                lost = not self.database.is_closed()
                if lost:
                    self.database.close()
                    away_until = now + RESTART_SECONDS
                if now > (deadline if lost else away_until):
                    raise
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 0.5)

    def translated(self, action: Callable[[], T]) -> T:
        """Run an action on the database, with the driver's errors told as StoreError, in one line."""
        try:
            return action()
        except (peewee.PeeweeException, sqlite3.Error, UnicodeError) as error:
            raise self._explained(error) from error
        except PrxError:
            raise
        except Exception as error:
            if _sqlstate(error) is None:
                raise
            raise self._explained(error) from error

    def _explained(self, error: BaseException) -> StoreError:
        error = _first_failure(error)
        if isinstance(error, StoreError):
            return error
        message = shown(str(error).strip().split("\n")[0], _LONGEST_MESSAGE)
        where = self.name
        if isinstance(error, peewee.ImproperlyConfigured):
            return StoreError(f"{where}: needs a driver; pip install 'prx-experiments[postgres]'")
        if self._is_disconnected():
            return _Disconnected(f"{where}: {message}")
        if isinstance(error, UnicodeEncodeError):
            return StoreError(f"{where}: a text cannot be written as UTF-8: {message}")
        if isinstance(error, peewee.IntegrityError):
            return KeyTaken(f"{where}: {message}")
        if _sqlstate(error) in _RETRIED_SQLSTATES or "database is locked" in message:
            return StoreBusy(f"{where}: busy for too long; another process holds it, try again")
        if "not a database" in message or "malformed" in message or isinstance(error, UnicodeDecodeError):
            return StoreError(
                f"{where}: not a database of experiments, or damaged ({message}); restore a backup"
            )
        if "readonly database" in message:
            return StoreError(f"{where}: {message}; this user may not write it, which reading takes too")
        if "disk is full" in message or "No space" in message or self._is_full():
            return StoreError(f"{where}: the disk is full; nothing was written")
        return StoreError(f"{where}: {message}")

    def _is_full(self) -> bool:
        """Tell whether there is no room left beside a SQLite file, which SQLite itself calls an I/O error."""
        if self.postgresql:
            return False
        try:
            return shutil.disk_usage(sqlite_path(self.url).parent).free < _LEAST_FREE_BYTES
        except OSError:
            return False

    def _is_disconnected(self) -> bool:
        """Tell whether this thread could not connect, or has noticed that its connection is lost."""
        if not self.postgresql:
            return False
        return self.database.is_closed() or bool(self.database.connection().closed)


def _key_columns(model: type[peewee.Model]) -> tuple[str, ...]:
    return tuple(field.column_name for field in model._meta.get_primary_keys())


def _first_failure(error: BaseException) -> BaseException:
    """Return what made SQLite undo a transaction by itself, such as a full disk; undoing it again fails."""
    while "cannot rollback" in str(error) and (earlier := error.__cause__ or error.__context__):
        error = earlier
    return error


def _sqlstate(error: BaseException | None) -> str | None:
    while error is not None:
        state = getattr(error, "sqlstate", None)
        if state is not None:
            return str(state)
        error = error.__cause__ or error.__context__
    return None


def _file_identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        raise StoreError(f"no database at {shown_place(path)}: it was there and is gone") from None
    return status.st_dev, status.st_ino


def _prepare_file(path: Path, *, create: bool) -> None:
    try:
        if path.is_dir():
            raise StoreError(f"database {shown_place(path)}: a folder, not a file")
        if path.exists():
            return
        if not create:
            raise StoreError(
                f"no database at {shown_place(path)}; creating an experiment or recording a session makes one"
            )
        if str(path) == default_database():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Opened with its mode, not changed afterwards: nobody else may read it for even a moment.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"database {shown_place(path)}: {error.strerror}") from None
