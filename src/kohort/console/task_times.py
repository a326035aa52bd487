"""Which member of a streams group had which task when, as looks have seen it, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from kohort.client.administration.group_types import GroupDescription
from kohort.streams.tasks import Role, TaskId

MOST_GROUPS: Final = 100
"""Groups whose tasks are followed: those that were looked at last."""

MOST_SPANS: Final = 1_000
"""Of a group, that have ended: the last ones."""

MOST_OPEN: Final = 1_000
"""Tasks of members, of a group, that are followed at a time."""

MOST_MOVES: Final = 50


class Span(NamedTuple):
    """The time in which a member had a task in a role.

    Attributes:
        task, member, role: which.
        begin, end: in seconds, by the clock of the looks.
    """

    task: TaskId
    member: str
    role: Role
    begin: float
    end: float


class TaskMove(NamedTuple):
    """An active task that another member has than before.

    Attributes:
        number: counts the group's moves.
        at_ms: when it was seen, in ms since 1970.
        task: which.
        source, target: ids of members; None for nobody.
    """

    number: int
    at_ms: int
    task: TaskId
    source: str | None
    target: str | None


class TaskTimes:
    """The tasks of a group over time.

    Attributes:
        last: when the group was looked at last; None if never.
        moves: the last ones, the newest last.
    """

    __slots__ = ("_begins", "_ended", "_moved", "_owners", "first", "last", "moves")

    def __init__(self) -> None:
        self._begins: dict[tuple[TaskId, str], tuple[Role, float]] = {}
        self._ended: deque[Span] = deque(maxlen=MOST_SPANS)
        self._owners: dict[TaskId, str] = {}
        self._moved = 0
        self.first: float | None = None
        self.last: float | None = None
        self.moves: deque[TaskMove] = deque(maxlen=MOST_MOVES)

    def looked(self, at: float, at_ms: int, group: GroupDescription) -> None:
        """Takes a look at the group.

        Args:
            at: in seconds, by a clock that never goes back; a look that isn't newer than the last is passed over.
            at_ms: the same in ms since 1970.
        """
        if self.last is not None and at <= self.last:
            return
        now = _tasks(group)
        for key, (role, begin) in list(self._begins.items()):
            if now.get(key) is not role:
                del self._begins[key]
                self._ended.append(Span(*key, role, begin, at))
        for key, role in now.items():
            self._begins.setdefault(key, (role, at))
        owners = {task: member for (task, member), role in now.items() if role is Role.ACTIVE}
        if self.last is not None:
            for task in sorted(self._owners.keys() | owners.keys()):
                source, target = self._owners.get(task), owners.get(task)
                if source != target:
                    self._moved += 1
                    self.moves.append(TaskMove(self._moved, at_ms, task, source, target))
        self._owners, self.last = owners, at
        self.first = at if self.first is None else self.first

    @property
    def owners(self) -> Mapping[TaskId, str]:
        """The members that have tasks active."""
        return self._owners

    def spans(self, since: float) -> list[Span]:
        """Those that had not ended by then, in the order of their begins; the ones that last end with the last look."""
        found = [span for span in self._ended if span.end > since]
        last = self.last or 0.0
        found += [Span(*key, role, begin, last) for key, (role, begin) in self._begins.items()]
        return sorted(found, key=lambda span: (span.begin, span.task, span.member))


def _tasks(group: GroupDescription) -> dict[tuple[TaskId, str], Role]:
    found: dict[tuple[TaskId, str], Role] = {}
    for member in group.members:
        if member.streams is not None:
            for task, role in member.streams.tasks.items():
                if len(found) < MOST_OPEN:
                    found[task, member.member_id] = role
    return found
