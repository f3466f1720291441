"""An OpenFeature provider: the layers are flags, sessions are what they are evaluated for.

from openfeature import api
from prx_engine import Engine
from prx_engine.openfeature import PrxProvider

api.set_provider(PrxProvider(Engine.open()))
details = api.get_client().get_object_details("L2", {}, EvaluationContext(targeting_key="session-17"))

Needs ``pip install prx-experiments[openfeature]``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import uuid4

from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import FlagNotFoundError, GeneralError, TargetingKeyMissingError, TypeMismatchError
from openfeature.flag_evaluation import FlagResolutionDetails, FlagValueType, Reason
from openfeature.provider import AbstractProvider, Metadata
from openfeature.track import TrackingEventDetails

from prx_engine.dimensions import DIMENSIONS, LAYERS
from prx_engine.engine import Engine
from prx_engine.records import Assignment

T = TypeVar("T")

PROVIDER_NAME: Final = "prx-experiments"

_log: Final = logging.getLogger("prx_engine")
_FEEDBACK: Final = {"thumbs_up": "thumbs_up", "thumbs_down": "thumbs_down", "correction": "corrections"}
_RAW_SCORES: Final = {"response_relevance": "relevance", "memory_precision": "recall_relevance"}


class PrxProvider(AbstractProvider):
    """Evaluates a layer for a session.

    The flag key is the layer, the targeting key the session id. The value of an object flag is the
    configuration of the variant, of a string flag the variant's name, of a boolean flag whether it is the
    treatment. Without an experiment the caller's default stands, unless promoted changes are the layer's
    default now. Evaluating assigns the session.

    Args:
        engine: the deployment; it stays the caller's to close.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def get_metadata(self) -> Metadata:
        """Return the name of the provider."""
        return Metadata(name=PROVIDER_NAME)

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        """Return whether the session runs the treatment."""
        return self._details(
            flag_key, default_value, evaluation_context, lambda found: found.variant == "treatment"
        )

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """Return the name of the variant that the session runs."""
        return self._details(flag_key, default_value, evaluation_context, lambda found: found.variant or "")

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """Refuse: no layer is a number."""
        raise _no_number(flag_key)

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        """Refuse: no layer is a number."""
        raise _no_number(flag_key)

    def resolve_object_details(
        self,
        flag_key: str,
        default_value: Sequence[FlagValueType] | Mapping[str, FlagValueType],
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[Sequence[FlagValueType] | Mapping[str, FlagValueType]]:
        """Return the configuration of the variant that the session runs."""
        return self._details(flag_key, default_value, evaluation_context, lambda found: found.config)

    async def resolve_boolean_details_async(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        """Return whether the session runs the treatment, without blocking the loop."""
        return await asyncio.to_thread(
            self.resolve_boolean_details, flag_key, default_value, evaluation_context
        )

    async def resolve_string_details_async(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """Return the name of the variant, without blocking the loop."""
        return await asyncio.to_thread(
            self.resolve_string_details, flag_key, default_value, evaluation_context
        )

    async def resolve_object_details_async(
        self,
        flag_key: str,
        default_value: Sequence[FlagValueType] | Mapping[str, FlagValueType],
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[Sequence[FlagValueType] | Mapping[str, FlagValueType]]:
        """Return the configuration of the variant, without blocking the loop."""
        return await asyncio.to_thread(
            self.resolve_object_details, flag_key, default_value, evaluation_context
        )

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Record feedback or a score of a session; events of other names are somebody else's.

        ``thumbs_up``, ``thumbs_down`` and ``correction`` count one; an event named after a dimension has
        the score as its value. As tracking must, this never raises: what is wrong is logged.
        """
        value = None if tracking_event_details is None else tracking_event_details.value
        fields = _tracked(tracking_event_name, value)
        if not fields:
            return
        try:
            session = _session(evaluation_context)
            # Each event is a source of its own: two thumbs are two.
            self._engine.record(session, **fields, source=f"openfeature:{uuid4()}")
        except Exception as error:
            _log.warning("tracking %r: %s", tracking_event_name, error)

    def _details(
        self,
        flag_key: str,
        default: T,
        context: EvaluationContext | None,
        value_of: Callable[[Assignment], T | dict[str, Any]],
    ) -> FlagResolutionDetails[Any]:
        if flag_key not in LAYERS:
            raise FlagNotFoundError(f"no layer {flag_key!r}; the layers are {', '.join(LAYERS)}")
        assignment = self._engine.assign(_session(context), on_error="default")[flag_key]
        if assignment.reason == "error":
            raise GeneralError("the database of the experiments cannot be used, or the session id is none")
        if assignment.variant is None:
            promoted = isinstance(default, Mapping) and assignment.config
            return FlagResolutionDetails(promoted or default, reason=Reason.DEFAULT)
        experiment = assignment.experiment_id or ""
        return FlagResolutionDetails(
            value_of(assignment),
            reason=Reason.SPLIT,
            variant=assignment.variant,
            flag_metadata={
                "variant": assignment.variant,
                "experiment_id": experiment,
                "layer": flag_key,
                "version": experiment,
            },
        )


def _session(context: EvaluationContext | None) -> str:
    if context is None or not context.targeting_key:
        raise TargetingKeyMissingError("the targeting key has to be the session id")
    return context.targeting_key


def _tracked(name: str, value: float | None) -> dict[str, Any]:
    if name in _FEEDBACK:
        return {_FEEDBACK[name]: 1}
    if name not in DIMENSIONS or value is None:
        return {}
    return {_RAW_SCORES[name]: value} if name in _RAW_SCORES else {"scores": {name: value}}


def _no_number(flag_key: str) -> TypeMismatchError:
    return TypeMismatchError(f"{flag_key}: a layer is an object, the name of a variant, or a truth value")
