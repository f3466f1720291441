"""Reading what is pinned to an experiment."""

from __future__ import annotations

from functools import lru_cache

from pydantic import ValidationError

from prx_engine.configuration import Parameters
from prx_engine.store.schema import damaged


@lru_cache(maxsize=1024)
def load_parameters(text: str) -> Parameters:
    """Read pinned parameters; they never change, so each text is parsed once.

    Raises:
        StoreError: if the text is damaged.
    """
    try:
        return Parameters.model_validate_json(text)
    except ValidationError:
        raise damaged("setting", text) from None
