"""Memory stays flat however big the input is."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.telemetry import span, traces

MEBIBYTE = 1024 * 1024

IMPORT = """
import json, resource, sys
from prx_engine import Engine
with Engine.open(sys.argv[1], config=sys.argv[2]) as engine:
    report = engine.import_file(sys.argv[3])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([peak, report.sessions, report.refused]))
"""


def write(path: Path, size: int) -> int:
    """Lines of 50 model calls, 5 calls a session, and after every tenth a bad one; return the sessions."""
    written = number = lines = 0
    with gzip.open(path, "wb", compresslevel=1) as file:
        while written < size:
            lines += 1
            spans = []
            for _ in range(50):
                spans.append(
                    span(
                        number,
                        f"{number // 5:032x}",
                        gen_ai__operation__name="chat",
                        gen_ai__conversation__id=f"c-{number // 5}",
                        gen_ai__usage__input_tokens=3,
                        gen_ai__input__messages="x" * 400,
                    )
                )
                number += 1
            line = json.dumps(traces(*spans)).encode() + b"\n"
            file.write(line + (b"{" + b"x" * 1000 + b"\n" if lines % 10 == 0 else b""))
            written += len(line)
    return number // 5


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_import_of_ten_times_the_size_needs_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for size in (10, 100):
        path = tmp_path / f"{size}.jsonl.gz"
        sessions = write(path, size * MEBIBYTE)
        arguments = [str(tmp_path / f"{size}.db"), str(tmp_path / "config.toml"), str(path)]
        done = subprocess.run([sys.executable, "-c", IMPORT, *arguments], capture_output=True, check=True)
        peak, imported, refused = json.loads(done.stdout)
        assert imported == sessions
        assert refused > 0
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 16 * MEBIBYTE
