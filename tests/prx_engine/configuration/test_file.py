from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from prx_engine.configuration import file as file_module
from prx_engine.configuration.explain import InvalidConfiguration
from prx_engine.configuration.file import ConfigurationFile, config_path
from prx_engine.configuration.settings import SelfEvolution
from prx_engine.errors import ConfigurationError

FOREIGN = """\
# mine\t
other = nan
[self_evolution]   # ours and others'
other = 1
experimants = "not ours to judge"
database = "x.db"

[self_evolution.memory]
enabled = "maybe"

[self_evolution.experiments]
traffic_split = 0.4 # four

[telemetry]
sources = 3
"""

ROOT = Path(__file__).parents[3]
Write = Callable[[str], ConfigurationFile]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> ConfigurationFile:
        path = tmp_path / "config.toml"
        path.write_bytes(text.encode())
        return ConfigurationFile(path)

    return write


def identity(path: Path) -> tuple[int, int]:
    """What every way of writing a file changes."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def message(call: Callable[[], object]) -> str:
    with pytest.raises(ConfigurationError) as refused:
        call()
    assert str(refused.value).isprintable()
    return str(refused.value)


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({"PRX_CONFIG": "/a/b.toml", "OPENPRX_CONFIG_DIR": "/c", "HOME": "/h"}, "/a/b.toml"),
        ({"OPENPRX_CONFIG_DIR": "/c", "HOME": "/h"}, "/c/config.toml"),
        ({"HOME": "/h"}, "/h/.openprx/config.toml"),
        ({"PRX_CONFIG": "", "OPENPRX_CONFIG_DIR": "", "HOME": "/h"}, "/h/.openprx/config.toml"),
        ({"PRX_CONFIG": "~/b.toml", "HOME": "/h"}, "/h/b.toml"),
        ({"OPENPRX_CONFIG_DIR": "~", "HOME": "/h"}, "/h/config.toml"),
        ({"PRX_CONFIG": "relative.toml"}, "relative.toml"),
    ],
)
def test_the_environment_names_the_file(env: dict[str, str], path: str) -> None:
    assert config_path(env) == Path(path)


def test_without_home_in_the_environment_the_system_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/from/system")

    assert config_path({}) == Path("/from/system/.openprx/config.toml")


def test_no_home_folder_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(path: Path) -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "expanduser", nowhere)

    assert "set PRX_CONFIG" in message(lambda: config_path({}))


class TestLoad:
    def test_a_missing_file_means_the_defaults(self, tmp_path: Path) -> None:
        assert ConfigurationFile(tmp_path / "no" / "config.toml").load() == SelfEvolution()

    def test_an_empty_file_means_the_defaults(self, write: Write) -> None:
        assert write("").load() == SelfEvolution()

    def test_what_belongs_to_others_is_not_judged(self, write: Write) -> None:
        settings = write(FOREIGN).load()

        assert (settings.database, settings.experiments.traffic_split) == ("x.db", 0.4)

    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_files_of_other_systems_are_read(self, write: Write, mark: str, newline: str) -> None:
        text = mark + FOREIGN.replace("\n", newline)

        assert write(text).load().database == "x.db"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("\n[self_evolution.experiments]\ntraffic_split = 2\n",
             ":3: self_evolution.experiments.traffic_split: found 2; allowed: a number from 0 to 1"),
            ("[self_evolution.fitness]\r\n\r\nweigths = { }\r\n",
             ":3: self_evolution.fitness.weigths: no such key; did you mean weights?"),
            ("a = 1\n[self_evolution]\nexperiments = { auto_converge = { enabled = 'yes' } }\n",
             ':3: self_evolution.experiments.auto_converge.enabled: found "yes"; allowed: true or false'),
            ("\nself_evolution = 3\n", ":2: self_evolution: found 3; allowed: a table"),
            ("[[self_evolution.telemetry.sources]]\npath='x'\n[[self_evolution.telemetry.sources]]\npath=1",
             ":4: self_evolution.telemetry.sources[1].path: found 1; allowed: a text, not empty, "
         "without control characters"),
            ("[self_evolution.experiments]\ndefault_duration_hours = 800\n",
             ":2: self_evolution.experiments.default_duration_hours: found 800; allowed: "
             "at most auto_converge.max_duration_hours, which is 720"),
            ("x = 1\n[self_evolution.fitness.weights]\ntask_completion = 0.5\n",
             ":2: self_evolution.fitness.weights: found a sum of 1.25; "
             "allowed: the six weights together 1.0; set them as one table"),
            ("a = 1\nb = \n", ":2: Invalid value"),
            ("a = 1\na = 2\n", ":2: Cannot overwrite a value"),
            ("a = 1\n\nb = [1,\n", ":3: Invalid value"),
            ("a = 1\rb = 2\n", ":1: Expected newline or end of document after a statement"),
        ],
    )  # fmt: skip
    def test_an_error_is_one_line_with_file_and_line(self, write: Write, text: str, expected: str) -> None:
        file = write(text)

        assert message(file.load) == f"{file.path}{expected}"

    def test_all_problems_are_there_in_the_order_of_the_file(self, write: Write) -> None:
        file = write(
            "[self_evolution.fitness]\nevaluation_window_hours = 0\n"
            "[self_evolution.experiments]\nenabled = 3\nzzz = 1\n"
        )

        with pytest.raises(InvalidConfiguration, match=r":2: .* \(and 2 more\)$") as refused:
            file.load()

        assert [problem.line for problem in refused.value.problems] == [2, 4, 5]

    def test_a_long_or_wild_value_is_one_short_line(self, write: Write) -> None:
        file = write(f'[self_evolution.experiments]\n"\\u001b[31m\\n" = 1\nenabled = "\\u001b{"x" * 999}"\n')

        with pytest.raises(InvalidConfiguration) as refused:
            file.load()

        for problem in refused.value.problems:
            text = str(problem).removeprefix(str(file.path))
            assert text.isprintable()
            assert len(text) < 250

    @pytest.mark.parametrize("text", [f"a = {'9' * 5000}", f"a = {'[' * 5000}{']' * 5000}"])
    def test_what_the_parser_cannot_take_is_one_line_too(self, write: Write, text: str) -> None:
        file = write(text)

        assert message(file.load).startswith(f"{file.path}: ")

    def test_a_folder_in_place_of_the_file(self, tmp_path: Path) -> None:
        assert message(ConfigurationFile(tmp_path).load) == f"{tmp_path}: cannot be read: Is a directory"

    def test_a_file_in_place_of_the_folder(self, write: Write) -> None:
        path = write("").path / "config.toml"

        assert message(ConfigurationFile(path).load) == f"{path}: cannot be read: Not a directory"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_without_permission(self, write: Write) -> None:
        file = write("")
        file.path.chmod(0)

        assert message(file.load) == f"{file.path}: cannot be read: Permission denied"

    def test_a_file_in_another_encoding(self, tmp_path: Path) -> None:
        path = tmp_path / "config.toml"
        path.write_bytes("a = 1\nb = 'ü'\n".encode("latin-1"))

        assert message(ConfigurationFile(path).load) == f"{path}:2: not UTF-8: byte 0xfc"


class TestCurrent:
    def test_a_change_is_seen_at_once(self, write: Write) -> None:
        file = write("[self_evolution]\ndatabase = 'a'\n")
        assert file.current().database == "a"

        write("[self_evolution]\ndatabase = 'b'\n")  # as long, and perhaps within one tick of the clock

        assert file.current().database == "b"

    def test_a_file_that_appears_or_disappears_is_seen(self, tmp_path: Path, write: Write) -> None:
        file = ConfigurationFile(tmp_path / "config.toml")
        assert file.current().database is None

        write("[self_evolution]\ndatabase = 'a'\n")
        assert file.current().database == "a"

        file.path.unlink()
        assert file.current().database is None

    def test_an_unchanged_file_is_not_read_again(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file_module, "_SETTLED_NS", -1)
        file = write("[self_evolution]\ndatabase = 'a'\n")
        first = file.current()

        monkeypatch.setattr("builtins.open", None)

        assert file.current() is first

    def test_a_fresh_change_is_not_trusted_to_be_the_last(self, write: Write) -> None:
        file = write("[self_evolution]\ndatabase = 'a'\n")
        file.current()
        status = file.path.stat()

        with open(file.path, "r+b") as same:
            same.write(b"[self_evolution]\ndatabase = 'b'\n")
        os.utime(file.path, ns=(status.st_atime_ns, status.st_mtime_ns))

        assert file.current().database == "b"

    def test_an_error_is_told_on_every_call_until_it_is_mended(self, write: Write) -> None:
        file = write("[self_evolution]\ndatabase = 1\n")
        assert message(file.current) == message(file.current) == message(file.load)

        write("[self_evolution]\ndatabase = 'a'\n")

        assert file.current().database == "a"

    def test_a_folder_in_place_of_the_file(self, tmp_path: Path) -> None:
        file = ConfigurationFile(tmp_path)

        assert message(file.current) == message(file.current) == f"{tmp_path}: cannot be read: Is a directory"

    def test_many_threads_see_whole_settings(self, write: Write) -> None:
        file = write("[self_evolution]\ndatabase = 'a'\n")
        seen: set[str | None] = set()
        done = threading.Event()

        def watch() -> None:
            while not done.is_set():
                seen.add(file.current().database)

        threads = [threading.Thread(target=watch) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(20):
            file.set("database", f"a{number}")
        done.set()
        for thread in threads:
            thread.join()

        assert file.current().database == "a19"
        assert seen <= {"a", *(f"a{number}" for number in range(20))}


class TestSet:
    @pytest.mark.parametrize("key", ["experiments.traffic_split", "self_evolution.experiments.traffic_split"])
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    def test_one_value_changes_and_every_other_byte_stays(
        self, write: Write, key: str, newline: str, mark: str
    ) -> None:
        text = mark + FOREIGN.replace("\n", newline)
        file = write(text)

        file.set(key, 0.25)

        assert file.path.read_bytes().decode() == text.replace("0.4 #", "0.25 #")
        assert file.current().experiments.traffic_split == 0.25

    def test_a_missing_file_is_made_with_its_folder_for_its_owner_alone(self, tmp_path: Path) -> None:
        file = ConfigurationFile(tmp_path / "new" / "config.toml")

        file.set("experiments.sequential.spending", "pocock")

        assert file.path.read_text() == '[self_evolution.experiments.sequential]\nspending = "pocock"\n'
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600

    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o660])
    def test_permissions_stay(self, write: Write, mode: int) -> None:
        file = write(FOREIGN)
        file.path.chmod(mode)

        file.set("database", "y.db")

        assert stat.S_IMODE(file.path.stat().st_mode) == mode

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
    def test_root_leaves_the_file_to_its_owner(self, write: Write) -> None:
        file = write(FOREIGN)
        os.chown(file.path, 12345, 12346)

        file.set("database", "y.db")

        assert (file.path.stat().st_uid, file.path.stat().st_gid) == (12345, 12346)

    def test_a_link_stays_a_link(self, write: Write, tmp_path: Path) -> None:
        real = write(FOREIGN).path
        link = tmp_path / "link.toml"
        link.symlink_to(real)

        ConfigurationFile(link).set("database", "y.db")

        assert link.is_symlink()
        assert ConfigurationFile(real).load().database == "y.db"

    @pytest.mark.parametrize(
        ("key", "value", "expected"),
        [
            ("experiments.traffic_split", 2,
             "self_evolution.experiments.traffic_split: found 2; allowed: a number from 0 to 1"),
            ("experiments.traffic_split", None,
             "self_evolution.experiments.traffic_split: found None; allowed: a number from 0 to 1"),
            ("experiments.traffic_spilt", 0.5,
             "self_evolution.experiments.traffic_spilt: no such key; did you mean traffic_split?"),
            ("memory.enabled", True,
             "self_evolution.memory: no such key; "
             "allowed: database, experiments, fitness, promotion, telemetry"),
            ("experiments.enabled.x", True, "self_evolution.experiments.enabled.x: no such key"),
            ("telemetry.sources.path", "x", "self_evolution.telemetry.sources.path: no such key"),
            ("promotion", 1, "self_evolution.promotion: found 1; allowed: a table of target, workspace"),
            ("promotion", {"tarrget": "x"},
             "self_evolution.promotion.tarrget: no such key; did you mean target?"),
            ("", 1, "self_evolution.\"\": no such key; "
             "allowed: database, experiments, fitness, promotion, telemetry"),
        ],
    )  # fmt: skip
    def test_what_is_not_allowed_leaves_the_file_as_it_is(
        self, write: Write, key: str, value: object, expected: str
    ) -> None:
        file = write(FOREIGN)
        before = identity(file.path)

        assert message(lambda: file.set(key, value)) == expected
        assert identity(file.path) == before
        assert os.listdir(file.path.parent) == ["config.toml"]

    def test_several_keys_of_a_table_change_together(self, write: Write) -> None:
        file = write("[self_evolution.fitness.weights]\ntask_completion = 0.25 # stays\n")

        file.set("fitness.weights", {"token_efficiency": 0.15, "memory_precision": 0.05})

        assert file.path.read_text() == (
            "[self_evolution.fitness.weights]\ntask_completion = 0.25 # stays\n"
            "token_efficiency = 0.15\nmemory_precision = 0.05\n"
        )

    def test_a_value_that_contradicts_another_key_of_the_file_is_refused(self, write: Write) -> None:
        file = write("[self_evolution.experiments.auto_converge]\nmax_duration_hours = 200\n")

        assert message(lambda: file.set("experiments.default_duration_hours", 300)) == (
            f"{file.path}:2: self_evolution.experiments.auto_converge.max_duration_hours: "
            "found 200; allowed: at least default_duration_hours, which is 300"
        )

    def test_a_bad_value_in_the_file_can_be_mended(self, write: Write) -> None:
        file = write("[self_evolution.experiments]\nenabled = 3\n")

        file.set("experiments.enabled", False)

        assert file.path.read_text() == "[self_evolution.experiments]\nenabled = false\n"

    def test_another_bad_value_in_the_file_is_named(self, write: Write) -> None:
        file = write("[self_evolution.experiments]\nenabled = 3\n")

        assert message(lambda: file.set("database", "x")).startswith(f"{file.path}:2: ")

    def test_a_table_that_is_something_else_is_named(self, write: Write) -> None:
        file = write("[self_evolution]\nexperiments = 3\n")

        assert message(lambda: file.set("experiments.enabled", True)).startswith(
            f"{file.path}:2: self_evolution.experiments: found 3; allowed: a table"
        )

    def test_sources_are_set_as_a_whole(self, write: Write) -> None:
        file = write(FOREIGN)

        file.set("telemetry.sources", [{"path": "logs/*.jsonl"}])

        assert [source.path for source in file.load().telemetry.sources] == ["logs/*.jsonl"]

    def test_what_only_a_person_can_edit_is_left_to_them(self, write: Write) -> None:
        file = write("[[self_evolution.telemetry.sources]]\npath = 'x'\n")

        assert message(lambda: file.set("telemetry.sources", [])) == (
            f"{file.path}: self_evolution.telemetry.sources: "
            "is written in a way that has to be edited by hand"
        )

    def test_the_same_value_again_does_not_touch_the_file(self, write: Write) -> None:
        file = write(FOREIGN)
        before = identity(file.path)

        file.set("experiments.traffic_split", 0.4)

        assert identity(file.path) == before

    def test_a_change_by_somebody_else_meanwhile_is_not_overwritten(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = write(FOREIGN)
        fsync = os.fsync

        def slow(descriptor: int) -> None:
            write("theirs = 1\n")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", slow)

        assert "changed by somebody else" in message(lambda: file.set("database", "y"))
        assert file.path.read_text() == "theirs = 1\n"
        assert os.listdir(file.path.parent) == ["config.toml"]

    @pytest.mark.parametrize("call", ["fsync", "replace"])
    def test_a_failure_to_write_leaves_the_file_and_nothing_else(
        self, write: Write, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        def full(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        file = write(FOREIGN)
        monkeypatch.setattr(os, call, full)

        expected = f"{file.path}: cannot be written: No space left on device"
        assert message(lambda: file.set("database", "y")) == expected
        assert file.path.read_text() == FOREIGN
        assert os.listdir(file.path.parent) == ["config.toml"]


def test_reading_the_configuration_imports_nothing_heavy() -> None:
    code = (
        "import sys; from prx_engine.configuration import ConfigurationFile; from pathlib import Path;"
        "ConfigurationFile(Path('none.toml')).load();"
        "print([m for m in ('numpy', 'scipy', 'tomlkit', 'difflib', 'peewee', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert run.stdout.strip() == "[]"
