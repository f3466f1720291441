"""Actions on one experiment: asked about, carried out beside the screen, announced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prx_engine.ids import short
from prx_engine.records import Experiment
from prx_tui.screens.base import LiveScreen

if TYPE_CHECKING:
    from prx_tui.operations import Request

_ON_TARGET: Final = frozenset(
    {"open", "cancel", "extend", "preview", "promote", "reject", "rollback", "copy_id"}
)


class TargetScreen(LiveScreen):
    """A screen with an experiment that actions are about."""

    def target(self) -> Experiment | None:
        """Return the experiment that an action would be about."""
        raise NotImplementedError

    def is_possible(self, action: str) -> bool:
        if action not in _ON_TARGET:
            return super().is_possible(action)
        experiment = self.target()
        if experiment is None:
            return False
        if self.dashboard.engine is None:
            return action in ("open", "copy_id")
        if action == "preview":
            return experiment.active
        from prx_tui.operations import OPERATIONS

        return action not in OPERATIONS or not OPERATIONS[action].refusal(experiment)

    def action_cancel(self) -> None:
        self._ask("cancel")

    def action_extend(self) -> None:
        self._ask("extend")

    def action_promote(self) -> None:
        self._ask("promote")

    def action_reject(self) -> None:
        self._ask("reject")

    def action_rollback(self) -> None:
        self._ask("rollback")

    def action_preview(self) -> None:
        experiment = self.target_or_word()
        if experiment is None:
            return
        if not experiment.active:
            from prx_tui.operations import OPERATIONS

            refusal = OPERATIONS["cancel"].refusal(experiment).replace("cancel", "preview", 1)
            self.dashboard.announce(refusal, problem=True)
        elif self.dashboard.engine is None:
            self.dashboard.announce("There is no database to read from.", problem=True)
        else:
            from prx_tui.screens.preview import PreviewScreen

            self.app.push_screen(PreviewScreen(experiment))

    def action_copy_id(self) -> None:
        experiment = self.target_or_word()
        if experiment is not None:
            self.app.copy_to_clipboard(experiment.experiment_id)
            self.dashboard.announce(f"Copied …{short(experiment.experiment_id)}: {experiment.experiment_id}")

    def _ask(self, operation: str) -> None:
        if self.dashboard.read_only:
            self.dashboard.announce("This dashboard is read only: it changes nothing.", problem=True)
            return
        experiment = self.target_or_word()
        if experiment is None:
            return
        from prx_tui.operations import OPERATIONS

        refusal = OPERATIONS[operation].refusal(experiment)
        if refusal:
            self.dashboard.announce(refusal, problem=True)
            return
        from prx_tui.screens.dialogs import Confirm, Extend

        dialog = Extend(experiment) if operation == "extend" else Confirm(operation, experiment)
        self.app.push_screen(dialog, self._answered)

    def _answered(self, request: Request | None) -> None:
        if request is not None:
            self.dashboard.carry_out(request)

    def target_or_word(self) -> Experiment | None:
        """Return the experiment that an action would be about, or say that there is none."""
        experiment = self.target()
        if experiment is None:
            self.dashboard.announce("There is no experiment here to do that to.", problem=True)
        return experiment
