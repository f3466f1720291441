"""Other settings for once: dotted keys replace values of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from pydantic import ValidationError

from prx_engine.configuration.explain import problems_in
from prx_engine.configuration.settings import Parameters, SelfEvolution
from prx_engine.errors import InvalidInput

_TABLES: Final = ("experiments", "fitness")


def parameters_with(settings: SelfEvolution, overrides: Mapping[str, Any]) -> Parameters:
    """Return the parameters of an experiment under the present settings with some values replaced.

    Args:
        settings: the present ones.
        overrides: dotted key below ``[self_evolution]`` → value; ``experiments.`` may be left out, so that
            ``min_effect_size`` and ``sequential.test`` are keys.

    Raises:
        InvalidInput: naming the key, what was found and what is allowed.
    """
    data: dict[str, Any] = {name: getattr(settings, name).model_dump() for name in _TABLES}
    data = deepcopy(data)
    for key, value in overrides.items():
        path = key.split(".")
        if path[0] not in _TABLES:
            path = ["experiments", *path]
        table = data
        for name in path[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise InvalidInput(f"{key}: no such key")
        table[path[-1]] = value
    try:
        return Parameters.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(str(problems_in(error, Parameters, data)[0])) from None
