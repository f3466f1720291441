"""Sessions that report as they run: a context manager and a decorator that never get in the agent's way."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, Literal, ParamSpec, Protocol, TypeVar, cast
from uuid import uuid4

from prx_engine.dimensions import LAYERS, Layer
from prx_engine.records import Assignment
from prx_engine.scoring.metrics import SessionUpdate, combine

P = ParamSpec("P")
R = TypeVar("R")

Feedback = Literal["thumbs_up", "thumbs_down", "correction"]

_log: Final = logging.getLogger("prx_engine")
_FEEDBACK: Final = {"thumbs_up": "thumbs_up", "thumbs_down": "thumbs_down", "correction": "corrections"}


class Reports(Protocol):
    """What a live session needs of the engine."""

    def assign(self, session_id: str) -> Mapping[Layer, Assignment]:
        """Return which variant a session runs in each layer."""
        ...

    def record(self, session_id: str, **fields: Any) -> None:
        """Record what is known of a session."""
        ...


class LiveSession:
    """A session while it runs. What is told of it is recorded when it ends, or by ``flush``.

    Several may run under one session id, in several processes too: what they tell adds up.

    Args:
        engine: assigns and records.
        session_id: the agent's own name of the session.
        fields: to record beside what is told, such as ``cluster``.
        raises: whether errors reach the agent; else they are logged.
    """

    def __init__(
        self, engine: Reports, session_id: str, fields: Mapping[str, Any], *, raises: bool = False
    ) -> None:
        self.session_id = session_id
        self.assignments: Mapping[Layer, Assignment] = {}
        self._engine = engine
        self._fields = dict(fields)
        self._raises = raises
        self._lock = threading.Lock()
        self._source = f"live:{uuid4()}"
        self._told: dict[str, Any] = {}
        self._asked = time.monotonic()

    def __getitem__(self, layer: Layer) -> Assignment:
        """Return the assignment in a layer; that of no experiment if it could not be found out."""
        if layer not in LAYERS:
            raise KeyError(layer)
        return self.assignments.get(layer) or _unassigned(layer)

    def start(self) -> None:
        """Assign the session."""
        self._safely(self._assign)

    def request(self) -> None:
        """Note that the model is being asked: the next ``first_token`` counts from here."""
        self._asked = time.monotonic()

    def first_token(self, milliseconds: float | None = None) -> None:
        """Note that the first token has come, or how long it took since the model was asked."""
        waited = (time.monotonic() - self._asked) * 1000 if milliseconds is None else milliseconds
        self._tell(first_token_ms=[waited])

    def tool_call(self, ok: bool = True) -> None:
        """Note a call of a tool, and whether it succeeded."""
        self._tell(tool_calls=1, tool_calls_succeeded=int(ok))

    def task(self, ok: bool = True) -> None:
        """Note a task, and whether it was solved."""
        self._tell(tasks=1, tasks_succeeded=int(ok))

    def tokens(self, count: int) -> None:
        """Note tokens that were used, in addition to those noted before."""
        self._tell(tokens=count)

    def relevance(self, score: float) -> None:
        """Note how relevant a response was, 0–1."""
        self._tell(relevance=[score])

    def recall(self, score: float) -> None:
        """Note how relevant a recalled memory was, 0–1."""
        self._tell(recall_relevance=[score])

    def feedback(self, kind: Feedback) -> None:
        """Note what the user thought: ``thumbs_up``, ``thumbs_down`` or ``correction``."""
        self._tell(**{_FEEDBACK.get(kind, kind): 1})

    def flush(self) -> None:
        """Record what has been told so far; doing it again, or at the end, counts nothing twice."""
        self._safely(self._record)

    def _assign(self) -> None:
        self.assignments = self._engine.assign(self.session_id)

    def _record(self) -> None:
        with self._lock:
            told = dict(self._told)
        self._engine.record(self.session_id, **{**self._fields, **told, "source": self._source})

    def _tell(self, **fields: Any) -> None:
        def add() -> None:
            # Checked at once: a value that is wrong must not spoil what is right when all is recorded.
            report = SessionUpdate.of({**fields, "session_id": "?"}).report
            with self._lock:
                self._told = combine([self._told, report])

        self._safely(add)

    def _safely(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            if self._raises:
                raise
            _log.warning("session %r: %s", self.session_id, error)


_current: Final[ContextVar[LiveSession | None]] = ContextVar("prx_session", default=None)


def current_session() -> LiveSession | None:
    """Return the session in which the caller runs, if it runs in one."""
    return _current.get()


class SessionScope:
    """A ``with`` or ``async with`` block, or the calls of a function, that are a session.

    Args:
        engine: assigns and records.
        session_id: of the block, or what gives it from the arguments of a call; a new one each time if
            not given.
        fields: to record beside what is told.
        raises: whether errors reach the agent.
    """

    def __init__(
        self,
        engine: Reports,
        session_id: str | Callable[..., str] | None,
        fields: Mapping[str, Any],
        *,
        raises: bool,
    ) -> None:
        self._engine = engine
        self._session_id = session_id
        self._fields = fields
        self._raises = raises
        self._entered: list[tuple[LiveSession, Token[LiveSession | None]]] = []

    def __enter__(self) -> LiveSession:
        session = self._session()
        session.start()
        return self._enter(session)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave().flush()

    async def __aenter__(self) -> LiveSession:
        session = self._session()
        await asyncio.to_thread(session.start)
        return self._enter(session)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._leave().flush)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Make each call of a function, or of a coroutine function, a session."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                async with self._of_call(args, kwargs):
                    return await function(*args, **kwargs)

            return cast(Callable[P, R], call_async)

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator runs after its call is over; use a with block inside of it")

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._of_call(args, kwargs):
                return function(*args, **kwargs)

        return call

    def _of_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> SessionScope:
        """Return the scope of one call: calls may overlap."""
        name = self._session_id
        if callable(name):
            name = _name_of_call(name, args, kwargs, raises=self._raises)
        return SessionScope(self._engine, name, self._fields, raises=self._raises)

    def _session(self) -> LiveSession:
        name = self._session_id if isinstance(self._session_id, str) else str(uuid4())
        return LiveSession(self._engine, name, self._fields, raises=self._raises)

    def _enter(self, session: LiveSession) -> LiveSession:
        session.request()
        self._entered.append((session, _current.set(session)))
        return session

    def _leave(self) -> LiveSession:
        session, token = self._entered.pop()
        try:
            _current.reset(token)
        except ValueError:  # left in another context than entered in, as web frameworks do with generators
            _current.set(None)
        return session


def _name_of_call(
    name: Callable[..., str], args: tuple[Any, ...], kwargs: Mapping[str, Any], *, raises: bool
) -> str | None:
    try:
        return name(*args, **kwargs)
    except Exception as error:
        if raises:
            raise
        _log.warning("session of a call: %s", error)
        return None


def _unassigned(layer: Layer) -> Assignment:
    return Assignment(layer=layer, variant=None, experiment_id=None, config={}, files={}, reason="error")
