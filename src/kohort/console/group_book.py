"""What the console knows of all groups, and which of them it looks at next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kohort.client.administration.group_types import GroupListing
from kohort.console.delay import Delay, delay
from kohort.console.history import History
from kohort.console.rebalances import Rebalances, Seen
from kohort.console.trend import MOST_SAMPLES, Direction, Trend, trend

MOST_HISTORIES: Final = 10_000
"""Groups whose history is kept; beyond, those that were looked at longest ago lose theirs. Each takes 7 KB at most."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a look at a group brought, in short.

    Attributes:
        members: how many there are.
        lag: records that are left to read in all partitions whose lag is known; None if none is.
        end: the ends of these partitions, summed up.
        seen: what it says of rebalances; None for nothing.
    """

    members: int
    lag: int | None
    end: int = 0
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group, and what was last seen of it.

    Attributes:
        listing: its name, type and state.
        summary: None until it was looked at.
        looked_at: when, in seconds by the clock of the samples; None until then.
        trend: of its lag.
        delay: its lag in time; None if it isn't known.
        rebalances: of the last ten minutes, as far as looks have seen them; None until it was looked at.
    """

    listing: GroupListing
    summary: Summary | None = None
    looked_at: float | None = None
    trend: Trend = Trend(Direction.UNKNOWN)  # noqa: RUF009 (it is frozen)
    delay: Delay | None = None
    rebalances: int | None = None


@dataclass(slots=True)
class _Histories:
    """Of a group: its lag, the ends of its partitions, summed up, and how often it has rebalanced of late."""

    lag: History = field(default_factory=lambda: History(MOST_SAMPLES))
    end: History = field(default_factory=History)
    rebalances: Rebalances = field(default_factory=Rebalances)


class GroupBook:
    """All groups by name, with the histories of their lag.

    Args:
        most_histories: for how many groups at most.
    """

    def __init__(self, most_histories: int = MOST_HISTORIES) -> None:
        self._groups: dict[str, KnownGroup] = {}
        self._histories: dict[str, _Histories] = {}  # in the order in which the groups were looked at last
        self._most = most_histories

    @property
    def groups(self) -> Mapping[str, KnownGroup]:
        """What is known of each group."""
        return self._groups

    def history(self, group_id: str) -> History:
        """The history of a group's lag; an empty one if it has none."""
        return (self._histories.get(group_id) or _Histories()).lag

    def listed(self, listings: Iterable[GroupListing], *, whole: bool = True) -> None:
        """Takes in a list of all groups; those that aren't on it are gone, with their histories.

        Without `whole`, brokers are missing that have groups, too: then nothing is gone. One whose type is another one
        now has been deleted and made anew, or converted: what was seen of it counts on.
        """
        before = self._groups
        self._groups = ({} if whole else dict(before)) | {
            each.group_id: replace(known, listing=each)
            if (known := before.get(each.group_id)) is not None
            else KnownGroup(each)
            for each in listings
        }
        for gone in [group_id for group_id in self._histories if group_id not in self._groups]:
            del self._histories[gone]

    def due(self, wanted: Collection[str], most: int) -> list[str]:
        """The groups to look at next: those that are wanted, and with them those that were looked at longest ago.

        Args:
            wanted: groups that somebody sees; all of them are due.
            most: how many in all, unless more are wanted.
        """
        first = [group_id for group_id in dict.fromkeys(wanted) if group_id in self._groups]
        seen = set(first)
        others = [group_id for group_id in self._groups if group_id not in seen] if len(first) < most else []
        others.sort(key=lambda group_id: _order(self._groups[group_id]))
        return [*first, *others[: max(0, most - len(first))]]

    def looked(self, at: float, summaries: Mapping[str, Summary], due: Iterable[str]) -> None:
        """Takes in a look at groups.

        Args:
            at: when.
            summaries: what was found.
            due: the groups that were looked at; those without a summary couldn't be read, and wait for their next turn.
        """
        for group_id in due:
            known = self._groups.get(group_id)
            if known is None:
                continue
            summary = summaries.get(group_id, known.summary)
            histories = self._histories.pop(group_id, None) or _Histories()
            behind, rebalances = known.delay, known.rebalances
            if group_id in summaries and summary is not None:
                behind = None
                rebalances = None if summary.seen is None else histories.rebalances.looked(at, summary.seen)
                if summary.lag is not None:
                    histories.lag.add(at, summary.lag)
                    histories.end.add(at, summary.end)
                    behind = delay(histories.end.merged, summary.lag)
            self._histories[group_id] = histories
            way = trend(histories.lag.recent)
            self._groups[group_id] = KnownGroup(known.listing, summary, at, way, behind, rebalances)
        while len(self._histories) > self._most:
            del self._histories[next(iter(self._histories))]


def _order(group: KnownGroup) -> float:
    return float("-inf") if group.looked_at is None else group.looked_at
