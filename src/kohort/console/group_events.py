"""What has happened in groups, as looks have seen it, in bounded memory: states, members, partitions that moved."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from kohort.client.administration.group_types import GroupDescription
from kohort.plurals import several
from kohort.streams.tasks import Role

MOST_GROUPS: Final = 200
"""Groups that are followed: those that were looked at last."""

MOST_EVENTS: Final = 50
"""Of a group: the last ones."""

MOST_PLACES: Final = 1_000
"""Partitions or tasks of a group that are followed, the first ones seen; of more members, only the number is told."""

MOST_NAMES: Final = 5
"""Clients that an event names."""

_NAME: Final = 60
"""Characters of a client's name."""


class GroupEvent(NamedTuple):
    """Something that happened.

    Attributes:
        number: counts the group's events.
        at_ms: when it was seen, in ms since 1970.
        text: what.
    """

    number: int
    at_ms: int
    text: str


class GroupEvents:
    """What has happened in a group.

    Attributes:
        events: the last ones, the newest last.
    """

    __slots__ = ("_count", "_epoch", "_ids", "_last", "_members", "_owners", "_size", "_state", "events")

    def __init__(self) -> None:
        self._count = 0
        self._last: float | None = None
        self._state = ""
        self._epoch: int | None = None
        self._ids: Mapping[str, str] = {}
        self._size = 0
        self._members: Mapping[str, str] = {}
        self._owners: dict[str, frozenset[str]] = {}
        self.events: deque[GroupEvent] = deque(maxlen=MOST_EVENTS)

    def looked(self, at: float, at_ms: int, group: GroupDescription) -> None:
        """Takes a look at the group; the first one says how it is, not what has happened.

        Args:
            at: in seconds, by a clock that never goes back; a look that isn't newer than the last is passed over.
            at_ms: the same in ms since 1970.
        """
        if self._last is not None and at <= self._last:
            return
        members, ids = _clients(group), _ids(group)
        first = self._last is None
        moved = self._moved(_owners(group), "task" if any(each.streams for each in group.members) else "partition")
        if not first:
            told = len(members.keys() ^ self._members.keys()) or abs(len(group.members) - self._size)
            for text in (
                *self._came_and_went(members, len(group.members)),
                self._came_again(members, ids),
                self._changed(group.epoch, told or bool(moved)),
                f"{self._state or 'Not told'}, then {group.state or 'not told'}" if group.state != self._state else "",
                moved,
            ):
                if text:
                    self._count += 1
                    self.events.append(GroupEvent(self._count, at_ms, text))
        self._members, self._ids, self._size = members, ids, len(group.members)
        self._epoch, self._state, self._last = group.epoch, group.state, at

    def _came_and_went(self, members: Mapping[str, str], size: int) -> list[str]:
        if max(size, self._size) > MOST_PLACES:
            return [] if size == self._size else [f"{several(self._size, 'member')}, then {size:,}"]
        came = [client for key, client in members.items() if key not in self._members]
        went = [client for key, client in self._members.items() if key not in members]
        return [f"Members {did}: {_names(some)}" for did, some in (("went", went), ("came", came)) if some]

    def _came_again(self, members: Mapping[str, str], ids: Mapping[str, str]) -> str:
        """Static members that have another id: they have been started again."""
        again = [members[key] for key, now in ids.items() if self._ids.get(key, now) != now]
        return f"Members came again: {_names(again)}" if again else ""

    def _changed(self, epoch: int | None, told: int) -> str:
        """What the group's epoch says beyond what is told: that members went and joined again between two looks."""
        before = self._epoch
        if before is None or epoch is None or epoch == before:
            return ""
        epochs = f"group epoch {before}, then {epoch}"
        if epoch < before:
            return f"Made anew: {epochs}"
        count = epoch - before
        return f"{several(count, 'change')} between two looks: {epochs}" if count > told else ""

    def _moved(self, owners: Mapping[str, frozenset[str]], what: str) -> str:
        """Takes in who has what, and says what has changed.

        While nobody has a partition, as amid a rebalance, who had it is remembered: it may come back to that member.
        """
        moved = new = 0
        for place, now in owners.items():
            was = self._owners.get(place)
            if was is None and len(self._owners) >= MOST_PLACES:
                continue
            moved += was is not None and was != now
            new += was is None
            self._owners[place] = now
        parts = [
            f"{several(moved, what)} moved to {'another member' if moved == 1 else 'other members'}" if moved else "",
            f"{several(new, what)} given out for the first time" if new else "",
        ]
        return ", ".join(filter(None, parts))


def _clients(group: GroupDescription) -> dict[str, str]:
    """What members are called, by what stays theirs: a static one that comes back has another id."""
    return {
        member.instance_id or member.member_id: (member.instance_id or member.client_id or member.member_id)[:_NAME]
        for member in group.members[:MOST_PLACES]
    }


def _ids(group: GroupDescription) -> dict[str, str]:
    """The ids of static members, by their names."""
    some = group.members[:MOST_PLACES]
    return {member.instance_id: member.member_id for member in some if member.instance_id}


def _owners(group: GroupDescription) -> dict[str, frozenset[str]]:
    """Who has each partition, or each task active, as far as somebody has it."""
    having: dict[str, set[str]] = {}
    for member in group.members:
        places: Iterable[object] = member.partitions
        if member.streams is not None:
            places = (task for task, role in member.streams.tasks.items() if role is Role.ACTIVE)
        for place in map(str, places):
            having.setdefault(place, set()).add(member.instance_id or member.member_id)
    return {place: frozenset(members) for place, members in having.items()}


def _names(clients: Iterable[str]) -> str:
    counts = Counter(clients)
    shown = [name if count == 1 else f"{name} ({count:,})" for name, count in islice(counts.items(), MOST_NAMES)]
    left = sum(islice(counts.values(), MOST_NAMES, None))
    return ", ".join(shown) + (f" and {several(left, 'other')}" if left else "")
