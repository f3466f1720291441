"""Attributes that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801
    """Decorates a method whose result becomes the attribute of its name.

    There is no lock, unlike in ``functools.cached_property`` before Python 3.12: a child of a fork would
    wait for ever for one that another thread of its parent held. Two threads may both make a value.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        value: T = self._make(instance)
        instance.__dict__[self._make.__name__] = value
        return value
