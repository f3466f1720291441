"""What is particular to Codex, Claude Code, Langfuse and PRX."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from prx_engine import Engine
from tests.support.clock import ManualClock
from tests.support.engines import OpenEngine
from tests.support.telemetry import (
    CODEX,
    PRX,
    REJECTED,
    answer,
    claude_line,
    codex_event,
    codex_output,
    decision,
    dumped,
    langfuse_score,
    metrics,
    observation,
    result,
    starts,
    token_count,
    trace,
)


@pytest.fixture(autouse=True)
def later(clock: ManualClock) -> None:
    clock.set("2026-07-01T00:00:00Z")


META = json.loads(CODEX.lines[0])


def codex(engine: Engine, *records: dict[str, Any]) -> dict[str, Any]:
    engine.import_lines(dumped([META, *records]), format="codex")
    return metrics(engine).get("codex-1", {})


def test_a_rollout_copied_and_continued_counts_what_is_new(engine: Engine) -> None:
    assert codex(engine, token_count(100, 100), token_count(250, 150))["tokens"] == 250
    assert codex(engine, token_count(100, 100), token_count(250, 150), token_count(300, 50))["tokens"] == 300


@pytest.mark.parametrize(
    ("output", "succeeded"),
    [
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1", 1),
        ("Exit code: 127\nWall time: 0.1 seconds\nOutput:\n", 0),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n", 1),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n", 0),
        ('{"output":"","metadata":{"exit_code":0}}', 1),
        ('{"output":"","metadata":{"exit_code":1}}', 0),
        ({"content": "no", "success": False}, 0),
        ({"content": "yes", "success": True}, 1),
        ([{"type": "input_text", "text": "Exit code: 3\n"}], 0),
        ("Plan updated", 1),
        ('{"output":', 1),
    ],
)
def test_the_output_of_a_call_tells_whether_it_succeeded(output: Any, succeeded: int, engine: Engine) -> None:
    found = codex(engine, codex_output("call", output))
    assert found == {"tool_calls": 1, "tool_calls_succeeded": succeeded}


@pytest.mark.parametrize(
    ("ended", "succeeded"),
    [
        ({"type": "exec_command_end", "exit_code": 0}, 1),
        ({"type": "exec_command_end", "exit_code": 2}, 0),
        ({"type": "patch_apply_end", "success": False}, 0),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"content": []}}}, 1),
        ({"type": "mcp_tool_call_end", "result": {"Ok": {"content": [], "is_error": True}}}, 0),
        ({"type": "mcp_tool_call_end", "result": {"Err": "no such server"}}, 0),
    ],
)
def test_the_event_of_a_call_counts_with_its_output_once(
    ended: dict[str, Any], succeeded: int, engine: Engine
) -> None:
    event = codex_event("event_msg", call_id="call", **ended)
    for order in ([event, codex_output("call", "said")], [codex_output("call", "said"), event]):
        assert codex(engine, *order) == {"tool_calls": 1, "tool_calls_succeeded": succeeded}


def test_a_line_of_no_session_is_refused(engine: Engine) -> None:
    report = engine.import_lines(dumped([token_count(1, 1)]), format="codex")
    assert "no session_meta" in report.rejected[0].problem


def claude(engine: Engine, *records: dict[str, Any]) -> dict[str, Any]:
    engine.import_lines(dumped(records), format="claude-code")
    return metrics(engine).get("claude-1", {})


def test_a_branch_does_not_repeat_what_its_origin_has_counted(engine: Engine) -> None:
    copied = answer("u-1", "m-1", 10, forkedFrom={"sessionId": "claude-0", "messageUuid": "u-0"})
    assert claude(engine, copied, answer("u-2", "m-2", 5))["tokens"] == 240


def test_messages_that_the_program_made_up_cost_nothing(engine: Engine) -> None:
    made_up = answer("u-1", "m-1", 0)
    made_up["message"]["model"] = "<synthetic>"
    assert claude(engine, made_up) == {}


def test_a_message_without_ids_is_known_by_its_line(engine: Engine) -> None:
    lines = [answer(f"u-{n}", "m", n) for n in (1, 2)]
    for line in lines:
        del line["requestId"], line["message"]["id"]
    assert claude(engine, *lines, *lines)["tokens"] == 235 * 2 + 3


def test_a_rejection_is_no_failure_but_a_denial_by_a_rule_is(engine: Engine) -> None:
    found = claude(
        engine,
        result("u-1", "t-1", REJECTED, error=True),
        result("u-2", "t-2", "Permission to use Bash has been denied.", error=True),
        result("u-3", "t-3", REJECTED),  # a tool that quotes it
    )
    assert found == {"thumbs_down": 1, "tool_calls": 2, "tool_calls_succeeded": 1}


def test_prompts_are_timed_if_asked_for(open_engine: OpenEngine) -> None:
    engine = open_engine(config="[self_evolution.telemetry]\ntranscript_latency = true\n")

    def at(second: float, line: dict[str, Any]) -> dict[str, Any]:
        return line | {"timestamp": f"2026-06-01T08:00:{second:06.3f}Z"}

    prompt = {"role": "user", "content": "hello"}
    found = claude(
        engine,
        at(1, claude_line("user", "p-1", prompt)),
        at(3.5, answer("a-1", "m-1", 1)),
        at(4, answer("a-1", "m-1", 2)),  # the same answer goes on
        at(5, result("r-1", "t-1", "done")),
        at(9, answer("a-2", "m-2", 1)),  # after a tool, not after a prompt
        at(10, claude_line("user", "p-2", prompt, isMeta=True)),
        at(11, answer("a-3", "m-3", 1)),
        at(12, claude_line("user", "p-3", prompt)),
        at(12.25, answer("a-4", "m-4", 1)),
    )
    assert found["first_token_ms"] == [250.0, 2500.0]


def test_a_session_starts_with_its_first_line(engine: Engine) -> None:
    first = {
        "type": "system",
        "sessionId": "claude-1",
        "timestamp": "2026-06-01T07:00:00Z",
        "subtype": "init",
    }
    claude(engine, first, answer("u-1", "m-1", 1))
    assert starts(engine) == {"claude-1": "2026-06-01T07:00:00+00:00"}


@pytest.mark.parametrize(
    ("score", "found"),
    [
        (langfuse_score("s", "user_feedback", 1, source="API"), {"thumbs_up": 1}),
        (langfuse_score("s", "user_feedback", 0, source="ANNOTATION"), {"thumbs_down": 1}),
        (langfuse_score("s", "user_feedback", 0.5, source="API"), {"scores": {"user_satisfaction": [0.5]}}),
        (langfuse_score("s", "user_feedback", 1), {"scores": {"user_satisfaction": [1.0]}}),
        (langfuse_score("s", "user_feedback", 1, dataType="CATEGORICAL", stringValue="good"), {}),
        (langfuse_score("s", "Context Relevance", 0.25), {"recall_relevance": [0.25]}),
        (langfuse_score("s", "helpfulness", 0.25), {}),
    ],
)
def test_scores_count_by_name_and_source(
    score: dict[str, Any], found: dict[str, Any], engine: Engine
) -> None:
    engine.import_lines(dumped([trace("t", "s", [observation("o", "TOOL")], [score])]), format="langfuse")
    assert metrics(engine)["s"] == {"tool_calls": 1, "tool_calls_succeeded": 1, **found}


def test_a_bad_score_spoils_nothing_else(engine: Engine) -> None:
    bad = trace("t", "s", [observation("o", "TOOL")], [langfuse_score("s", "relevance", 7)])
    report = engine.import_lines(dumped([bad]), format="langfuse")
    assert report.rejected[0].problem == "value of relevance: found 7; allowed: a number from 0 to 1"
    assert metrics(engine) == {"s": {"tool_calls": 1, "tool_calls_succeeded": 1}}


def test_lines_of_prx_count_once_in_whichever_tier_they_lie(engine: Engine, tmp_path: Path) -> None:
    for tier in ("hot", "warm", "cold"):
        folder = tmp_path / "self" / "evolution" / "decisions" / tier
        folder.mkdir(parents=True)
        engine.import_file(PRX.write(folder))
    assert metrics(engine) == PRX.expected


def test_the_order_of_keys_is_no_content(engine: Engine) -> None:
    one = decision("s", "00:00:00")
    engine.import_lines(dumped([one, dict(reversed(one.items()))]), format="prx")
    assert metrics(engine)["s"]["tasks"] == 1


def brain(path: Path, chats: dict[str, str]) -> Path:
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS memories (key TEXT UNIQUE, content TEXT, created_at TEXT)"
        )
        rows = [(f"chat_session:{name}", content, "2026") for name, content in chats.items()]
        database.executemany("INSERT OR REPLACE INTO memories VALUES (?, ?, ?)", rows)
        database.execute("INSERT OR IGNORE INTO memories VALUES ('taste', 'likes tea', '2026')")
    database.close()
    return path


def chat(name: str, calls: list[bool], tokens: list[int]) -> str:
    return json.dumps(
        {
            "id": name,
            "schema_version": 1,
            "created_at": "2026-06-01T08:00:00Z",
            "turns": [
                {"role": "user", "content": "hello\u2028there", "timestamp": "2026-06-01T08:00:00Z"},
                {
                    "role": "assistant",
                    "content": "done",
                    "timestamp": "2026-06-01T08:00:09Z",
                    "tool_calls": [{"name": "t", "args_preview": "", "success": ok} for ok in calls],
                },
            ],
            "token_usage_records": [{"total_tokens": count} for count in tokens],
        },
        ensure_ascii=False,
        indent=1,
    )


def test_chat_sessions_of_the_memory_are_read(engine: Engine, tmp_path: Path) -> None:
    path = brain(tmp_path / "brain.db", {"a": chat("a", [True, False], [100, 20]), "b": chat("b", [], [])})
    before = path.read_bytes()
    path.chmod(0o400)
    report = engine.import_file(path)
    assert (report.format, report.refused) == ("prx", 0)
    assert metrics(engine) == {"a": {"tool_calls": 2, "tool_calls_succeeded": 1, "tokens": 120}}
    assert starts(engine) == {"a": "2026-06-01T08:00:00+00:00"}
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.glob("brain*")] == ["brain.db"]


def test_the_memory_is_followed(engine: Engine, tmp_path: Path) -> None:
    path = brain(tmp_path / "brain.db", {"a": chat("a", [True], [100])})
    follower = engine.follow(str(path))
    follower.poll()
    brain(path, {"a": chat("a", [True, False], [100, 50]), "b": chat("b", [True], [7])})
    follower.poll()
    assert follower.poll().lines == 0
    follower.close()
    assert metrics(engine) == {
        "a": {"tool_calls": 2, "tool_calls_succeeded": 1, "tokens": 150},
        "b": {"tool_calls": 1, "tool_calls_succeeded": 1, "tokens": 7},
    }


@pytest.mark.parametrize("content", ["{", '{"turns": []}', '{"id": "x", "turns": 5}'])
def test_a_damaged_chat_session_keeps_no_other_out(content: str, engine: Engine, tmp_path: Path) -> None:
    path = brain(tmp_path / "brain.db", {"a": content, "b": chat("b", [True], [7])})
    assert engine.import_file(path).refused == 1
    assert list(metrics(engine)) == ["b"]


def test_another_database_is_refused(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE x (y)")
    database.close()
    (bad,) = engine.import_file(path).rejected
    assert "cannot be read as a memory of PRX: no such table: memories" in bad.problem
