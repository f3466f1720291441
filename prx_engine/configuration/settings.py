"""The settings of the experiments: every key of our tables with its default and its range.

The models below are the one place where names, defaults and ranges are written down; the error messages
and the effective view derive their texts from them. All models are immutable. Types are strict: a boolean
is not a number and a text is not a boolean, but a whole number may stand where a fraction is expected.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from prx_engine.dimensions import DIMENSIONS, Dimension

WEIGHT_SUM_TOLERANCE: Final = 1e-9
"""How far the sum of the six weights may be from 1: the rounding of a sum of decimal fractions."""

MAX_HOURS: Final = 87_600
"""Ten years: far more than anybody waits for, and no date that is computed with it leaves the calendar."""

MAX_COUNT: Final = 10**9
"""Sessions: more than any deployment has, and every sum of their scores is exact."""

_NO_CONTROL_CHARACTERS: Final = r"^\P{Cc}*$"

CROSS_FIELD: Final = "cross_field"
"""Type of the validation errors between several keys.

Their context names the key to blame (`key`, relative to the model, empty for the model itself), what was
found (`found`) and what is allowed (`allowed`), both as text.
"""


EVALUATED: Final[tuple[Dimension, ...]] = ("response_relevance", "memory_precision", "user_satisfaction")
"""Dimensions that evaluations in telemetry can be scores of."""


class Rule(NamedTuple):
    """A condition beside type and range, in words that complete "allowed: a whole number, …"."""

    text: str


ASCENDING: Final = Rule("the first below the second")
NOT_BELOW_THE_OTHERS: Final = Rule("not below default_duration_hours or auto_converge.check_interval_hours")
SUM_OF_ONE: Final = Rule("the six weights together 1.0")


def _ascending(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] >= pair[1]:
        raise ValueError(ASCENDING.text)
    return pair


Flag = Annotated[bool, Strict()]
Hours = Annotated[int, Strict(), Field(ge=1, le=MAX_HOURS)]
Count = Annotated[int, Strict(), Field(ge=2, le=MAX_COUNT)]
Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[Share, SUM_OF_ONE]
Positive = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Strict(), Field(min_length=1, pattern=_NO_CONTROL_CHARACTERS)]
Names = tuple[Text, ...]
Falling = Annotated[tuple[Positive, Positive], AfterValidator(_ascending), ASCENDING]
"""Bounds of a score that falls: 1.0 at or below the first, 0.0 at or above the second."""


class Settings(BaseModel):
    """Base of all tables: immutable, and a key that does not exist is an error."""

    # Deferred: only the outermost model that is really validated gets compiled, not every table by itself.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AutoConvergeSettings(Settings):
    """When experiments are checked and whether a check may end one."""

    enabled: Flag = True
    """Whether a check may decide alone; otherwise it keeps its conclusion as a verdict for an operator."""

    check_interval_hours: Hours = 24
    """Hours between two scheduled looks, counted from the creation of the experiment."""

    max_duration_hours: Annotated[Hours, NOT_BELOW_THE_OTHERS] = 720
    """Hours after which an experiment ends whatever it has found, extensions included."""

    @model_validator(mode="after")
    def _interval_fits(self) -> Self:
        if self.check_interval_hours > self.max_duration_hours:
            stated = "max_duration_hours" in self.model_fields_set
            raise _too_long(
                "check_interval_hours", self.check_interval_hours,
                "max_duration_hours", self.max_duration_hours, blame_longest=stated,
            )  # fmt: skip
        return self


class SequentialSettings(Settings):
    """How the error probability is spread over the looks."""

    spending: Literal["obrien_fleming", "pocock"] = "obrien_fleming"
    """Shape of the spending up to the planned end: `obrien_fleming` keeps most for late looks."""

    planned_share: Share = 0.8
    """Share of alpha that may be spent by the planned end; the rest is for extensions."""

    test: Literal["auto", "welch", "robust"] = "auto"
    """Test that decides; `auto` chooses between the two at the first look."""


class ExperimentSettings(Settings):
    """How experiments run and what they need to be decided."""

    enabled: Flag = True
    """Off: no new experiments, no checks, and every session gets the defaults."""

    default_duration_hours: Hours = 168
    """Planned duration of an experiment, and length of an extension, in hours."""

    min_sample_size: Count = 100
    """Scored sessions that each variant needs before a decision."""

    traffic_split: Share = 0.5
    """Share of the sessions that get the treatment; at 0 or 1 nothing can be compared."""

    confidence_level: Annotated[float, Strict(), Field(ge=0.5, le=0.9999, allow_inf_nan=False)] = 0.95
    """One minus the two-sided error probability over the whole life of an experiment."""

    min_effect_size: Share = 0.02
    """Smallest lift worth a promotion, relative to the fitness of the control."""

    auto_converge: AutoConvergeSettings = AutoConvergeSettings.model_construct()
    sequential: SequentialSettings = SequentialSettings.model_construct()

    @model_validator(mode="after")
    def _duration_fits(self) -> Self:
        longest = self.auto_converge.max_duration_hours
        if self.default_duration_hours > longest:
            stated = "max_duration_hours" in self.auto_converge.model_fields_set
            raise _too_long(
                "default_duration_hours", self.default_duration_hours,
                "auto_converge.max_duration_hours", longest, blame_longest=stated,
            )  # fmt: skip
        return self


class Weights(Settings):
    """Weight of each dimension in the fitness; together 1."""

    response_relevance: Weight = 0.30
    task_completion: Weight = 0.25
    response_latency: Weight = 0.15
    token_efficiency: Weight = 0.10
    memory_precision: Weight = 0.10
    user_satisfaction: Weight = 0.10

    def of(self, dimension: Dimension) -> float:
        """Weight of one dimension, 0 to 1."""
        return float(getattr(self, dimension))

    def as_tuple(self) -> tuple[float, ...]:
        """The six weights in the order of DIMENSIONS."""
        return tuple(map(self.of, DIMENSIONS))

    @model_validator(mode="after")
    def _sum_is_one(self) -> Self:
        total = math.fsum(self.as_tuple())
        if abs(total - 1) > WEIGHT_SUM_TOLERANCE:
            raise _cross_field(
                "", found=f"a sum of {total:.12g}", allowed=f"{SUM_OF_ONE.text}; set them as one table"
            )
        return self


class Thresholds(Settings):
    """Fitness that is too low, and losses of fitness that are too large."""

    minimum_acceptable: Share = 0.50
    """Fitness of the deployment below which there is an alert."""

    regression_delta: Share = 0.05
    """Relative loss of fitness at which a treatment counts as harmful."""


class Normalization(Settings):
    """How raw measurements become scores from 0 to 1."""

    task_completion: Literal["tool_calls", "tasks"] = "tool_calls"
    """What is counted as completed: the tool calls of a session or its tasks."""

    latency_p50_ms: Falling = (500.0, 10_000.0)
    """Median time to the first token, in milliseconds."""

    latency_p95_ms: Falling = (1_000.0, 30_000.0)
    """95th percentile of the time to the first token, in milliseconds."""

    tokens_per_task: Falling = (1_000.0, 50_000.0)
    """Tokens spent for each successful task."""


class FitnessSettings(Settings):
    """How sessions become a fitness."""

    evaluation_window_hours: Hours = 24
    """Hours over which the fitness of the deployment is taken."""

    min_sessions_for_score: Count = 10
    """Sessions needed for a fitness to be valid."""

    weights: Weights = Weights.model_construct()
    thresholds: Thresholds = Thresholds.model_construct()
    normalization: Normalization = Normalization.model_construct()


class PromotionSettings(Settings):
    """Where a promoted change is written."""

    target: Text = "config.toml"
    """TOML file that promoted keys are written to, relative to the configuration folder; if it is not stated,
    the configuration file itself, whatever its name."""

    workspace: Text = "workspace"
    """Folder that promoted files are written to, relative to the configuration folder."""


class TelemetrySource(Settings):
    """One place that records of sessions are read from."""

    path: Text
    """File, folder or glob of files, relative to the configuration folder."""

    format: Literal["auto", "native", "otlp", "codex", "claude-code", "langfuse", "prx"] = "auto"
    """Name of the format; `auto` recognises it from the content."""


class EvaluationSettings(Settings):
    """Names of evaluations that agents' telemetry has scores for; case, `-`, `_` and blanks are all alike."""

    response_relevance: Names = ("relevance", "answer_relevance", "response_relevance")
    """Evaluations that judge whether a response is relevant."""

    memory_precision: Names = ("memory_relevance", "context_relevance", "memory_precision")
    """Evaluations that judge whether recalled memories are relevant."""

    user_satisfaction: Names = ("user_satisfaction", "user_feedback")
    """Evaluations by users; 0 and 1 are thumbs, anything between is a score."""

    @model_validator(mode="after")
    def _one_dimension_a_name(self) -> Self:
        seen: set[str] = set()
        for dimension in type(self).model_fields:
            for name in map(_canonical, getattr(self, dimension)):
                if name in seen:
                    raise _cross_field(dimension, f'"{name}" again', "each name for one dimension")
                seen.add(name)
        return self

    def dimension_of(self, name: str) -> Dimension | None:
        """Dimension that an evaluation of this name is a score of, if any."""
        wanted = _canonical(name)
        for dimension in EVALUATED:
            if wanted in map(_canonical, getattr(self, dimension)):
                return dimension
        return None


class TelemetrySettings(Settings):
    """Where records of sessions come from, and what they mean."""

    sources: tuple[TelemetrySource, ...] = ()
    """What `watch` and the dashboard follow."""

    transcript_latency: Flag = False
    """Whether the time from prompt to answer stands in where a transcript has no time to first token."""

    evaluations: EvaluationSettings = EvaluationSettings.model_construct()


class SelfEvolution(Settings):
    """Everything of ours in `[self_evolution]`."""

    database: Text | None = None
    """Path or URL of the database; None leaves it to the caller's default."""

    experiments: ExperimentSettings = ExperimentSettings.model_construct()
    fitness: FitnessSettings = FitnessSettings.model_construct()
    promotion: PromotionSettings = PromotionSettings.model_construct()
    telemetry: TelemetrySettings = TelemetrySettings.model_construct()


class Parameters(Settings):
    """The settings pinned to an experiment at its creation; the same after a trip through JSON."""

    experiments: ExperimentSettings = ExperimentSettings.model_construct()
    fitness: FitnessSettings = FitnessSettings.model_construct()


def _canonical(name: str) -> str:
    """Returns the form in which two spellings of a name are equal."""
    return re.sub(r"[-_ ]+", "_", name.strip().casefold())


def _too_long(
    shorter: str, shorter_hours: int, longest: str, longest_hours: int, *, blame_longest: bool
) -> PydanticCustomError:
    """Blames the maximum where somebody stated it, else the key that outgrew the default maximum."""
    if blame_longest:
        return _cross_field(longest, str(longest_hours), f"at least {shorter}, which is {shorter_hours}")
    return _cross_field(shorter, str(shorter_hours), f"at most {longest}, which is {longest_hours}")


def _cross_field(key: str, found: str, allowed: str) -> PydanticCustomError:
    return PydanticCustomError(
        CROSS_FIELD,
        "{key}: found {found}; allowed: {allowed}",
        {"key": key, "found": found, "allowed": allowed},
    )
