"""Watches the group: until it is ready, through the kill, and until all is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kohort.cli.demo.errors import DemoError
from kohort.cli.demo.group import View, all_read, describe_group
from kohort.cli.demo.instances import Instance
from kohort.cli.demo.plan import APPLICATION
from kohort.cli.terminal import out
from kohort.client import Admin
from kohort.spark.monitoring.journal_analysis import read_journals

__all__ = ["Bars", "Watch"]

_POLL_S: Final = 0.4
"""Seconds between two descriptions of the group."""
_KILL_AFTER: Final = 0.42
"""The share of the year that is replayed, and half of it committed, when the first instance is killed."""
_SHOW_AFTER_KILL_S: Final = 1.5
"""Seconds after the kill until the group is shown, which doesn't know of it yet."""
_START_TIMEOUT_S: Final = 300.0
"""Seconds that instances may take to start."""
_PROGRESS_TIMEOUT_S: Final = 90.0
"""Seconds without any progress."""


@dataclass(slots=True)
class Watch:
    """Describes the group again and again, and shows what changes.

    Attributes:
        servers, admin: where the group is.
        instances: the first is killed part way.
        sent: how many flights brokers have acknowledged.
        killed: when the first instance was killed, in seconds since 1970.
        taken_over: whether the other has all tasks since then.
    """

    servers: str
    admin: Admin
    instances: Sequence[Instance]
    sent: int = 0
    killed: float | None = None
    taken_over: bool = False
    _shown_after_kill: bool = False
    _last_progress: object = None
    _last_progress_at: float = field(default_factory=time.monotonic)

    def sent_now(self, records: int) -> None:
        """Sets how many flights are acknowledged."""
        self.sent = records

    async def until_ready(self) -> None:
        """Waits until all instances have their tasks and have read the airlines: Spark is warm then. Shows the group.

        Raises:
            DemoError: an instance ended, or it takes too long.
        """
        deadline = time.monotonic() + _START_TIMEOUT_S
        with out.status("   starting …"):
            while True:
                view = await self._look()
                if view is not None and self._is_ready(view) and not view.lag_of("airlines"):
                    break
                if time.monotonic() > deadline:
                    raise DemoError(f"the instances weren't ready within {_START_TIMEOUT_S:g} s.{self._last_events()}")
                await asyncio.sleep(_POLL_S)
        out.print(view.rendered())

    async def until_taken_over(self, total: int, replaying: asyncio.Task[None], bars: Bars) -> None:
        """Kills the first instance part way, and waits until the other has its tasks.

        Returns early if all is replayed before.
        """
        while not (self.taken_over or (self.killed is not None and replaying.done())):
            view = await self._poll(replaying, bars)
            if view is not None and self.killed is None:
                if min(self.sent, 2 * view.committed("flights")) >= total * _KILL_AFTER:
                    self._kill()
            elif view is not None:
                self._show_takeover(view)
            await asyncio.sleep(_POLL_S)

    async def until_done(self, replaying: asyncio.Task[None], bars: Bars) -> None:
        """Waits until everything is replayed and read."""
        while True:
            view = await self._poll(replaying, bars)
            if view is not None:
                self._show_takeover(view)
                if replaying.done() and not view.lag_of("flights") and await all_read(self.servers, view):
                    break
            await asyncio.sleep(_POLL_S)

    async def until_interrupted(self) -> None:
        """Waits for Ctrl+C, while the other instance goes on."""
        while True:
            self._check()
            await asyncio.sleep(1)

    def _is_ready(self, view: View) -> bool:
        return view.is_stable and len(view.group.members) == len(self.instances)

    async def _look(self) -> View | None:
        self._check()
        return await describe_group(self.admin, APPLICATION, self._names())

    async def _poll(self, replaying: asyncio.Task[None], bars: Bars) -> View | None:
        if replaying.done():
            replaying.result()
        view = await self._look()
        bars.update(self.sent, view)
        now = self.sent, None if view is None else {at: each.committed for at, each in view.lag.items()}
        if now != self._last_progress:
            self._last_progress, self._last_progress_at = now, time.monotonic()
        if time.monotonic() - self._last_progress_at > _PROGRESS_TIMEOUT_S:
            raise DemoError(f"nothing has gone on for {_PROGRESS_TIMEOUT_S:g} s.{self._last_events()}")
        return view

    def _kill(self) -> None:
        first = self.instances[0]
        self.killed = time.time()
        first.process.kill()
        out.print(f"   [bold red]kill -9[/] {first.name}: its driver, its JVM and its workers are gone")

    def _show_takeover(self, view: View) -> None:
        since = time.time() - (self.killed or 0)
        if not self.taken_over and len(view.group.members) < len(self.instances) and view.is_stable:
            self.taken_over = True
            out.print(f"   {since:.0f} s later {self.instances[-1].name} has all tasks")
            out.print(view.rendered())
        elif not self.taken_over and not self._shown_after_kill and since > _SHOW_AFTER_KILL_S:
            self._shown_after_kill = True
            out.print(view.rendered())

    def _names(self) -> Mapping[tuple[str, int], str]:
        """The names of instances by endpoint."""
        return {each.endpoint: each.name + (" (killed)" if each.process.code else "") for each in self.instances}

    def _check(self) -> None:
        for each in self.instances if self.killed is None else self.instances[1:]:
            if each.process.code is not None:
                raise DemoError(
                    f"{each.name} ended with exit code {each.process.code}; its log, {each.process.log}, ends with\n"
                    f"{each.process.tail()}"
                )

    def _last_events(self) -> str:
        return "".join(f"\n{each.name}: {_last_event(each)} (log: {each.process.log})" for each in self.instances)


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

    def update(self, sent: int, view: View | None) -> None:
        """Shows how many flights are sent, and how many of them the group has committed."""
        self._progress.update(self._replayed, completed=sent)
        if view is not None:
            self._progress.update(self._done, completed=view.committed("flights"))


def _last_event(instance: Instance) -> str:
    """The last failure or reason to wait in an instance's journal."""
    entries = read_journals(instance.journal).entries if instance.journal.exists() else []
    for entry in reversed(entries):
        if entry.event == "failed":
            return str(entry.fields["text"])
        if entry.event == "waiting":
            return str(entry.fields["reason"] or "it goes on")
    return "no failure"
