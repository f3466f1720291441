"""A throw-away PostgreSQL server for the tests, gone with the process that asked for it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

# The server is a child of a shell that waits on its standard input. The pipe closes when the tests close it
# or when their process dies, however it dies; then the shell stops the server and removes its folder. A line
# with a number restarts the server after so many seconds.
_KEEPER = """
folder=$1 log=$2; shift 2
"$@" </dev/null >"$log" 2>&1 &
while read -r seconds; do
  kill -INT $!
  wait $!
  sleep "$seconds"
  "$@" </dev/null >>"$log" 2>&1 &
done
kill -INT $!
wait $!
rm -rf "$folder"
"""
_UNPRIVILEGED = ("postgres", "nobody")


class PostgresUnavailable(Exception):
    """This machine cannot run a server; the text says what is missing."""


class PostgresServer:
    """A running server on a free port of the loopback interface; any password is accepted."""

    def __init__(self, port: int, keeper: IO[bytes] | None) -> None:
        self._port = port
        self._keeper = keeper

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://prx@127.0.0.1:{self._port}/{database}"

    @contextlib.contextmanager
    def database(self, options: str = "") -> Iterator[str]:
        """A new empty database as its URL, dropped afterwards even if connections to it are still open."""
        name = f"test_{uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} {options}")
        try:
            yield self.url(name)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def restart(self, seconds_away: float) -> None:
        """Stop the server, which starts again after a while; return as soon as it has stopped."""
        import psycopg

        assert self._keeper is not None
        with psycopg.connect(self.url(), autocommit=True) as connection:
            self._keeper.write(f"{seconds_away}\n".encode())
            self._keeper.flush()
            with contextlib.suppress(psycopg.OperationalError):
                connection.execute("SELECT pg_sleep(60)")

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())


def terminate(url: str) -> None:
    """Close all other connections to a database, as an administrator may."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@contextlib.contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Start a server in a folder of its own and stop it at the end."""
    programs = _find_programs()
    if importlib.util.find_spec("psycopg") is None:
        raise PostgresUnavailable("psycopg is not installed (extra: postgres)")
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="prx-postgres-"))
    try:
        if account:
            os.chown(folder, account["user"], account["group"])
        _initialise(programs, folder, account)
        with _serving(programs, folder, account) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _find_programs() -> Path:
    """The folder of the server's programs, of the newest release where there are several."""
    candidates = [Path(found).parent for found in [shutil.which("initdb")] if found]
    packaged = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    candidates += sorted(packaged, key=lambda path: float(path.parent.name), reverse=True)
    if pg_config := shutil.which("pg_config"):
        candidates.append(Path(subprocess.check_output([pg_config, "--bindir"], text=True).strip()))
    for candidate in candidates:
        if all((candidate / name).exists() for name in ("initdb", "postgres")):
            return candidate
    raise PostgresUnavailable("no initdb and postgres programs on this machine")


def _account() -> dict[str, Any]:
    """How to start programs that refuse to run as root: as somebody else."""
    if os.geteuid() != 0:
        return {}
    for name in _UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise PostgresUnavailable(f"running as root, and there is no user {' or '.join(_UNPRIVILEGED)}")


def _initialise(programs: Path, folder: Path, account: dict[str, Any]) -> None:
    command = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", "prx", "-A", "trust", "-N"]
    command += ["-E", "UTF8", "--locale=C"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **account)
    if done.returncode:
        raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def _serving(programs: Path, folder: Path, account: dict[str, Any]) -> Iterator[PostgresServer]:
    port, log = _free_port(), folder / "log"
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "fsync": "off",
        "full_page_writes": "off",
        "shared_buffers": "32MB",
    }
    command = [str(programs / "postgres"), "-D", str(folder / "data")]
    command += [f"--{name}={value}" for name, value in settings.items()]
    with subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, "keeper", str(folder), str(log), *command],
        stdin=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
        **account,
    ) as keeper:
        server = PostgresServer(port, keeper.stdin)
        if not _answers(server):
            raise RuntimeError(f"the server did not start:\n{log.read_text() if log.exists() else ''}")
        yield server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(server: PostgresServer, patience_seconds: float = 30) -> bool:
    import psycopg

    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        try:
            psycopg.connect(server.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return True
    return False
