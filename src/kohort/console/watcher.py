"""Looks at the cluster's groups again and again, and tells open pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from kohort.client.administration.group_types import GroupListing, GroupType
from kohort.client.errors import PartialFailureError
from kohort.console import flow, group_events, partition_lags, task_times
from kohort.console.cluster_reader import explain
from kohort.console.group_book import GroupBook, Summary
from kohort.console.group_page import GroupReport
from kohort.console.last_looked import LastLooked
from kohort.console.looks import Looks
from kohort.console.rebalances import seen as seen_of

EVERY_S: Final = 2.0
"""From one look to the next."""

BATCH: Final = 500
"""Groups of one look, unless more are on open pages: of more groups each gets its turn."""

_SHARE: Final = 4
"""Times as long as a look took, that the watcher rests after it."""

_LONGEST_REST_S: Final = 30.0


class Reads(Protocol):
    """What the watcher asks; `ClusterReader` has it."""

    async def groups(self) -> list[GroupListing]:
        """All groups. Raises PartialFailureError, with lists by broker, if some brokers don't tell theirs."""
        ...

    async def look(self, types: Mapping[str, GroupType]) -> dict[str, GroupReport]:
        """Groups with their members and lag."""
        ...


class Watcher(Looks):
    """What is known of the cluster's groups.

    Args:
        reader: asks the brokers.
        every: seconds from one look to the next.
        batch: groups of one look.

    Attributes:
        book: all groups, in short, with histories.
        times: which members of streams groups have had which tasks.
        events: what has happened in groups.
        lags: of groups' partitions, over the last minutes.
        flows: how quickly streams groups' topics are written and read.
    """

    def __init__(self, reader: Reads, *, every: float = EVERY_S, batch: int = BATCH) -> None:
        super().__init__("groups", every=every, share=_SHARE, longest_rest_s=_LONGEST_REST_S)
        self._reader = reader
        self._batch = batch
        self._reports: dict[str, GroupReport] = {}
        self._looking = asyncio.Lock()
        self.book = GroupBook()
        self.flows = LastLooked(flow.Flow, flow.MOST_GROUPS)
        self.times = LastLooked(task_times.TaskTimes, task_times.MOST_GROUPS)
        self.lags = LastLooked(partition_lags.PartitionLags, partition_lags.MOST_GROUPS)
        self.events = LastLooked(group_events.GroupEvents, group_events.MOST_GROUPS)

    async def _look(self) -> str:
        """At the list of groups, those on open pages, and some of the others."""
        async with self._looking:
            problem = await self._list()
            await self._look_at(self.book.due(self.shown(), self._batch))
            return problem

    async def _list(self) -> str:
        """Lists the groups; says which brokers don't tell theirs, of which those that are known stay."""
        try:
            self.book.listed(await self._reader.groups())
        except PartialFailureError as error:
            if not error.done:
                raise
            self.book.listed((each for listings in error.done.values() for each in listings), whole=False)
            return f"Not all brokers tell their groups, so some may be old, or missing: {explain(error)}"
        return ""

    async def look_at(self, *group_ids: str) -> None:
        """Looks at groups that a page is asked for, and that nobody has looked at yet.

        Raises:
            ClientError, KafkaError: the cluster doesn't answer, or refuses.
        """
        if any(group_id not in self.book.groups for group_id in group_ids):
            await self._list()
        await self._look_at([group_id for group_id in group_ids if group_id in self.book.groups])

    async def _look_at(self, group_ids: Collection[str]) -> None:
        types = {group_id: self.book.groups[group_id].listing.type for group_id in group_ids}
        reports = await self._reader.look(types)
        now = asyncio.get_running_loop().time()
        summaries = {
            group_id: Summary(len(each.group.members), each.total, each.end, seen_of(each.group))
            for group_id, each in reports.items()
        }
        self.book.looked(now, summaries, group_ids)
        # Those of open pages come first, and are the last to be forgotten.
        seen = [each for each in reversed(list(group_ids)) if each in reports]
        streams = [each for each in seen if types[each] is GroupType.STREAMS]
        now_ms = int(time.time() * 1000)
        for group_id, flows in self.flows.looked(streams).items():
            flows.add(now, reports[group_id].lag)
        for group_id, times in self.times.looked(streams).items():
            times.looked(now, now_ms, reports[group_id].group)
        for group_id, events in self.events.looked(seen).items():
            events.looked(now, now_ms, reports[group_id].group)
        for group_id, lags in self.lags.looked(seen).items():
            lags.looked(now, reports[group_id].lags)
        open_pages = self.shown()
        self._reports = {
            group_id: report
            for group_id, report in (self._reports | reports).items()
            if group_id in self.book.groups and (group_id in open_pages or group_id in reports)
        }

    def report(self, group_id: str) -> GroupReport | None:
        """A group as it was when it was last looked at; None unless an open page shows it, or it was just looked at."""
        return self._reports.get(group_id)
