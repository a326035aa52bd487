"""What an application does with the tasks that its member has, in virtual time, whichever protocol its group has."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Protocol

from kohort.client.streams.events import Assigned, Lost, Revoked, RolesChanged
from kohort.client.streams.membership import StreamsMembership
from kohort.client.streams.transitions import State
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

TOPOLOGY = Topology(
    {
        "0": Subtopology(source_topics=["in"], repartition_sinks=["app-words-repartition"]),
        "1": Subtopology(
            repartition_sources=[InternalTopic(name="app-words-repartition", partitions=4)],
            changelogs=[InternalTopic(name="app-counts-changelog")],
        ),
    }
)
ALL = {TaskId(name, partition) for name in "01" for partition in range(4)}
STEP_MS = 50
END = 50_000
"""The end of each changelog."""


class World(Protocol):
    """Where applications live."""

    random: Random
    counts: Counter[str]
    close_ms: int

    @property
    def now(self) -> int: ...


class SimulatedTasks:
    """An application's tasks: `has` is what it really does. It takes its time to close them."""

    def __init__(self, world: World, member: StreamsMembership) -> None:
        self._world, self._member = world, member
        self.has: dict[TaskId, Role] = {}
        self.closing: dict[TaskId, tuple[int, Role | None]] = {}
        self.copied: dict[TaskId, int] = {}

    def work(self) -> None:
        """Closes what is ready to be closed, and copies changelogs."""
        now = self._world.now
        for task, (ready, after) in list(self.closing.items()):
            if ready <= now:
                del self.closing[task]
                if after is None:
                    del self.has[task]
                else:
                    self.has[task] = after
                self._member.closed([task], now)
        self.copied = {
            task: min(END, self.copied.get(task, 0) + 2_000)
            for task, role in self.has.items()
            if role is not Role.ACTIVE and task.subtopology == "1"
        }
        self._member.offsets.update(self.copied, dict.fromkeys(self.copied, END))

    def take_events(self) -> None:
        now = self._world.now
        while (event := self._member.next_event(now)) is not None:
            patience = now + self._world.close_ms + self._world.random.randrange(1_500)
            self._world.counts[type(event).__name__] += 1
            match event:
                case Assigned(tasks):
                    self.has.update(tasks)
                case Revoked(tasks):
                    self.closing.update(dict.fromkeys(tasks, (patience, None)))
                case RolesChanged(tasks):
                    for task, (before, after) in tasks.items():
                        if before is Role.ACTIVE:
                            self.closing[task] = patience, after
                        else:
                            self.has[task] = after
                case Lost(tasks):
                    assert tasks == self.has
                    self.closing = dict.fromkeys(self.has, (patience, None))

    @property
    def at_peace(self) -> bool:
        """Whether the member has all that the group wants it to have, and nothing else."""
        member = self._member
        return member.state is State.STABLE and not self.closing and self.has == member.tasks.target
