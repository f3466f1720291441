"""Everything a person can do, in one registry: it feeds keys, footer, help and palette."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

Place = Literal["experiments", "experiment", "fitness"]
_EVERYWHERE: Final[frozenset[Place]] = frozenset({"experiments", "experiment", "fitness"})
_LIST: Final[frozenset[Place]] = frozenset({"experiments"})
_DETAIL: Final[frozenset[Place]] = frozenset({"experiment"})
_ON_ONE: Final[frozenset[Place]] = _LIST | _DETAIL


class Action(NamedTuple):
    """Something a person can do.

    Attributes:
        id: name of the screen's or the app's ``action_…`` method.
        key: what to press; several keys are divided by commas.
        label: in the footer.
        title: in help and palette.
        places: screens that have it.
        importance: place in the footer, 0 first; None keeps it out of the footer.
        dangerous: whether it changes something; a read-only dashboard does not have it.
        palette: whether the palette lists it; moving about is no command.
        shown: how help and footer write the key, if not as it is.
    """

    id: str
    key: str
    label: str
    title: str
    places: frozenset[Place]
    importance: int | None = None
    dangerous: bool = False
    palette: bool = True
    shown: str = ""

    @property
    def key_words(self) -> str:
        """How the key is written for people."""
        return self.shown or self.key.replace(",", " ")


ACTIONS: Final = (
    Action("open", "enter", "open", "Open the experiment", _LIST, 0),
    Action("back", "escape", "back", "Go back", _DETAIL | {"fitness"}, 0, shown="esc"),
    Action("fitness", "f", "fitness", "Fitness of the deployment", _ON_ONE, 3),
    Action("cancel", "c", "cancel", "Cancel the experiment", _ON_ONE, 2, dangerous=True),
    Action("extend", "e", "extend", "Extend the experiment", _ON_ONE, 4, dangerous=True),
    Action("preview", "v", "preview", "Preview: what a look held now would find", _ON_ONE, 5),
    Action("promote", "p", "promote", "Promote the treatment", _ON_ONE, 6, dangerous=True),
    Action("reject", "r", "reject", "Reject the treatment", _ON_ONE, 7, dangerous=True),
    Action("rollback", "R", "roll back", "Roll the promotion back", _ON_ONE, 2, dangerous=True),
    Action("filter", "/", "filter", "Filter by id, hypothesis, layer, decision, status or outcome", _LIST, 8),
    Action("clear_filter", "escape", "", "Clear the filter", _LIST, shown="esc"),
    Action("next_tab", "]", "tab", "Next tab", _EVERYWHERE, 3, shown="]", palette=True),
    Action("previous_tab", "[", "", "Previous tab", _EVERYWHERE, shown="["),
    Action("sort", "s", "sort", "Sort by the next column", _LIST, 10),
    Action("reverse", "S", "reverse", "Sort the other way round", _LIST, 14),
    Action("copy_id", "y", "copy id", "Copy the experiment's id", _ON_ONE, 12),
    Action("reread", "ctrl+r", "read again", "Read everything again", _EVERYWHERE, 15, shown="^r"),
    Action("help", "?", "help", "All keys", _EVERYWHERE, 1),
    Action(
        "command_palette", "ctrl+p", "palette", "Command palette", _EVERYWHERE, 11, palette=False, shown="^p"
    ),
    Action("quit", "q", "quit", "Quit", _EVERYWHERE, 1),
    Action("down", "j,down", "", "One down", _EVERYWHERE, palette=False, shown="j ↓"),
    Action("up", "k,up", "", "One up", _EVERYWHERE, palette=False, shown="k ↑"),
    Action("top", "g,home", "", "To the top", _EVERYWHERE, palette=False, shown="g home"),
    Action("bottom", "G,end", "", "To the bottom", _EVERYWHERE, palette=False, shown="G end"),
)


def available(place: Place, *, read_only: bool) -> list[Action]:
    """Return the actions of a screen; none that changes anything in a read-only dashboard."""
    return [one for one in ACTIONS if place in one.places and not (read_only and one.dangerous)]


def in_footer(actions: Iterable[Action]) -> list[Action]:
    """Return the actions that the footer shows, the most important first."""
    shown = [one for one in actions if one.importance is not None]
    return sorted(shown, key=lambda one: one.importance or 0)
