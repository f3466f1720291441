"""The preview: what a look held now would find."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from prx_engine.records import Experiment, Preview
from prx_tui.operations import name
from prx_tui.view.preview import preview_lines
from prx_tui.view.spans import Line, Paragraph, Span, line
from prx_tui.widgets.lines import Paragraphs, Scroller

if TYPE_CHECKING:
    from prx_tui.app import Dashboard


class PreviewScreen(ModalScreen[None]):
    """Shows a preview once it is there; the analysis runs beside the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,v", "close", "close", show=False)]

    def __init__(self, target: Experiment) -> None:
        super().__init__()
        self.target = target
        self._found: list[Line] = [line(Span("Analysing the data of this moment…", "dim"))]

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="wide"), Scroller():
            yield Paragraphs(id="preview")

    def on_mount(self) -> None:
        self.query_one(Scroller).focus()
        self._write()
        board = cast("Dashboard", self.app)
        board.start_job(
            lambda engine: engine.preview(self.target.experiment_id), self._show, self._show_problem
        )

    def action_close(self) -> None:
        self.dismiss(None)

    def _show(self, preview: Preview) -> None:
        self._found = preview_lines(preview)
        self._write()

    def _show_problem(self, problem: str) -> None:
        self._found = [line(Span(problem, "attention"))]
        self._write()

    def _write(self) -> None:
        if not self.is_mounted:
            return
        heading = line(Span(f"Preview of {name(self.target)}", "strong"))
        lines = [heading, (), *self._found, (), line(Span("esc", "key"), " close")]
        self.query_one(Paragraphs).show([Paragraph(one, _indent(one)) for one in lines])


def _indent(one: Line) -> str:
    """Return what stands below the name of a figure."""
    return " " * len(one[0].text) if one and one[0].text.endswith("  ") else ""
