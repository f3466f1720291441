"""Errors that people meet: one line saying what was wrong, where, and what to do."""

from __future__ import annotations


class PrxError(Exception):
    """Base of every error that the engine raises on purpose; its text is one line for a person."""


class ConfigurationError(PrxError):
    """The configuration file has a value that is not allowed or a key that does not exist."""


class InvalidInput(PrxError, ValueError):
    """A value given by the caller is out of range, malformed or contradicts what is recorded."""


class NotFound(PrxError, LookupError):
    """Nothing has the id, or the id prefix or suffix, that was given."""


class Ambiguous(PrxError, LookupError):
    """A shortened id fits more than one experiment."""


class WrongState(PrxError):
    """The transition is not possible from the experiment's present state."""


class LayerOccupied(PrxError):
    """The layer already has an active experiment."""


class PromotionRefused(PrxError):
    """A change cannot be applied, or taken back, here and now; nothing was changed."""


class PromotionConflict(PromotionRefused):
    """What a change would replace is not what it was; nothing was changed.

    Args:
        message: one line for a person.
        names: the keys and files that are not what they were.
    """

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


class StoreError(PrxError):
    """The database cannot be opened, read or written."""


class StoreBusy(StoreError):
    """The database stayed locked for longer than the busy timeout."""


class KeyTaken(StoreError):
    """A row with the same unique key exists already."""


class NewerSchema(StoreError):
    """The database was written by a newer release."""
