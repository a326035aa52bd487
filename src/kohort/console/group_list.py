"""The list of groups: which are on a page, in which order, and what it shows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from kohort.client.administration.group_types import GroupType
from kohort.console.group_book import KnownGroup
from kohort.console.links import group_link
from kohort.console.live import Cell, Table, View
from kohort.console.paging import Page, page_of
from kohort.console.trend import Direction
from kohort.console.words import NOTHING, delay_text, number, state_tone, trend_text, visible
from kohort.plurals import several

TYPES: Final = tuple(each.value for each in GroupType if each is not GroupType.UNKNOWN)
COLUMNS: Final = ("Group", "State", ">Lag", "Trend", "Behind", ">Rebalances, 10 min", ">Members", "Type")
"""The first names the row; those that begin with > hold numbers. A phone shows the first ones unscrolled."""

_DIRECTIONS: Final = {Direction.RISING: "bad", Direction.FALLING: "good", Direction.CAUGHT_UP: "good"}

_SORTS: Final[Mapping[str, Callable[[KnownGroup], Any]]] = {
    "name": lambda group: (),
    "lag": lambda group: -1 if group.summary is None or group.summary.lag is None else group.summary.lag,
    "behind": lambda group: (-1.0, False) if group.delay is None else (group.delay.seconds, group.delay.at_least),
    "rebalances": lambda group: -1 if group.rebalances is None else group.rebalances,
    "members": lambda group: -1 if group.summary is None else group.summary.members,
    "type": lambda group: group.listing.type.value,
    "state": lambda group: group.listing.state,
}

SORTS: Final = tuple(_SORTS)
_LARGEST_FIRST: Final = ("lag", "behind", "rebalances", "members")

_MANY_REBALANCES: Final = 4
"""In ten minutes, stand out: who starts or stops a member or two causes fewer. Those of streams groups don't: each task
whose copy has caught up is one, too."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which groups are shown.

    Attributes:
        text: a part of their names, whatever the case; "" for all.
        type: their type; "" for all.
        state: their state, whatever the case; "" for all.
        sort: one of `SORTS`; of `_LARGEST_FIRST` the largest come first.
        page: from 1.
    """

    text: str = ""
    type: str = ""
    state: str = ""
    sort: str = "name"
    page: int = 1

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Choice:
        """What a page's parameters say; what makes no sense is as if it weren't there."""
        number = fields.get("page", "")
        kind, sort = fields.get("type", ""), fields.get("sort", "")
        return cls(
            fields.get("q", "").strip(),
            kind if kind in TYPES else "",
            fields.get("state", ""),
            sort if sort in SORTS else "name",
            int(number) if number.isascii() and number.isdigit() and len(number) < 8 else 1,
        )

    def query(self, page: int | None = None) -> str:
        """The parameters of the page, or of another page of the same list."""
        fields = {"q": self.text, "type": self.type, "state": self.state, "sort": self.sort}
        shown = {name: value for name, value in fields.items() if value and (name, value) != ("sort", "name")}
        at = self.page if page is None else page
        return urlencode(shown | ({"page": at} if at != 1 else {}))


def choose(groups: Iterable[KnownGroup], choice: Choice) -> Page[KnownGroup]:
    """The groups on the page."""
    text, state = choice.text.casefold(), choice.state.casefold()
    found = [
        group
        for group in groups
        if (not text or text in group.listing.group_id.casefold())
        and (not choice.type or group.listing.type.value == choice.type)
        and (not state or group.listing.state.casefold() == state)
    ]
    found.sort(key=lambda group: group.listing.group_id)
    if choice.sort != "name":
        found.sort(key=_SORTS[choice.sort], reverse=choice.sort in _LARGEST_FIRST)
    return page_of(found, choice.page)


def states(groups: Iterable[KnownGroup]) -> list[str]:
    """The states that groups are in."""
    return sorted({group.listing.state for group in groups if group.listing.state})


def list_view(page: Page[KnownGroup]) -> View:
    """What the page shows."""
    shown = several(page.total, "group")
    if page.pages > 1:
        shown += f", page {page.number} of {page.pages}"
    return View(
        {"count": shown},
        {"groups": Table({group.listing.group_id: _row(group) for group in page.items})},
    )


def state_cell(state: str) -> Cell:
    """A group's state."""
    return Cell(visible(state) or "not told", tone=state_tone(state))


def _row(group: KnownGroup) -> tuple[Cell, ...]:
    listing, summary = group.listing, group.summary
    many = listing.type is not GroupType.STREAMS and (group.rebalances or 0) >= _MANY_REBALANCES
    return (
        Cell(visible(listing.group_id) or "(no name)", group_link(listing.group_id)),
        state_cell(listing.state),
        Cell(NOTHING if summary is None else number(summary.lag)),
        Cell(
            NOTHING if summary is None or summary.lag is None else trend_text(group.trend),
            tone=_DIRECTIONS.get(group.trend.direction, ""),
        ),
        Cell(NOTHING if summary is None or summary.lag is None else delay_text(group.delay)),
        Cell(number(group.rebalances), tone="warn" if many else ""),
        Cell(NOTHING if summary is None else number(summary.members)),
        Cell(listing.type.value),
    )
