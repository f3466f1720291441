from __future__ import annotations

import gzip
import io
import json
import os
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from prx_engine import Engine
from prx_engine.errors import InvalidInput
from prx_engine.telemetry.importing import Intake
from prx_engine.telemetry.places import has_telemetry, places
from prx_engine.telemetry.reading import LONGEST_LINE, Line, decompressed, lines_of
from tests.support.clock import ManualClock
from tests.support.telemetry import LANGFUSE, NATIVE, OTLP, metrics


def read(content: bytes) -> list[Line]:
    return list(lines_of(io.BytesIO(content)))


def test_lines_keep_their_numbers() -> None:
    assert read(b"\n{}\r\n \n17\n{}") == [Line(2, b"{}"), Line(4, b"17"), Line(5, b"{}")]
    assert read(b"") == []


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert read(b"\xef\xbb\xbf{}\n{}")[0] == Line(1, b"{}")


def test_a_document_is_its_values() -> None:
    assert read(b'{\n "a": [1,\n 2]\n}\n') == [Line(1, b'{\n "a": [1,\n 2]\n}')]
    assert read(b'[\n {"a": 1},\n\n {"b":\n 2}\n]\n') == [Line(2, b'{"a": 1}'), Line(4, b'{"b":\n 2}')]
    assert read(b'[{"a": 1}, {"b": 2}]') == [Line(1, b'{"a": 1}'), Line(1, b'{"b": 2}')]
    assert read(b'{\n "a": 1\n}\n{\n "b": 2\n}\n') == [
        Line(1, b'{\n "a": 1\n}'),
        Line(4, b'{\n "b": 2\n}'),
    ]
    assert read(b"[]") == []


def test_a_long_document_is_read_in_parts() -> None:
    values = [{"n": n, "text": "ä" * 1000} for n in range(3000)]
    found = read(json.dumps(values, ensure_ascii=False, indent=1).encode())
    assert [json.loads(line.content) for line in found] == values
    assert [line.number for line in found[:2]] == [2, 6]


def test_a_value_longer_than_a_block_is_read() -> None:
    value = {"text": "x" * (3 * 1024 * 1024)}
    assert [json.loads(line.content) for line in read(json.dumps([value, value]).encode())] == [value, value]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{\n "a": 1,\n', "damaged"),
        (b'[\n{"a": 1},\n', "ends too early"),
        (b'[{"a": 1} nonsense]', "damaged"),
        (b"[" * 100_000, "nested too deeply"),
        (b'[\n"\xff"]', "not UTF-8"),
        ('{"a": 1}\n'.encode("utf-16"), "UTF-16"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read(content)


def test_a_bad_first_line_makes_no_document() -> None:
    assert len(read(b'{"session_id": "a", "tok\n{"session_id": "b"}\n')) == 2


def test_of_a_line_without_end_only_the_beginning_is_kept() -> None:
    content = b'{"a": 1}\n' + b"x" * (3 * LONGEST_LINE) + b'\n{"b": 2}\n'
    first, second, third = read(content)
    assert (first.content, third) == (b'{"a": 1}', Line(3, b'{"b": 2}'))
    assert second.cut
    assert len(second.content) <= LONGEST_LINE + 1


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_files_are_read_whatever_they_are_called(
    compress: object, engine: Engine, tmp_path: Path
) -> None:
    content = b"".join(line + b"\n" for line in NATIVE.lines)
    assert callable(compress)
    path = tmp_path / "log.jsonl"
    # Writers that append make files of several members.
    path.write_bytes(compress(content[:100]) + compress(content[100:]))
    assert has_telemetry(path)
    assert engine.import_file(path).refused == 0
    assert metrics(engine) == NATIVE.expected


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_file_that_was_cut_off_is_reported(
    compress: object, engine: Engine, tmp_path: Path
) -> None:
    assert callable(compress)
    lines = b"".join(b'{"session_id": "s-%d", "tokens": %d}\n' % (n, n * n) for n in range(20_000))
    whole = compress(lines)
    path = tmp_path / "log.gz"
    path.write_bytes(whole[: len(whole) // 2])
    report = engine.import_file(path)
    assert 0 < report.sessions < 20_000
    assert report.rejected[-1].problem.startswith("damaged: ")


def zstandard_in_blocks(lines: list[bytes]) -> bytes:
    """Compress each line into a block of its own, within one frame."""
    compressor = zstandard.ZstdCompressor().compressobj()
    blocks = (
        compressor.compress(line) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for line in lines
    )
    return b"".join(blocks)


def gzip_in_blocks(lines: list[bytes]) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    return b"".join(compressor.compress(line) + compressor.flush(zlib.Z_SYNC_FLUSH) for line in lines)


@pytest.mark.parametrize("compress", [gzip_in_blocks, zstandard_in_blocks])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_the_lines_before_the_damage_are_taken(
    compress: Callable[[list[bytes]], bytes], count: int, engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(compress([b'{"session_id": "s-%d", "tokens": 1}\n' % n for n in range(count)]))
    report = engine.import_file(path)
    assert (report.sessions, report.refused) == (count, 1)
    assert report.rejected[0].problem.startswith("damaged: ")


def test_a_small_file_that_becomes_a_huge_line_takes_little_memory(engine: Engine, tmp_path: Path) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    good = b'{"session_id": "s", "tokens": 1}\n'
    path = tmp_path / "bomb.zst"
    with path.open("wb") as file:
        file.write(compressor.compress(good))
        for _ in range(256):
            file.write(compressor.compress(bytes(1024 * 1024)))
        file.write(compressor.flush())
    assert path.stat().st_size < 64 * 1024
    tracemalloc.start()
    try:
        report = engine.import_file(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (report.sessions, report.refused) == (1, 1)
    assert report.rejected[0].problem == "longer than 16 MiB"
    assert peak < 128 * 1024 * 1024


def test_frames_of_zstandard_may_be_tiny_empty_or_cut_off() -> None:
    compress = zstandard.ZstdCompressor().compress
    lines = [b'{"a": %d}\n' % n for n in range(1000)]
    whole = b"".join(compress(line) + compress(b"") for line in lines)
    assert decompressed(io.BytesIO(whole)).read() == b"".join(lines)
    with pytest.raises(EOFError, match="middle of a frame"):
        decompressed(io.BytesIO(whole[:-1])).read()


def test_a_damaged_compressed_file_is_reported(engine: Engine, tmp_path: Path) -> None:
    whole = gzip.compress(b'{"session_id": "s", "tokens": 1}\n' * 1000)
    path = tmp_path / "log.gz"
    path.write_bytes(whole[:-6] + b"\0" * 6)
    (bad,) = engine.import_file(path).rejected
    assert bad.problem.startswith("damaged: CRC check failed")


def test_an_uncompressed_stream_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"{}\n")
    with path.open("rb") as file:
        assert decompressed(file) is file


def test_langfuse_documents_are_read_in_every_layout(
    engine: Engine, tmp_path: Path, clock: ManualClock
) -> None:
    clock.set("2026-07-01T00:00:00Z")
    found = [json.loads(line) for line in LANGFUSE.lines]
    layouts = {
        "list": json.dumps(found, indent=2),
        "page": json.dumps({"data": found, "meta": {"page": 1}}),
        "lines": "\n".join(map(json.dumps, found)),
        "exports": "\n".join(
            json.dumps({"trace": one, "observations": one["observations"]}, indent=1) for one in found
        ),
    }
    for name, text in layouts.items():
        path = tmp_path / f"{name}.json"
        path.write_text(text, encoding="utf-8")
        report = engine.import_file(path)
        assert (report.format, report.refused) == ("langfuse", 0)
    assert metrics(engine) == LANGFUSE.expected


def test_an_export_of_otlp_may_be_a_document(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_text("\n".join(json.dumps(json.loads(line), indent=2) for line in OTLP.lines))
    assert engine.import_file(path).refused == 0
    assert metrics(engine) == OTLP.expected


def test_places_are_files_folders_and_globs(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "c.txt", ".d.jsonl", ".git/e.jsonl", "deep/f.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")

    def names(source: str) -> list[str]:
        return [str(place.path.relative_to(tmp_path)) for place in places(source, tmp_path)]

    assert names("a.jsonl") == ["a.jsonl"]
    assert names("missing.jsonl") == ["missing.jsonl"]
    assert names("*.jsonl") == ["a.jsonl", "b.jsonl"]
    assert names("**/*.jsonl") == ["a.jsonl", "b.jsonl", "deep/f.jsonl"]
    assert names(".") == ["a.jsonl", "b.jsonl", "c.txt", "deep/f.jsonl"]
    assert names("none-*.jsonl") == []
    assert not any(place.named for place in places(".", tmp_path))


def test_a_pipe_is_read(engine: Engine, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = gzip.compress(b"".join(line + b"\n" for line in NATIVE.lines))
    writer = threading.Thread(target=pipe.write_bytes, args=[content])
    writer.start()
    assert engine.import_file(pipe).refused == 0
    writer.join()
    assert metrics(engine) == NATIVE.expected


def test_progress_is_told_in_bytes_of_the_file(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"session_id": "s", "tokens": 1}\n' * 20_000)
    told: list[int] = []
    engine.import_file(path, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == path.stat().st_size


def test_refused_lines_are_given_back_in_their_order(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    good = b'{"session_id": "s", "tokens": 1}'
    wrong = b'{"session_id": "s", "tool_calls": 1, "tool_calls_succeeded": 2}'
    path.write_bytes(b"\n".join([good, b"nonsense", wrong, good, b"{"] * 30))
    back: list[tuple[int, bytes]] = []
    report = engine.import_file(path, on_rejected=lambda number, line: back.append((number, line)))
    assert [line for _, line in back] == [b"nonsense", wrong, b"{"] * 30
    assert [number for number, _ in back[:6]] == [2, 3, 5, 7, 8, 10]
    assert (report.refused, len(report.rejected)) == (90, 20)


def test_refused_lines_do_not_pile_up(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes((b"x" * 8000 + b"\n") * 6000)
    told: list[int] = []
    for on_rejected in (None, lambda number, _: told.append(number)):
        tracemalloc.start()
        try:
            report = engine.import_file(path, on_rejected=on_rejected)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (report.lines, report.refused) == (6000, 6000)
        assert peak < 32 * 1024 * 1024
    assert told == list(range(1, 6001))


def test_reports_of_whole_files_do_not_pile_up(engine: Engine) -> None:
    told: list[int] = []
    intake = Intake("x", engine._target(), lambda number, _: told.append(number))
    for _ in range(1200):
        intake.refuse(0, InvalidInput("damaged"))
    assert len(told) == 1000
    assert intake.finish(None).refused == len(told) == 1200


def test_values_of_a_document_are_counted_one_by_one(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "values.json"
    path.write_text("[1,2,3]")
    back: list[tuple[int, bytes]] = []
    report = engine.import_file(path, on_rejected=lambda number, line: back.append((number, line)))
    assert (report.lines, report.refused, len(report.rejected)) == (3, 3, 3)
    assert back == [(1, b"1"), (1, b"2"), (1, b"3")]


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(InvalidInput, match="path: it is empty"):
        places("")
