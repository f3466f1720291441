"""The configuration: settings with their defaults and ranges, and the file that states them."""

from __future__ import annotations

from prx_engine.configuration.explain import InvalidConfiguration, Problem, allowed_values, problems_in
from prx_engine.configuration.file import ConfigurationFile, config_path
from prx_engine.configuration.settings import (
    AutoConvergeSettings,
    EvaluationSettings,
    ExperimentSettings,
    FitnessSettings,
    Normalization,
    Parameters,
    PromotionSettings,
    SelfEvolution,
    SequentialSettings,
    TelemetrySettings,
    TelemetrySource,
    Thresholds,
    Weights,
)
from prx_engine.configuration.view import SettingLine, describe

__all__ = [
    "AutoConvergeSettings",
    "ConfigurationFile",
    "EvaluationSettings",
    "ExperimentSettings",
    "FitnessSettings",
    "InvalidConfiguration",
    "Normalization",
    "Parameters",
    "Problem",
    "PromotionSettings",
    "SelfEvolution",
    "SequentialSettings",
    "SettingLine",
    "TelemetrySettings",
    "TelemetrySource",
    "Thresholds",
    "Weights",
    "allowed_values",
    "config_path",
    "describe",
    "problems_in",
]
