"""Tells the group how far the state here is, and deletes state that nobody here uses any more."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kohort.client.errors import ClientError
from kohort.protocol.errors import KafkaError
from kohort.spark.runtime.task_states import TaskState
from kohort.streams.tasks import TaskId

if TYPE_CHECKING:
    from kohort.client.streams_member import StreamsMember
    from kohort.spark.runtime.application_plan import ApplicationPlan
    from kohort.spark.runtime.end_offsets import EndOffsets
    from kohort.spark.runtime.task_manager import TaskManager
    from kohort.spark.state import ChangelogReader, StateDirectory

log = logging.getLogger(__name__)

_REPORT_S: Final = 0.5
_LOOK_S: Final = 5.0
_RESTORED_FROM_CHANGELOGS: Final = frozenset({TaskState.FOLLOWING, TaskState.RESTORING})


class TaskOffsetReporting:
    """Reports task offsets: of copies, of what is being restored, and of what lies on the disk unused.

    Args:
        cleanup_delay_ms: deletes the state of tasks that this instance hasn't had for so long.
    """

    def __init__(
        self,
        plan: ApplicationPlan,
        member: StreamsMember,
        manager: TaskManager,
        directory: StateDirectory,
        changelogs: ChangelogReader,
        ends: EndOffsets,
        *,
        cleanup_delay_ms: int,
    ) -> None:
        self._plan, self._member, self._manager = plan, member, manager
        self._directory, self._changelogs, self._ends = directory, changelogs, ends
        self._cleanup_delay_s = cleanup_delay_ms / 1000
        self._disk: dict[TaskId, tuple[int, int]] = {}
        self._unused: dict[TaskId, float] = {}

    async def report_disk(self) -> None:
        """Report what is there before the instance joins: the group gives tasks to whom has their state."""
        known = await asyncio.to_thread(self._directory.tasks_on_disk)
        self._unused = dict.fromkeys(known, asyncio.get_running_loop().time())
        for task, stores in known.items():
            if task.subtopology not in self._plan.subtopologies:
                continue
            changelogs = self._plan.changelogs(task)
            places = {changelogs[name]: at for name, at in stores.items() if at is not None and name in changelogs}
            if not places or len(places) < len(changelogs):
                continue
            try:
                ends = await self._ends.of(places)
            except (KafkaError, ClientError) as error:
                log.info("the changelogs of task %s can't be seen: %s", task, error)
                continue
            self._disk[task] = sum(places.values()), sum(ends.values())
        self._report()

    async def run(self) -> None:
        """Report until this is cancelled."""
        look = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(_REPORT_S)
            if (now := asyncio.get_running_loop().time()) >= look:
                look = now + _LOOK_S
                await self._clean(now)
                await self._read_ends()
            self._report()

    async def _clean(self, now: float) -> None:
        """Delete the state of tasks that this instance hasn't had for `cleanup_delay_ms`."""
        there = {*self._unused, *self._manager.left} - self._manager.tasks.keys()
        self._unused = {task: self._unused.get(task, now) for task in there}
        for task, since in list(self._unused.items()):
            if now - since < self._cleanup_delay_s or task in self._manager.tasks:
                continue
            if await asyncio.to_thread(self._directory.remove, task):
                log.info("the state of task %s is deleted: this instance hasn't got it any more", task)
                del self._unused[task]
                self._disk.pop(task, None)
                self._manager.state_removed(task)

    async def _read_ends(self) -> None:
        """See how far others have gone on with tasks whose state was left here."""
        places = {task: offset for task, (offset, _) in self._disk.items()} | self._manager.left
        unused = [task for task in places if task not in self._manager.tasks]
        changelogs = {task: set(self._plan.changelogs(task).values()) for task in unused}
        try:
            ends = await self._ends.of(set().union(*changelogs.values()))
        except (KafkaError, ClientError) as error:
            log.debug("changelogs of tasks that others have can't be seen: %s", error)
            return
        for task in unused:
            self._disk[task] = places[task], sum(ends[changelog] for changelog in changelogs[task] if changelog in ends)

    def _report(self) -> None:
        now = self._changelogs.positions()
        offsets: dict[TaskId, int] = {}
        ends: dict[TaskId, int] = {}
        for task, (offset, end) in self._disk.items():
            if task not in self._manager.tasks:
                offsets[task], ends[task] = offset, end
        for task, local in self._manager.tasks.items():
            if local.state in _RESTORED_FROM_CHANGELOGS:
                changelogs = self._plan.changelogs(task).values()
                if changelogs and all(changelog in now for changelog in changelogs):
                    offsets[task] = sum(now[changelog][0] for changelog in changelogs)
                    ends[task] = sum(now[changelog][1] for changelog in changelogs)
                    self._disk[task] = offsets[task], ends[task]
        self._member.report_offsets(offsets, ends)
