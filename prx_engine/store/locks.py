"""Locks of PostgreSQL beside those of rows, which are not given in the order of asking."""

from __future__ import annotations

from enum import IntEnum


class Lock(IntEnum):
    """A lock that is kept until the transaction ends.

    Nobody may wait for one who waits for him: a transaction takes its locks in the order in which they are
    listed here, after the row of an import's position and before all other rows that others may change.
    """

    SCHEMA = 0x707278
    NAMING = 0x707279
    EXPERIMENTS = 0x70727A
