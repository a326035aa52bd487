"""Watching the group: until it is ready, through the kill, to the end of the input."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kohort.cli.demo.errors import DemoError
from kohort.cli.demo.group import GroupView, all_read, describe_group
from kohort.cli.demo.instances import Instance
from kohort.cli.demo.plan import APPLICATION
from kohort.cli.terminal import out
from kohort.client import Admin
from kohort.spark.monitoring.journal_analysis import read_journals

_POLL_SECONDS: Final = 0.4
"""Seconds between two requests for the group."""
_KILL_AT: Final = 0.42
"""Share of the year that is replayed, and half of it committed, when the first instance is killed."""
_SHOW_AFTER: Final = 1.5
"""Seconds after the kill when the group is shown, before the session timeout."""
_START: Final = 300.0
"""Seconds that instances may take to start."""
_STUCK: Final = 90.0
"""Seconds without progress after which the demo fails."""


@dataclass(slots=True)
class GroupWatcher:
    """Polls the group, and reports what changes.

    Attributes:
        servers, admin: the broker.
        instances: the first one will be killed.
        sent: number of acknowledged flights.
        killed: when the first instance was killed, in seconds since 1970.
        taken_over: whether the other instance has all tasks since.
    """

    servers: str
    admin: Admin
    instances: Sequence[Instance]
    sent: int = 0
    killed: float | None = None
    taken_over: bool = False
    _shown_after_kill: bool = False
    _progress: object = None
    _progress_at: float = field(default_factory=time.monotonic)

    def sent_now(self, records: int) -> None:
        self.sent = records

    async def until_ready(self) -> None:
        """Waits until all instances have their tasks and have read the airlines, so that Spark is warm.

        Raises:
            DemoError: one ended, or it takes too long.
        """
        deadline = time.monotonic() + _START
        with out.status("   starting …"):
            while True:
                view = await self._describe()
                if view is not None and self._all_ready(view) and not view.behind("airlines"):
                    break
                if time.monotonic() > deadline:
                    raise DemoError(f"the instances weren't ready within {_START:g} s.{self._last_reasons()}")
                await asyncio.sleep(_POLL_SECONDS)
        out.print(view.shown())

    async def until_taken_over(self, total: int, replaying: asyncio.Task[None], bars: Bars) -> None:
        """Kills the first instance part way, and waits until the other has its tasks, or all is replayed."""
        while not (self.taken_over or (self.killed is not None and replaying.done())):
            view = await self._update(replaying, bars)
            if view is not None and self.killed is None:
                if min(self.sent, 2 * view.done("flights")) >= total * _KILL_AT:
                    self._kill()
            elif view is not None:
                self._report_takeover(view)
            await asyncio.sleep(_POLL_SECONDS)

    async def until_done(self, replaying: asyncio.Task[None], bars: Bars) -> None:
        """Waits until all flights are replayed and read."""
        while True:
            view = await self._update(replaying, bars)
            if view is not None:
                self._report_takeover(view)
                if replaying.done() and not view.behind("flights") and await all_read(self.servers, view):
                    break
            await asyncio.sleep(_POLL_SECONDS)

    async def until_interrupted(self) -> None:
        while True:
            self._check_alive()
            await asyncio.sleep(1)

    def _all_ready(self, view: GroupView) -> bool:
        return view.reconciled and len(view.group.members) == len(self.instances)

    async def _describe(self) -> GroupView | None:
        self._check_alive()
        return await describe_group(self.admin, APPLICATION, self._names())

    async def _update(self, replaying: asyncio.Task[None], bars: Bars) -> GroupView | None:
        if replaying.done():
            replaying.result()
        view = await self._describe()
        bars.update(self.sent, view)
        now = self.sent, None if view is None else {at: each.committed for at, each in view.lag.items()}
        if now != self._progress:
            self._progress, self._progress_at = now, time.monotonic()
        if time.monotonic() - self._progress_at > _STUCK:
            raise DemoError(f"nothing has gone on for {_STUCK:g} s.{self._last_reasons()}")
        return view

    def _kill(self) -> None:
        first = self.instances[0]
        self.killed = time.time()
        first.process.kill()
        out.print(f"   [bold red]kill -9[/] {first.name}: its driver, its JVM and its workers are gone")

    def _report_takeover(self, view: GroupView) -> None:
        since = time.time() - (self.killed or 0)
        if not self.taken_over and len(view.group.members) < len(self.instances) and view.reconciled:
            self.taken_over = True
            out.print(f"   {since:.0f} s later {self.instances[-1].name} has all tasks")
            out.print(view.shown())
        elif not self.taken_over and not self._shown_after_kill and since > _SHOW_AFTER:
            self._shown_after_kill = True
            out.print(view.shown())

    def _names(self) -> Mapping[tuple[str, int], str]:
        return {each.endpoint: each.name + (" (killed)" if each.process.code else "") for each in self.instances}

    def _check_alive(self) -> None:
        for each in self.instances if self.killed is None else self.instances[1:]:
            if each.process.code is not None:
                raise DemoError(
                    f"{each.name} ended with exit code {each.process.code}; its log, {each.process.log}, ends with\n"
                    f"{each.process.tail()}"
                )

    def _last_reasons(self) -> str:
        return "".join(f"\n{each.name}: {_last_reason(each)} (log: {each.process.log})" for each in self.instances)


class Bars:
    """Progress of the replay and of the group, as a context manager."""

    def __init__(self, total: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            TimeElapsedColumn(),
            console=out,
        )
        self._replayed: TaskID = self._progress.add_task("   replayed", total=total)
        self._done: TaskID = self._progress.add_task("   done", total=total)

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, sent: int, view: GroupView | None) -> None:
        """Shows how many flights are sent, and how many of them the group has committed."""
        self._progress.update(self._replayed, completed=sent)
        if view is not None:
            self._progress.update(self._done, completed=view.done("flights"))


def _last_reason(instance: Instance) -> str:
    """The latest failure of an instance, or the latest reason why it waits."""
    entries = read_journals(instance.journal).entries if instance.journal.exists() else []
    for entry in reversed(entries):
        if entry.event == "failed":
            return str(entry.fields["text"])
        if entry.event == "waiting":
            return str(entry.fields["reason"] or "it goes on")
    return "it reports no problem"
