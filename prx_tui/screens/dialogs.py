"""Questions before something is changed. ``y`` is the only yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from prx_engine.records import Experiment
from prx_tui.formatting import moment
from prx_tui.operations import OPERATIONS, Request, hours_left
from prx_tui.view.spans import Line, Paragraph, Span, line
from prx_tui.widgets.hours_box import HoursBox
from prx_tui.widgets.lines import Paragraphs, Scroller

if TYPE_CHECKING:
    from prx_tui.app import Dashboard

_LONGEST_REASON = 500


class Question(ModalScreen[Request | None]):
    """A question about one experiment, which is frozen when the question opens."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "confirm", "yes", show=False),
        Binding("n,escape", "refuse", "no", show=False),
        Binding("enter", "nothing", show=False),
        Binding("w", "why", "say why", show=False),
        Binding("j,down", "down", show=False),
        Binding("k,up", "up", show=False),
    ]

    def __init__(self, operation: str, target: Experiment) -> None:
        super().__init__()
        self.operation = operation
        self.target = target

    @property
    def dashboard(self) -> Dashboard:
        """The application."""
        return cast("Dashboard", self.app)

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            with Scroller(can_focus=False):
                yield Paragraphs(id="question")
            with Vertical(id="foot"):
                yield from self.fields()
                yield Input(
                    placeholder="why? (for the log)", id="reason", max_length=_LONGEST_REASON, compact=True
                )
                yield Paragraphs(id="answers")

    def fields(self) -> ComposeResult:
        """Yield what else is asked."""
        yield from ()

    def on_mount(self) -> None:
        self.query_one("#reason", Input).cursor_blink = False
        self.query_one("#reason").display = False
        self.query_one("#question", Paragraphs).show([Paragraph(one) for one in self.text()])
        self.write_answers()

    def on_descendant_focus(self) -> None:
        self.write_answers()

    def on_descendant_blur(self) -> None:
        self.write_answers()

    @property
    def _is_giving_reason(self) -> bool:
        return self.focused is not None and self.focused.id == "reason"

    def write_answers(self) -> None:
        """Write how to answer, which depends on where the keys go."""
        for answers in self.query("#answers").results(Paragraphs):
            answers.show([Paragraph(one) for one in self.answers()])

    def text(self) -> list[Line]:
        """Return the question as paragraphs."""
        return [line(OPERATIONS[self.operation].question(self.target))]

    def answers(self) -> list[Line]:
        """Return the keys that answer, as long as they are not typed into the field."""
        if self._is_giving_reason:
            keys = (Span("enter", "key"), " or ", Span("esc", "key"), " leaves the field, then ")
            return [(), line(*keys, Span("y", "key"), " or ", Span("n", "key"), " answers")]
        verb = OPERATIONS[self.operation].verb
        return [
            (),
            line(
                *(Span("y", "key"), f" {verb}   "),
                *(Span("n", "key"), " or ", Span("esc", "key"), " leave it   "),
                *(Span("w", "key"), " say why"),
            ),
        ]

    def request(self) -> Request:
        """Return what is asked for."""
        reason = self.query_one("#reason", Input).value.strip()
        return Request(self.operation, self.target, reason)

    def action_confirm(self) -> None:
        self.dismiss(self.request())

    def action_refuse(self) -> None:
        if self._is_giving_reason:
            # The first escape leaves the field, the second the question.
            self.leave_reason()
            return
        self.dismiss(None)

    def action_nothing(self) -> None:
        """Enter answers nothing: it may have been meant for the screen below."""

    def action_down(self) -> None:
        self.query_one(Scroller).scroll_down(animate=False)

    def action_up(self) -> None:
        self.query_one(Scroller).scroll_up(animate=False)

    def action_why(self) -> None:
        reason = self.query_one("#reason", Input)
        reason.display = True
        reason.focus()

    @on(Input.Submitted, "#reason")
    def _reason_given(self, event: Input.Submitted) -> None:
        event.stop()
        self.leave_reason()

    def leave_reason(self) -> None:
        """Give the keys back to the question."""
        self.set_focus(None)


class Confirm(Question):
    """Asks whether to do something to an experiment."""


class Extend(Question):
    """Asks by how many hours to extend an experiment, and says how many are left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # The field leaves these letters alone, so that they can answer from within it.
        Binding("y", "confirm", "yes", show=False, priority=True),
        Binding("n", "refuse", "no", show=False, priority=True),
        Binding("w", "why", "say why", show=False, priority=True),
    ]

    def __init__(self, target: Experiment) -> None:
        super().__init__("extend", target)
        self._problem = ""

    @property
    def left(self) -> int:
        """Hours by which the experiment can be extended."""
        return hours_left(self.target, self.dashboard.clock_now or self.target.planned_end_at)

    def fields(self) -> ComposeResult:
        usual = self.target.parameters.experiments.default_duration_hours
        yield HoursBox(str(min(usual, max(self.left, 1))), answers="ynw", id="hours")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(HoursBox).focus()

    def leave_reason(self) -> None:
        self.query_one(HoursBox).focus()

    def text(self) -> list[Line]:
        left = self.left
        return [
            *super().text(),
            line(
                f"Planned end {moment(self.target.planned_end_at)}; {left} hours are left until the maximum,"
                f" {moment(self.target.max_end_at)}. Hours to add:"
            ),
        ]

    def answers(self) -> list[Line]:
        problem = [line(Span(self._problem, "attention"))] if self._problem else []
        return [*problem, *super().answers()]

    @on(Input.Changed, "#hours")
    def _hours_changed(self) -> None:
        self._tell("")

    def request(self) -> Request:
        reason = self.query_one("#reason", Input).value.strip()
        return Request(self.operation, self.target, reason, self.query_one(HoursBox).hours)

    def action_confirm(self) -> None:
        hours = self.query_one(HoursBox).hours
        if hours is None or not 1 <= hours <= self.left:
            possible = f"a whole number from 1 to {self.left} is possible" if self.left else "none are left"
            self._tell(f"Hours: {possible}.")
            return
        super().action_confirm()

    def _tell(self, problem: str) -> None:
        self._problem = problem
        self.write_answers()
