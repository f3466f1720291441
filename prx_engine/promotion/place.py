"""Where an experiment's changes belong: host, target and workspace, and one writer at a time."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from prx_engine.configuration import PromotionSettings
from prx_engine.errors import PromotionRefused
from prx_engine.promotion.workspace import shown_path

LOCK_WAIT_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Place:
    """Host and absolute paths of promotion.

    Attributes:
        host: name of the machine.
        target: TOML file of the promoted keys.
        workspace: folder of the promoted files.
    """

    host: str
    target: Path
    workspace: Path

    @classmethod
    def of(cls, configuration: Path, settings: PromotionSettings) -> Self:
        """Return the place that a configuration file names on this machine."""
        folder = Path(os.path.abspath(configuration)).parent
        # Not stated it is the configuration file itself, whatever that is called.
        target = settings.target if "target" in settings.model_fields_set else configuration.name
        return cls(
            host=this_host(),
            target=Path(os.path.abspath(folder / Path(target).expanduser())),
            workspace=Path(os.path.abspath(folder / Path(settings.workspace).expanduser())),
        )

    @property
    def folder(self) -> Path:
        """The target's real folder: the one that is locked, and has the snapshots."""
        return Path(os.path.realpath(self.target)).parent

    def require(self, present: Place) -> None:
        """Refuse to act for this place from another one.

        Raises:
            PromotionRefused: saying what differs.
        """
        if self.host != present.host:
            raise PromotionRefused(f"waits for host {self.host}: this is {present.host}")
        for name, here, there in (
            ("target", present.target, self.target),
            ("workspace", present.workspace, self.workspace),
        ):
            if here != there:
                raise PromotionRefused(
                    f"waits for a process whose {name} is {shown_path(there)}: here it is {shown_path(here)}"
                )


def this_host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


@contextmanager
def locked(folder: Path, wait: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
    """Keep other processes and threads from promoting into a folder; it is made if missing.

    Raises:
        PromotionRefused: if it cannot be made or opened, or stays locked.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The folder itself is locked: no file is left behind, and the lock ends with its process.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise PromotionRefused(f"{shown_path(folder)}: {error.strerror}") from None
    try:
        _acquire(descriptor, folder, time.monotonic() + wait)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, folder: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise PromotionRefused(
                    f"{shown_path(folder)}: another process is promoting there; try again"
                ) from None
            time.sleep(_PAUSE_SECONDS)
        except OSError as error:
            raise PromotionRefused(f"{shown_path(folder)}: cannot be locked: {error.strerror}") from None
        else:
            return
