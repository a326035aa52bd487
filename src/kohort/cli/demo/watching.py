"""The group under watch: until it is ready, through the kill, to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kohort.cli.demo.failures import DemoError
from kohort.cli.demo.group import View, look, nothing_left
from kohort.cli.demo.instances import Instance
from kohort.cli.demo.plan import APPLICATION
from kohort.cli.terminal import out
from kohort.client import Admin
from kohort.spark.monitoring.journal_analysis import read_journals

__all__ = ["Bars", "Watch"]

_GLANCE: Final = 0.4
"""Seconds between two looks at the group."""
_KILL_AT: Final = 0.42
"""How much of the year is replayed, and half of that done, when the first instance is killed."""
_DURING: Final = 1.5
"""Seconds after the kill when the group is shown, which knows of nothing yet."""
_START: Final = 300.0
"""Seconds that instances have to start in."""
_STUCK: Final = 90.0
"""Seconds without any progress."""


@dataclass(slots=True)
class Watch:
    """Looks at the group again and again, and tells what it sees.

    Attributes:
        servers, admin: where the group is.
        instances: the first is killed when its time has come.
        sent: how many flights are acknowledged.
        killed: when the first instance was killed, in seconds since 1970.
        taken_over: whether the other has all tasks since.
    """

    servers: str
    admin: Admin
    instances: Sequence[Instance]
    sent: int = 0
    killed: float | None = None
    taken_over: bool = False
    _shown_during: bool = False
    _seen: object = None
    _seen_at: float = field(default_factory=time.monotonic)

    def sent_now(self, records: int) -> None:
        """So many flights are acknowledged."""
        self.sent = records

    async def until_ready(self) -> None:
        """Wait until all instances have their tasks and have read the airlines: Spark is warm then. Show the group.

        Raises:
            DemoError: one ended, or it takes too long.
        """
        deadline = time.monotonic() + _START
        with out.status("   starting …"):
            while True:
                view = await self._look()
                if view is not None and self._all_there(view) and not view.behind("airlines"):
                    break
                if time.monotonic() > deadline:
                    raise DemoError(f"the instances weren't ready within {_START:g} s.{self._last_words()}")
                await asyncio.sleep(_GLANCE)
        out.print(view.shown())

    async def until_taken_over(self, total: int, replaying: asyncio.Task[None], bars: Bars) -> None:
        """Kill the first instance when its time has come, and wait until the other has its tasks.

        Returns early if all is replayed by then.
        """
        while not (self.taken_over or (self.killed is not None and replaying.done())):
            view = await self._see(replaying, bars)
            if view is not None and self.killed is None:
                if min(self.sent, 2 * view.done("flights")) >= total * _KILL_AT:
                    self._kill()
            elif view is not None:
                self._tell_of_takeover(view)
            await asyncio.sleep(_GLANCE)

    async def until_done(self, replaying: asyncio.Task[None], bars: Bars) -> None:
        """Wait until everything is replayed, and nothing is left to read."""
        while True:
            view = await self._see(replaying, bars)
            if view is not None:
                self._tell_of_takeover(view)
                if replaying.done() and not view.behind("flights") and await nothing_left(self.servers, view):
                    break
            await asyncio.sleep(_GLANCE)

    async def until_interrupted(self) -> None:
        """Wait for Ctrl+C, while the instance that is left goes on."""
        while True:
            self._check()
            await asyncio.sleep(1)

    def _all_there(self, view: View) -> bool:
        return view.settled and len(view.group.members) == len(self.instances)

    async def _look(self) -> View | None:
        self._check()
        return await look(self.admin, APPLICATION, self._names())

    async def _see(self, replaying: asyncio.Task[None], bars: Bars) -> View | None:
        if replaying.done():
            replaying.result()
        view = await self._look()
        bars.update(self.sent, view)
        now = self.sent, None if view is None else {at: each.committed for at, each in view.lag.items()}
        if now != self._seen:
            self._seen, self._seen_at = now, time.monotonic()
        if time.monotonic() - self._seen_at > _STUCK:
            raise DemoError(f"nothing has gone on for {_STUCK:g} s.{self._last_words()}")
        return view

    def _kill(self) -> None:
        first = self.instances[0]
        self.killed = time.time()
        first.process.kill()
        out.print(f"   [bold red]kill -9[/] {first.name}: its driver, its JVM and its workers are gone")

    def _tell_of_takeover(self, view: View) -> None:
        since = time.time() - (self.killed or 0)
        if not self.taken_over and len(view.group.members) < len(self.instances) and view.settled:
            self.taken_over = True
            out.print(f"   {since:.0f} s later {self.instances[-1].name} has all tasks")
            out.print(view.shown())
        elif not self.taken_over and not self._shown_during and since > _DURING:
            self._shown_during = True
            out.print(view.shown())

    def _names(self) -> Mapping[tuple[str, int], str]:
        """Of instances by endpoint."""
        return {each.endpoint: each.name + (" (killed)" if each.process.code else "") for each in self.instances}

    def _check(self) -> None:
        for each in self.instances if self.killed is None else self.instances[1:]:
            if each.process.code is not None:
                raise DemoError(
                    f"{each.name} ended with exit code {each.process.code}; its log, {each.process.log}, ends with\n"
                    f"{each.process.tail()}"
                )

    def _last_words(self) -> str:
        return "".join(f"\n{each.name}: {_last_word(each)} (log: {each.process.log})" for each in self.instances)


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
        """Show how many flights are sent, and how many of them the group has done."""
        self._progress.update(self._replayed, completed=sent)
        if view is not None:
            self._progress.update(self._done, completed=view.done("flights"))


def _last_word(instance: Instance) -> str:
    """What an instance said last of what it waits for, or of what failed."""
    entries = read_journals(instance.journal).entries if instance.journal.exists() else []
    for entry in reversed(entries):
        if entry.event == "failed":
            return str(entry.fields["text"])
        if entry.event == "waiting":
            return str(entry.fields["reason"] or "it goes on")
    return "nothing to complain of"
