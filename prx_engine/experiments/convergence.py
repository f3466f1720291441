"""Checks: claim a due experiment, analyse it on one snapshot, and write what follows if it still stands."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from prx_engine.clock import HOUR, Clock
from prx_engine.configuration import ExperimentSettings
from prx_engine.errors import PrxError
from prx_engine.experiments.analysis import Analysis, analyse
from prx_engine.experiments.blocks import attrition, blocks, sample_ratio
from prx_engine.experiments.catalog import (
    Catalog,
    Row,
    arm_scores,
    dump_look,
    next_check_at,
    schedule_of,
)
from prx_engine.experiments.decision import Decision
from prx_engine.experiments.evidence import StoredEvidence, stored_subject
from prx_engine.experiments.lifecycle import ENGINE, Lifecycle
from prx_engine.experiments.promotion import Promotion
from prx_engine.experiments.schedule import whole_hours
from prx_engine.experiments.watch import Watch
from prx_engine.records import (
    ACTIVE,
    Attrition,
    CheckOutcome,
    CheckResult,
    Conclusion,
    Look,
    Preview,
    SampleRatio,
)
from prx_engine.store import Store
from prx_engine.store.pinned import load_parameters
from prx_engine.store.schema import Experiments, Looks
from prx_engine.store.totals import arm_totals, arms_between

CLAIM_LASTS: Final = timedelta(minutes=5)
"""A claim this old was left by a process that died."""

_END: Final = 2**31 - 1


class Convergence:
    """Runs the checks of all experiments of a deployment.

    Args:
        store: the database.
        catalog: finds experiments.
        lifecycle: writes transitions.
        promotion: applies what has won.
        clock: the engine's clock.
        settings: gives the present experiment settings; only their ``enabled`` switches are read.
        promotes: whether to apply what has won, and to watch it.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        lifecycle: Lifecycle,
        promotion: Promotion,
        clock: Clock,
        settings: Callable[[], ExperimentSettings],
        *,
        promotes: bool = True,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._lifecycle = lifecycle
        self._promotion = promotion
        self._clock = clock
        self._settings = settings
        self._promotes = promotes
        self._watch = Watch(store, catalog, lifecycle, promotion, clock)

    def check_all(self) -> list[CheckResult]:
        """Check every active experiment; those that are not due are only looked over for a mismatch.

        Of promoted changes those are in the result that were due.

        Raises:
            PrxError: what failed first; all that can be checked is checked before.
        """
        results: list[CheckResult] = []
        failures: list[PrxError] = []

        def attempt(work: Callable[[], list[CheckResult]]) -> None:
            try:
                results.extend(work())
            except PrxError as error:
                failures.append(error)

        if self._promotes:
            self._promotion.apply_pending(ENGINE)
        for row in reversed(self._catalog.rows(sorted(ACTIVE))):
            attempt(lambda row=row: [self.check(row["experiment_id"])])  # type: ignore[misc]
        if self._promotes and self._settings().enabled:
            attempt(self._watch.check_all)
        if failures:
            raise failures[0]
        return results

    def check(self, experiment_id: str) -> CheckResult:
        """Check one experiment.

        Raises:
            NotFound, Ambiguous: if the id fits no experiment, or several.
        """
        row = self._catalog.row(experiment_id)
        if not self._settings().enabled:
            return _result(row, "not_due", "experiments are switched off in the configuration")
        if row["status"] not in ACTIVE:
            watched = self._watch.check(row) if self._promotes else None
            return watched or _result(row, "not_due", f"it is {row['status']}")
        self._latch_mismatch(row)
        if row["held"]:
            return _result(row, "held", f"verdict {row['verdict']} waits for an operator")
        due = schedule_of(row).until(self._hours_now(row))
        if not due:
            return _result(row, "not_due", "no scheduled time has come")
        owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        if not self._claim(row, owner):
            return _result(row, "busy", "another process is checking it")
        try:
            analysis, _, losses = self._store.read(lambda: self._analysed(row, due[-1]))
            result = self._written(row, owner, analysis, losses)
        finally:
            self._release(row, owner)
        if result.outcome == "concluded" and self._promotes:
            self._promotion.apply(row["experiment_id"], result.reason, ENGINE)
        return result

    def preview(self, experiment_id: str) -> Preview:
        """Analyse the data of this moment as a look would; nothing is written.

        Raises:
            NotFound, Ambiguous: if the id fits no experiment, or several.
            WrongState: if it has ended.
        """
        row = self._catalog.row(experiment_id)
        self._lifecycle.require_active(row, "preview")
        now = self._clock.now()
        # Never a whole number, so that no scheduled hour is cut off from the data of this moment.
        hours = max((now - row["created_at"]) / HOUR, 0.0) + 1e-9

        analysis, ratio, losses = self._store.read(lambda: self._analysed(row, hours))
        look = analysis.look
        return Preview(
            experiment_id=row["experiment_id"],
            at=now,
            missing=list(analysis.missing),
            comparison=analysis.comparison,
            alpha_threshold=look.alpha_threshold if look else None,
            significant=look is not None and look.significant,
            conclusion=analysis.decision.conclusion,
            blocked_by=blocks(mismatch=ratio.mismatch, suspicious_attrition=losses.suspicious),
            reason=analysis.decision.reason,
        )

    def losses(self, row: Row) -> tuple[SampleRatio, Attrition]:
        """Return how an experiment's arms compare in sessions assigned, and in sessions lost."""
        parameters = load_parameters(row["parameters"])
        totals = arm_totals(self._store, [row["number"]])[row["number"]]
        old_enough = max(self._hours_now(row) - parameters.fitness.evaluation_window_hours, 0)
        return (
            sample_ratio(totals, parameters.experiments.traffic_split, latched=row["sample_ratio_mismatch"]),
            attrition(arms_between(self._store, row["number"], 0, old_enough)),
        )

    def _analysed(self, row: Row, hours: float) -> tuple[Analysis, SampleRatio, Attrition]:
        ratio, losses = self.losses(row)
        blocked = bool(blocks(mismatch=ratio.mismatch, suspicious_attrition=losses.suspicious))
        evidence = StoredEvidence(self._store, row["number"])
        return analyse(stored_subject(self._catalog, row, blocked=blocked), evidence, hours), ratio, losses

    def _written(self, row: Row, owner: str, analysis: Analysis, losses: Attrition) -> CheckResult:
        """Write what a check found, unless the experiment has changed meanwhile."""

        def work() -> CheckResult:
            present = self._catalog.locked_row(row["experiment_id"])
            if present["claim_owner"] != owner or present["revision"] != row["revision"]:
                return _result(present, "busy", "it was changed while it was being checked")
            return self._write(present, analysis, losses)

        return self._store.write(work)

    def _write(self, row: Row, analysis: Analysis, losses: Attrition) -> CheckResult:
        decision = analysis.decision
        hours = int(analysis.hours)
        outcome = self._outcome(analysis)
        self._write_looks(row, analysis, outcome)
        pinned = analysis.pinned
        self._store.execute(
            Experiments.update(
                closed_hours=hours,
                pinned_dimensions=list(pinned.dimensions) if pinned else None,
                pinned_test=pinned.test if pinned else None,
            ).where(Experiments.number == row["number"])
        )
        row["closed_hours"] = hours
        if losses.suspicious != row["attrition"]:
            reason = f"p = {losses.p_value:.2g} for equal shares of scored sessions"
            self._lifecycle.change_in_transaction(
                row, {"attrition": losses.suspicious}, "attrition", reason, ENGINE
            )
        planned_end_reached = hours >= schedule_of(row).planned_end
        verdict: Conclusion | None = row["verdict"]
        if outcome == "verdict":
            verdict = decision.conclusion
        elif analysis.look is not None:
            # Only a look can take back what the last one found.
            verdict = "treatment_wins" if decision.blocked_win else None
        changes: dict[str, Any] = {"verdict": verdict, "held": outcome == "verdict"}
        if analysis.look is not None or planned_end_reached or outcome == "verdict":
            changes["status"] = "evaluating"
        if any(row[name] != value for name, value in changes.items()):
            action = "verdict" if verdict != row["verdict"] and verdict else "evaluating"
            self._lifecycle.change_in_transaction(row, changes, action, decision.reason, ENGINE)
        if outcome == "concluded":
            self._conclude(row, analysis)
        elif outcome == "extended" and decision.planned_end is not None:
            self._extend(row, decision, decision.planned_end, verdict)
        return _result(row, outcome, decision.reason, analysis)

    def _outcome(self, analysis: Analysis) -> CheckOutcome:
        if analysis.decision.action == "conclude":
            return "concluded" if self._settings().auto_converge.enabled else "verdict"
        if analysis.decision.action == "extend":
            return "extended"
        return "look" if analysis.look else "waiting"

    def _conclude(self, row: Row, analysis: Analysis) -> None:
        conclusion = analysis.decision.conclusion
        assert conclusion is not None
        end = row["created_at"] + analysis.hours * HOUR
        fitness = arm_scores(row, analysis.arms, analysis.counted, end)
        self._lifecycle.conclude_in_transaction(
            row, conclusion, analysis.decision.winner, fitness, analysis.decision.reason, ENGINE
        )

    def _extend(self, row: Row, decision: Decision, planned_end: int, verdict: Conclusion | None) -> None:
        parameters = load_parameters(row["parameters"])
        added = planned_end - schedule_of(row).planned_end
        extensions = -(-added // parameters.experiments.default_duration_hours)
        self._lifecycle.extend_in_transaction(row, planned_end, extensions, decision.reason, ENGINE, verdict)

    def _write_looks(self, row: Row, analysis: Analysis, outcome: CheckOutcome) -> None:
        for look in (*analysis.looks, *analysis.harm_looks):
            stored = _with_outcome(look, analysis, outcome) if look.held else look
            self._store.execute(
                Looks.insert(
                    experiment=row["number"],
                    series=look.series,
                    k=look.k,
                    hours=whole_hours(row["created_at"], look.at),
                    look=dump_look(stored),
                )
            )

    def _latch_mismatch(self, row: Row) -> None:
        """Keep a sample ratio mismatch once it has been seen: later sessions must not hide it."""
        if row["sample_ratio_mismatch"]:
            return
        ratio, _ = self.losses(row)
        if not ratio.mismatch:
            return

        def work() -> None:
            present = self._catalog.locked_row(row["experiment_id"])
            if present["status"] in ACTIVE and not present["sample_ratio_mismatch"]:
                counts = f"{ratio.control} + {ratio.treatment} sessions assigned"
                reason = f"{counts}, Bayes factor {ratio.bayes_factor:.3g}"
                self._lifecycle.change_in_transaction(
                    present, {"sample_ratio_mismatch": True}, "sample_ratio_mismatch", reason, ENGINE
                )

        self._store.write(work)
        row.update(self._catalog.row(row["experiment_id"]))

    def _hours_now(self, row: Row) -> int:
        return max(whole_hours(row["created_at"], self._clock.now()), 0)

    def _claim(self, row: Row, owner: str) -> bool:
        now = self._clock.now()

        def work() -> bool:
            present = self._catalog.locked_row(row["experiment_id"])
            claimed_at = present["claimed_at"]
            if claimed_at is not None and now - CLAIM_LASTS < claimed_at <= now + CLAIM_LASTS:
                return False
            if present["status"] not in ACTIVE:
                return False
            if present["revision"] != row["revision"] or present["closed_hours"] != row["closed_hours"]:
                return False
            self._store.execute(
                Experiments.update(claim_owner=owner, claimed_at=now).where(
                    Experiments.number == row["number"]
                )
            )
            return True

        return self._store.write(work)

    def _release(self, row: Row, owner: str) -> None:
        self._store.write(
            lambda: self._store.execute(
                Experiments.update(claim_owner=None, claimed_at=None).where(
                    Experiments.number == row["number"], Experiments.claim_owner == owner
                )
            )
        )


def _with_outcome(look: Look, analysis: Analysis, outcome: CheckOutcome) -> Look:
    conclusion = analysis.decision.conclusion
    if look.series == "harm":
        return look.model_copy(update={"outcome": "regression" if conclusion == "regression" else "no_harm"})
    return look.model_copy(update={"outcome": conclusion or outcome})


def _result(row: Row, outcome: CheckOutcome, reason: str, analysis: Analysis | None = None) -> CheckResult:
    return CheckResult(
        experiment_id=row["experiment_id"],
        layer=row["layer"],
        hypothesis=row["hypothesis"],
        at=row["created_at"] + analysis.hours * HOUR if analysis else None,
        outcome=outcome,
        conclusion=analysis.decision.conclusion if analysis else None,
        winner=analysis.decision.winner if analysis else None,
        missing=list(analysis.missing) if analysis else [],
        look=_with_outcome(analysis.look, analysis, outcome) if analysis and analysis.look else None,
        reason=reason,
        next_check_at=next_check_at(row),
    )
