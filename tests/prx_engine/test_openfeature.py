"""The provider, under the official SDK's client."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagEvaluationDetails, FlagEvaluationOptions, Reason
from openfeature.hook import Hook, HookContext, HookHints
from openfeature.telemetry import create_evaluation_event
from openfeature.track import TrackingEventDetails

from prx_engine import Engine
from prx_engine.openfeature import PROVIDER_NAME, PrxProvider
from prx_engine.records import Experiment
from prx_engine.telemetry import otlp
from tests.support.clock import ManualClock
from tests.support.telemetry import dumped, event, logs, metrics, variants

TREATMENT = {"description": "shorter", "config": {"prompt.style": "short", "prompt.limits": [1, 2]}}


@pytest.fixture
def client(engine: Engine) -> Iterator[OpenFeatureClient]:
    api.set_provider(PrxProvider(engine))
    yield api.get_client()
    api.clear_providers()
    api.clear_hooks()


@pytest.fixture
def experiment(engine: Engine, clock: ManualClock) -> Experiment:
    created = engine.create_experiment("L2", TREATMENT, hypothesis="better", traffic_split=1.0)
    clock.advance(hours=1)
    return created


def of(session: str) -> EvaluationContext:
    return EvaluationContext(targeting_key=session)


class Recording(Hook):
    """Keeps what passes by, as telemetry hooks do."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.events: list[Any] = []

    def before(self, hook_context: HookContext, hints: HookHints) -> None:
        self.stages.append("before")

    def after(self, hook_context: HookContext, details: FlagEvaluationDetails[Any], hints: HookHints) -> None:
        self.stages.append("after")

    def error(self, hook_context: HookContext, exception: Exception, hints: HookHints) -> None:
        self.stages.append("error")

    def finally_after(
        self, hook_context: HookContext, details: FlagEvaluationDetails[Any], hints: HookHints
    ) -> None:
        self.stages.append("finally")
        self.events.append(create_evaluation_event(hook_context, details))


def test_the_value_is_the_configuration_of_the_variant(
    client: OpenFeatureClient, experiment: Experiment, engine: Engine
) -> None:
    details = client.get_object_details("L2", {}, of("s-1"))
    assert details.value == TREATMENT["config"]
    assert (details.reason, details.variant) == (Reason.SPLIT, "treatment")
    assert details.flag_metadata["experiment_id"] == experiment.experiment_id
    assert details.flag_metadata["variant"] == "treatment"
    assert client.get_string_value("L2", "", of("s-1")) == "treatment"
    assert client.get_boolean_value("L2", False, of("s-1")) is True
    assert variants(engine) == {("s-1", "L2"): "treatment"}


def test_the_split_is_that_of_the_engine(
    client: OpenFeatureClient, engine: Engine, clock: ManualClock
) -> None:
    engine.create_experiment("L1", "new memory", hypothesis="better")
    clock.advance(hours=1)
    for number in range(40):
        variant = client.get_string_value("L1", "", of(f"s-{number}"))
        assert variant == engine.assign(f"s-{number}")["L1"].variant
    assert len(set(variants(engine).values())) == 2


async def test_asynchronous_evaluation_is_the_same(client: OpenFeatureClient, experiment: Experiment) -> None:
    assert await client.get_object_value_async("L2", {}, of("s-1")) == TREATMENT["config"]
    assert await client.get_string_value_async("L2", "", of("s-1")) == "treatment"
    assert await client.get_boolean_value_async("L2", False, of("s-1")) is True


def test_without_an_experiment_the_default_stands(client: OpenFeatureClient) -> None:
    details = client.get_object_details("L3", {"own": 1}, of("s-1"))
    assert (details.value, details.reason, details.variant) == ({"own": 1}, Reason.DEFAULT, None)
    assert client.get_string_value("L3", "own", of("s-1")) == "own"


@pytest.mark.parametrize(
    ("flag", "context", "code"),
    [
        ("L9", of("s-1"), ErrorCode.FLAG_NOT_FOUND),
        ("L2", EvaluationContext(), ErrorCode.TARGETING_KEY_MISSING),
    ],
)
def test_what_cannot_be_evaluated_gives_the_default_and_says_why(
    flag: str, context: EvaluationContext, code: ErrorCode, client: OpenFeatureClient
) -> None:
    details = client.get_object_details(flag, {"own": 1}, context)
    assert (details.value, details.reason, details.error_code) == ({"own": 1}, Reason.ERROR, code)


def test_a_layer_is_no_number(client: OpenFeatureClient) -> None:
    assert client.get_integer_details("L2", 7, of("s-1")).error_code == ErrorCode.TYPE_MISMATCH
    assert client.get_float_details("L2", 7.0, of("s-1")).error_code == ErrorCode.TYPE_MISMATCH


def test_a_database_that_is_away_gives_the_default(
    client: OpenFeatureClient, experiment: Experiment, engine: Engine, tmp_path: Any
) -> None:
    engine.close()
    for file in tmp_path.glob("prx.db*"):
        file.unlink()
    details = client.get_object_details("L2", {"own": 1}, of("s-1"))
    assert (details.value, details.reason) == ({"own": 1}, Reason.ERROR)
    client.track("thumbs_up", of("s-1"))


def test_hooks_see_the_evaluation(client: OpenFeatureClient, experiment: Experiment) -> None:
    hook = Recording()
    client.get_object_details("L2", {}, of("s-1"), FlagEvaluationOptions(hooks=[hook]))
    client.get_object_details("L9", {}, of("s-1"), FlagEvaluationOptions(hooks=[hook]))
    assert hook.stages == ["before", "after", "finally", "before", "error", "finally"]


def test_the_event_of_an_evaluation_comes_back_as_the_variant(
    client: OpenFeatureClient, experiment: Experiment, engine: Engine, clock: ManualClock
) -> None:
    hook = Recording()
    client.get_object_details("L2", {}, of("s-1"), FlagEvaluationOptions(hooks=[hook]))
    (told,) = hook.events
    written = {str(key).replace(".", "__"): value for key, value in told.attributes.items()}
    at = int(clock.now().timestamp()) * 10**9 - 1_748_000_000_000_000_000
    report = engine.import_lines(dumped([logs(event(told.name, at, "ab" * 16, **written))]), format="otlp")
    assert (report.recorded, report.refused, report.waiting) == (1, 0, 0)
    assert variants(engine) == {("s-1", "L2"): "treatment"}


def test_tracking_records_feedback_and_scores(client: OpenFeatureClient, engine: Engine) -> None:
    for name in ("thumbs_up", "thumbs_up", "thumbs_down", "correction", "page_view"):
        client.track(name, of("s-1"))
    client.track("response_relevance", of("s-1"), TrackingEventDetails(value=0.75))
    client.track("memory_precision", of("s-1"), TrackingEventDetails(value=0.5))
    client.track("token_efficiency", of("s-1"), TrackingEventDetails(value=0.25))
    client.track("response_relevance", of("s-1"))  # no value
    assert metrics(engine) == {
        "s-1": {
            "thumbs_up": 2,
            "thumbs_down": 1,
            "corrections": 1,
            "relevance": [0.75],
            "recall_relevance": [0.5],
            "scores": {"token_efficiency": [0.25]},
        }
    }


def test_tracking_never_raises(client: OpenFeatureClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        client.track("thumbs_up")
        client.track("response_relevance", of("s-1"), TrackingEventDetails(value=17))
    assert len(caplog.records) == 2


def test_telemetry_knows_the_name_of_the_provider() -> None:
    assert otlp.PROVIDER_NAME == PROVIDER_NAME
