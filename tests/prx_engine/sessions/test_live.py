from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import copy_context
from typing import Any

import pytest

from prx_engine import Engine
from prx_engine.dimensions import Layer
from prx_engine.errors import InvalidInput, StoreBusy
from prx_engine.records import Assignment
from prx_engine.sessions.live import SessionScope, current_session
from tests.support.clock import ManualClock
from tests.support.telemetry import metrics, variants


class Broken:
    """An engine whose database is gone."""

    def assign(self, session_id: str) -> Mapping[Layer, Assignment]:
        raise StoreBusy("no database")

    def record(self, session_id: str, **fields: Any) -> None:
        raise StoreBusy("no database")


def test_what_is_told_is_recorded_at_the_end(engine: Engine) -> None:
    with engine.session("s-1", cluster="user-1") as session:
        session.first_token(420)
        session.first_token(610)
        session.tool_call()
        session.tool_call(ok=False)
        session.tokens(5000)
        session.tokens(210)
        session.task()
        session.relevance(0.9)
        session.recall(0.5)
        session.feedback("thumbs_up")
        session.feedback("thumbs_down")
        session.feedback("correction")
    assert metrics(engine) == {
        "s-1": {
            "first_token_ms": [420.0, 610.0],
            "tool_calls": 2,
            "tool_calls_succeeded": 1,
            "tokens": 5210,
            "tasks": 1,
            "tasks_succeeded": 1,
            "relevance": [0.9],
            "recall_relevance": [0.5],
            "thumbs_up": 1,
            "thumbs_down": 1,
            "corrections": 1,
        }
    }


def test_a_session_is_assigned_and_knows_its_configuration(engine: Engine, clock: ManualClock) -> None:
    treatment = {"description": "shorter", "config": {"prompt.style": "short"}}
    engine.create_experiment("L2", treatment, hypothesis="better", traffic_split=1.0)
    clock.advance(hours=1)
    with engine.session("s-1") as session:
        assert session["L2"].variant == "treatment"
        assert session["L2"].config == {"prompt.style": "short"}
        assert session["L1"].variant is None
        with pytest.raises(KeyError):
            session["L9"]  # type: ignore[index]
    assert variants(engine) == {("s-1", "L2"): "treatment"}


def test_several_blocks_of_one_session_add_up(engine: Engine) -> None:
    for _ in range(3):
        with engine.session("s-1") as session:
            session.tokens(10)
            session.flush()
            session.tokens(5)
    assert metrics(engine) == {"s-1": {"tokens": 45}}


def test_the_time_to_the_first_token_counts_from_the_request(engine: Engine) -> None:
    with engine.session("s-1") as session:
        session.first_token()
        session.request()
        session.first_token()
    waits = metrics(engine)["s-1"]["first_token_ms"]
    assert len(waits) == 2
    assert all(0 <= wait < 10_000 for wait in waits)


def test_an_error_of_the_agent_passes_and_its_session_is_recorded(engine: Engine) -> None:
    @engine.session("s-1")
    def failing() -> None:
        session = current_session()
        assert session is not None
        session.tool_call(ok=False)
        raise RuntimeError("the agent's own")

    with pytest.raises(RuntimeError, match="the agent's own"):
        failing()
    assert metrics(engine) == {"s-1": {"tool_calls": 1, "tool_calls_succeeded": 0}}


def test_errors_of_the_experiments_are_logged_and_never_reach_the_agent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING), SessionScope(Broken(), "s-1", {}, raises=False) as session:
        session.tokens(1)
        assert session["L1"].variant is None
        assert session["L1"].reason == "error"
    assert [record.message for record in caplog.records] == ["session 's-1': no database"] * 2


def test_errors_reach_the_agent_that_asks_for_them(engine: Engine) -> None:
    with pytest.raises(StoreBusy), SessionScope(Broken(), "s-1", {}, raises=True):
        pass
    with engine.session("s-1", raises=True) as session, pytest.raises(InvalidInput, match="tokens: found -1"):
        session.tokens(-1)


def test_a_wrong_value_spoils_none_of_the_right_ones(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with engine.session("s-1") as session:
        session.tokens(10)
        session.tokens(-1)
        session.relevance(7)
        session.feedback("applause")  # type: ignore[arg-type]
        session.relevance(0.5)
    assert metrics(engine) == {"s-1": {"tokens": 10, "relevance": [0.5]}}
    assert len(caplog.records) == 3


def test_a_bad_session_id_never_reaches_the_agent(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with engine.session("") as session:
        session.tokens(1)
    assert metrics(engine) == {}
    assert len(caplog.records) == 2


def test_threads_may_tell_at_once(engine: Engine) -> None:
    with engine.session("s-1") as session:

        def work() -> None:
            for _ in range(200):
                session.tokens(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert metrics(engine) == {"s-1": {"tokens": 800}}


def test_each_call_of_a_decorated_function_is_a_session(engine: Engine) -> None:
    @engine.session(lambda name, tokens: f"s-{name}")
    def answer(name: str, tokens: int) -> str:
        """Answer."""
        session = current_session()
        assert session is not None
        session.tokens(tokens)
        return session.session_id

    assert [answer("a", 1), answer("b", tokens=2)] == ["s-a", "s-b"]
    assert answer.__doc__ == "Answer."
    assert current_session() is None
    assert metrics(engine) == {"s-a": {"tokens": 1}, "s-b": {"tokens": 2}}


def test_a_decorated_function_may_call_itself(engine: Engine) -> None:
    @engine.session(lambda depth: f"s-{depth}")
    def dive(depth: int) -> None:
        if depth:
            dive(depth - 1)
        session = current_session()
        assert session is not None
        assert session.session_id == f"s-{depth}"
        session.tokens(depth)

    dive(2)
    assert metrics(engine) == {"s-0": {"tokens": 0}, "s-1": {"tokens": 1}, "s-2": {"tokens": 2}}


def test_without_a_name_each_call_is_a_new_session(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    @engine.session()
    def anonymous() -> str:
        session = current_session()
        assert session is not None
        session.tokens(1)
        return session.session_id

    @engine.session(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    def misnamed() -> None:
        pass

    assert anonymous() != anonymous()
    assert len(metrics(engine)) == 2
    misnamed()
    assert "division by zero" in caplog.text


async def test_async_agents_use_it_alike(engine: Engine) -> None:
    @engine.session(lambda number: f"call-{number}")
    async def answer(number: int) -> int:
        session = current_session()
        assert session is not None
        await asyncio.sleep(0.001)
        session.tokens(number)
        return number

    async def block(number: int) -> None:
        async with engine.session(f"block-{number}") as session:
            await asyncio.sleep(0.001)
            assert current_session() is session
            session.tokens(number)

    assert await asyncio.gather(*(answer(number) for number in range(1, 9))) == list(range(1, 9))
    await asyncio.gather(*(block(number) for number in range(1, 9)))
    found = metrics(engine)
    assert {name: report["tokens"] for name, report in found.items()} == {
        f"{kind}-{number}": number for kind in ("call", "block") for number in range(1, 9)
    }


def test_a_session_may_be_left_in_another_context_than_it_was_entered_in(engine: Engine) -> None:
    def dependency() -> Iterator[None]:
        with engine.session("s") as session:
            session.tokens(5)
            yield

    steps = dependency()
    copy_context().run(next, steps)
    copy_context().run(next, steps, None)
    assert current_session() is None
    assert metrics(engine) == {"s": {"tokens": 5}}


def test_a_generator_is_refused_as_a_session(engine: Engine) -> None:
    def stream() -> Iterator[int]:
        yield 1

    async def stream_async() -> AsyncIterator[int]:
        yield 1

    for function in (stream, stream_async):
        with pytest.raises(TypeError, match="use a with block inside of it"):
            engine.session()(function)
