"""The demo from beginning to end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kohort.cli.demo.comparing import KEYS, Groups, batch_groups, differences
from kohort.cli.demo.ending import Outcome, conclude, what_next
from kohort.cli.demo.failures import DemoError
from kohort.cli.demo.flights import Year, fetch, load, subset
from kohort.cli.demo.group import View, look, nothing_left
from kohort.cli.demo.instances import Instance, start_batch, start_instance
from kohort.cli.demo.journals import last_words
from kohort.cli.demo.plan import APPLICATION, PARTITIONS, SETTINGS, Plan, program
from kohort.cli.demo.processes import Child
from kohort.cli.demo.records import as_records
from kohort.cli.demo.replaying import create_topics, replay, send_tables
from kohort.cli.demo.results import read_groups
from kohort.cli.terminal import out
from kohort.client import Admin
from kohort.testing import BrokerProcess

__all__ = ["tell"]

_GLANCE: Final = 0.4
"""Seconds between two looks at the group."""
_KILL_AT: Final = 0.42
"""How much of the year is replayed when the instance is killed."""
_START: Final = 180.0
"""Seconds that instances have to start in."""
_STUCK: Final = 60.0
"""Seconds without any progress."""
_STOP: Final = 20.0
"""Seconds that an instance has to stop in."""


async def tell(plan: Plan) -> int:
    """Run the demo; the exit code: 0 if stream and batch are equal, 1 if they aren't.

    Raises:
        DemoError: it can't go on.
    """
    began = time.monotonic()
    _say("A year of flights out of New York")
    year = _year(plan)
    flights, airlines, weather = (each.num_rows for each in (year.flights, year.airlines, year.weather))
    out.print(f"   {flights:,} flights, {airlines} airlines, {weather:,} hours of weather")
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(_broker(plan))
        admin = await stack.enter_async_context(Admin(servers))
        await create_topics(admin)
        await send_tables(servers, year)
        out.print(f"   broker on {servers}; airlines and weather are in their topics")

        _say("Two instances of the application, each with a Spark session; a standby for every task")
        instances = []
        for number in (1, 2):
            instances.append(start_instance(number, program(), servers, plan))
            stack.enter_context(instances[-1].process)
        run = _Run(plan, servers, admin, instances)
        records = await asyncio.to_thread(as_records, year.flights, "carrier")
        await run.until_ready()

        _say(f"The year, replayed in {plan.seconds:g} s; one instance is killed part way")
        replaying = asyncio.create_task(replay(servers, records, plan.seconds, run.sent_now))
        stack.callback(replaying.cancel)
        batch, result = await run.until_done(flights, replaying, year.files, stack.enter_context)

        _say("The result, beside a batch job: plain Spark over the CSV files")
        stream = {topic: await read_groups(servers, topic, columns) for topic, columns in KEYS.items()}
        found = differences(stream, await _batch_result(batch, result))
        outcome = Outcome(plan, servers, instances, run.killed, stream, found, time.monotonic() - began)
        code = conclude(outcome)
        if plan.keep:
            what_next(outcome)
            await run.until_interrupted()
        elif instances[1].process.stop(_STOP) != 0:
            out.print("[yellow]   instance 2 didn't stop in good order; its log: " + str(instances[1].process.log))
        return code


@dataclass(slots=True)
class _Run:
    """The group while it works."""

    plan: Plan
    servers: str
    admin: Admin
    instances: list[Instance]
    sent: int = 0
    killed: float | None = None
    _seen_at: float = field(default_factory=time.monotonic)
    _seen: object = None

    @property
    def names(self) -> Mapping[tuple[str, int], str]:
        """Of instances by endpoint."""
        dead = self.instances[0].process.code is not None
        return {each.endpoint: each.name + (" (killed)" if dead and not at else "")
                for at, each in enumerate(self.instances)}  # fmt: skip

    def sent_now(self, records: int) -> None:
        """So many flights are acknowledged."""
        self.sent = records

    async def until_ready(self) -> None:
        """Wait until both instances have their tasks, and show them."""
        deadline = time.monotonic() + _START
        with out.status("   starting …") if out.is_terminal else _Quiet():
            while True:
                self._check(self.instances)
                view = await self._look()
                if view is not None and len(view.group.members) == len(self.instances) and view.settled:
                    break
                if time.monotonic() > deadline:
                    raise DemoError(f"the instances didn't get their tasks within {_START:g} s.{self._logs()}")
                await asyncio.sleep(_GLANCE)
        out.print(view.shown())

    async def until_done(
        self, total: int, replaying: asyncio.Task[None], files: Path, enter: Callable[[Child], Child]
    ) -> tuple[Child, Path]:
        """Watch the group until nothing is left to do; meanwhile kill an instance, and start the batch job."""
        batch: tuple[Child, Path] | None = None
        shown_during = shown_after = False
        with _bars() as bars:
            replayed, counted = bars.add_task("   replayed", total=total), bars.add_task("   done", total=total)
            while True:
                self._check(self.instances if self.killed is None else self.instances[1:])
                if replaying.done():
                    replaying.result()
                view = await self._look()
                self._update(bars, replayed, counted, view)
                if self.killed is None and self.sent >= total * _KILL_AT:
                    self._kill(bars)
                elif view is not None and self.killed is not None:
                    since = time.time() - self.killed
                    if not shown_during and since > 1.5:
                        bars.console.print(view.shown())
                        shown_during = True
                    elif not shown_after and len(view.group.members) == 1 and view.settled:
                        bars.console.print(f"   {since:.0f} s later instance 2 has all tasks")
                        bars.console.print(view.shown())
                        shown_after = True
                if batch is None and self.killed is not None and (shown_after or replaying.done()):
                    batch = start_batch(program(), files, self.plan)
                    enter(batch[0])
                through = view is not None and batch is not None and replaying.done() and not view.behind("flights")
                if through and await nothing_left(self.servers, view):
                    break
                await asyncio.sleep(_GLANCE)
        return batch

    async def until_interrupted(self) -> None:
        """Wait for Ctrl+C, while the surviving instance goes on."""
        while True:
            self._check(self.instances[1:])
            await asyncio.sleep(1)

    async def _look(self) -> View | None:
        return await look(self.admin, APPLICATION, self.names)

    def _kill(self, bars: Progress) -> None:
        self.killed = time.time()
        self.instances[0].process.kill()
        bars.console.print("   [bold red]kill -9[/] instance 1: its driver, its JVM and its workers are gone")

    def _update(self, bars: Progress, replayed: TaskID, counted: TaskID, view: View | None) -> None:
        bars.update(replayed, completed=self.sent)
        if view is not None:
            bars.update(counted, completed=view.done("flights"))
            now = (self.sent, {at: each.committed for at, each in view.lag.items()})
            if now != self._seen:
                self._seen, self._seen_at = now, time.monotonic()
        if time.monotonic() - self._seen_at > _STUCK:
            raise DemoError(f"nothing has gone on for {_STUCK:g} s.{self._logs()}")

    def _check(self, instances: list[Instance]) -> None:
        for each in instances:
            if each.process.code is not None:
                raise DemoError(
                    f"{each.name} ended with exit code {each.process.code}; its log, {each.process.log}, ends with\n"
                    f"{each.process.tail()}"
                )

    def _logs(self) -> str:
        said = [
            f"{each.name}: {last_words(each) or 'nothing to complain of'} ({each.process.log})"
            for each in self.instances
        ]
        return "\n" + "\n".join(said)


class _Quiet:
    """Where there is no terminal, nothing turns."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _year(plan: Plan) -> Year:
    plan.prepare()
    year = load(fetch(plan.cache), plan.run / "data")
    return year if plan.records is None else subset(year, plan.records)


@asynccontextmanager
async def _broker(plan: Plan) -> AsyncIterator[str]:
    """A broker as a child process; where it is."""
    settings = {**SETTINGS, "num.partitions": PARTITIONS}
    broker = BrokerProcess(settings, data_dir=plan.run / "broker")
    broker.port = plan.port
    try:
        running = broker.__enter__()
    except RuntimeError as error:
        raise DemoError(f"the broker doesn't start: {error}") from None
    try:
        yield running.bootstrap_servers
    finally:
        broker.__exit__(None, None, None)


async def _batch_result(batch: Child, result: Path) -> dict[str, Groups]:
    deadline = time.monotonic() + _START
    with out.status("   the batch job runs …") if out.is_terminal else _Quiet():
        while not result.exists():
            if batch.code or time.monotonic() > deadline:
                raise DemoError(f"the batch job failed; its log, {batch.log}, ends with\n{batch.tail()}")
            await asyncio.sleep(0.1)
    return batch_groups(result)


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=out
    )


def _say(text: str) -> None:
    out.print(f"\n[bold magenta]{text}[/]")
