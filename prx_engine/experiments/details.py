"""Everything about one experiment: for a page that explains where it stands."""

from __future__ import annotations

import math

from prx_engine.clock import Clock
from prx_engine.experiments.blocks import attrition, sample_ratio
from prx_engine.experiments.catalog import Catalog, Row, counted_dimensions
from prx_engine.experiments.comparison import compare_dimensions
from prx_engine.experiments.evidence import StoredEvidence
from prx_engine.experiments.forecast import forecast
from prx_engine.experiments.schedule import whole_hours
from prx_engine.promotion import literal
from prx_engine.records import Change, ExperimentDetails
from prx_engine.store import Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.totals import arm_totals, arms_between


def experiment_details(store: Store, catalog: Catalog, clock: Clock, experiment_id: str) -> ExperimentDetails:
    """Return an experiment with its looks, dimensions, checks of the split, and events.

    Raises:
        NotFound, Ambiguous: if the id fits no experiment, or several.
    """
    row = catalog.row(experiment_id)
    number = row["number"]
    parameters = load_parameters(row["parameters"])
    end = row["converged_at"] or clock.now()
    totals = arm_totals(store, [number])[number]
    ratio = sample_ratio(totals, parameters.experiments.traffic_split, latched=row["sample_ratio_mismatch"])
    hours_old_enough = whole_hours(row["created_at"], end) - parameters.fitness.evaluation_window_hours
    return ExperimentDetails(
        experiment=catalog.records([row])[0],
        dimensions=compare_dimensions(
            totals, counted_dimensions(row, totals), StoredEvidence(store, number).clusters(math.inf)
        ),
        looks=catalog.looks(number, "efficacy"),
        harm_looks=catalog.looks(number, "harm"),
        watch_looks=catalog.looks(number, "watch"),
        changes=_changes(row),
        sample_ratio=ratio,
        attrition=attrition(arms_between(store, number, 0, max(hours_old_enough, 0))),
        forecast=forecast(store, catalog, row, clock.now(), mismatch=ratio.mismatch),
        events=catalog.events(row),
    )


def _changes(row: Row) -> list[Change]:
    """Return what the treatment sets, beside what was there at creation."""
    base = row["promotion_base"] or {"config": {}, "files": {}}
    keys = [
        Change(kind="key", name=name, before=base["config"].get(name), after=literal(value))
        for name, value in row["treatment"]["config"].items()
    ]
    files = [
        Change(kind="file", name=name, before=base["files"].get(name), after=text)
        for name, text in row["treatment"]["files"].items()
    ]
    return keys + files
