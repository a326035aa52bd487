"""A process of an application: its disk, and what of its members' tasks it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kohort.streams.tasks import TaskId
from tests.simulation.streams.application import Application
from tests.simulation.streams.changelogs import Copy
from tests.simulation.streams.member import Habits, Member

if TYPE_CHECKING:
    from tests.simulation.streams.world import StreamsWorld

CLEANUP_MS = 600_000  # state that nobody uses is removed after it


class Process:
    """Members of one application that share a disk.

    Args:
        world: where it lives.
        name: its process id, which is kept with the state on disk.
        application: what it runs.
        habits: of its members, one a thread.
        tags: where it is.
    """

    def __init__(
        self, world: StreamsWorld, name: str, application: Application, habits: list[Habits], tags: dict[str, str]
    ) -> None:
        self.world = world
        self.name = name
        self.application = application
        self.habits = habits
        self.tags = tags
        self.members: list[Member] = []
        self.frozen = False
        self.disk: dict[TaskId, Copy] = {}
        self._asleep: list[Callable[[], object]] = []

    def when_awake(self, action: Callable[[], object]) -> None:
        """Do something as soon as the process isn't frozen."""
        if self.frozen:
            self._asleep.append(action)
        else:
            action()

    def freeze(self) -> None:
        """Stand still for a while, as in a long garbage collection: nothing runs, no heartbeat is sent."""
        if not self.frozen:
            self.frozen = True
            for member in self.members:
                member.pause()

    def thaw(self) -> None:
        """Go on as if nothing had happened."""
        if not self.frozen:
            return
        self.frozen = False
        for member in self.members:
            member.resume()
        asleep, self._asleep = self._asleep, []
        for action in asleep:
            action()

    def start(self) -> None:
        """Start those of its members that aren't there."""
        there = {member.habits.thread for member in self.members}
        for habits in self.habits:
            if habits.thread not in there:
                self.members.append(Member(self.world, self, habits))

    def stop(self) -> None:
        """End in good order: the members leave, static ones for a while."""
        for member in self.members:
            member.leave(for_a_while=True)
        self._clear()

    def crash(self, wiped: bool = False) -> None:
        """End without a word; `wiped` loses the state of running tasks, as exactly-once processing does."""
        running = [task for member in self.members for task in member.running]
        for member in self.members:
            member.crash()
        for task in running if wiped else ():
            self.disk.pop(task, None)
        self._clear()

    def leave(self) -> None:
        """End for good: even static members leave."""
        for member in self.members:
            member.leave(for_a_while=False)
        self._clear()

    def _clear(self) -> None:
        self.members.clear()
        self.frozen = False
        self._asleep.clear()

    # State ------------------------------------------------------------------------------------------------------

    def open(self, task: TaskId, holder: Member) -> Copy | None:
        """Open a copy of a task's state for a member; None if another has it open."""
        copy = self.disk.get(task)
        if copy is None:
            copy = self.disk[task] = Copy(self.world.changelog(self.application.group_id, task))
        if copy.holder is not None:
            return None
        copy.open(holder, self.world.now)
        return copy

    def move(self, name: str) -> None:
        """Be another process, on another machine: without state. Nothing of it may be running."""
        self.name = name
        self.disk.clear()

    def on_disk(self) -> list[tuple[TaskId, Copy]]:
        """State that no member has open."""
        horizon = self.world.now - CLEANUP_MS
        for task in [task for task, copy in self.disk.items() if copy.holder is None and copy.closed < horizon]:
            del self.disk[task]
        return [(task, copy) for task, copy in self.disk.items() if copy.holder is None]
