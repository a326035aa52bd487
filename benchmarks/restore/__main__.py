"""Kohort restores a store from its changelog, beside Kafka Streams: the same changelog, the same broker, in one run.

    make bench-restore
    python -m benchmarks.restore --keys 5000000 --contenders kohort

Each restores it into an empty directory, is killed, and started again. Both have the defaults of their makers, but for
the JVM's heap of 2 GiB; Kafka Streams is a whole application, with an empty source; of Kohort it is the part that
restores, without Spark's session.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from benchmarks.available import available
from benchmarks.restore import changelog
from benchmarks.restore.contenders import CONTENDERS, Contender, Job
from benchmarks.restore.measures import RESTARTS, Restarted, Restored, restart, restore
from kohort.client import Admin
from kohort.testing import BrokerProcess

SIZES = [100_000, 1_000_000, 5_000_000]
BROKER_SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.session.timeout.ms": 6_000,
    "group.streams.heartbeat.interval.ms": 500,
    "group.streams.disconnect.timeout.ms": 1_000,
}
"""A member that was killed doesn't keep its task from the one that is started after it."""


def main() -> int:
    """Measure; 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore", description=__doc__.partition("\n")[0])
    names = [contender.name for contender in CONTENDERS]
    parser.add_argument("--keys", type=int, nargs="+", default=SIZES, help="how many, one changelog after the other")
    parser.add_argument("--partitions", type=int, default=1, help="of a changelog: a store for each")
    parser.add_argument("--contenders", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="20,000 keys, and one restart: for CI")
    options = parser.parse_args()
    restarts = RESTARTS
    if options.quick:
        options.keys, restarts = [20_000], 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind
    console = Console(width=None if Console().is_terminal else 120)
    contenders = available((each for each in CONTENDERS if each.name in options.contenders), console)
    with tempfile.TemporaryDirectory(prefix="kohort-bench-", ignore_cleanup_errors=True) as directory:
        for contender in contenders:
            contender.prepare()
        for keys in options.keys:
            with BrokerProcess(BROKER_SETTINGS) as broker:
                found = _measure(contenders, broker, Path(directory), keys, options.partitions, restarts)
            console.print(_table(found, keys))
    return 0 if contenders else 1


def _measure(
    contenders: Sequence[Contender],
    broker: BrokerProcess,
    directory: Path,
    keys: int,
    partitions: int,
    restarts: int,
) -> dict[str, tuple[Restored, Restarted]]:
    """What was found, by the contender's title."""
    servers = broker.bootstrap_servers
    found = {}
    for contender in contenders:
        # Each has a changelog of its own, which is filled just before.
        job = Job(servers, contender.name, partitions, keys, str(directory / f"{contender.name}-{keys}"))
        asyncio.run(_fill(job))
        found[contender.title] = restore(contender, job, broker.pid), restart(contender, job, restarts)
    return found


async def _fill(job: Job) -> None:
    async with Admin(job.servers) as admin:
        await admin.topics.create(job.source, partitions=job.partitions, replication_factor=1)
    await changelog.fill(job.servers, job.changelog, job.keys, job.partitions)


def _table(found: dict[str, tuple[Restored, Restarted]], keys: int) -> Table:
    shown = Table(Column(f"{keys:,} keys"), *(Column(title, justify="right") for title in found))

    def row(title: str, figure: Callable[[Restored, Restarted], str]) -> None:
        shown.add_row(title, *(figure(*each) for each in found.values()))

    row("records/s", lambda restored, _: "–" if math.isnan(restored.rate) else f"{restored.rate:,.0f}")
    row("processor time a record", lambda restored, _: f"{restored.cpu / restored.records * 1e6:.2f} µs")
    row("  of the broker", lambda restored, _: f"{restored.broker_cpu / restored.records * 1e6:.2f} µs")
    row("most memory", lambda restored, _: f"{restored.memory:,.0f} MiB")
    row("stores are ready, after SIGKILL", lambda _, restarted: f"{restarted.killed:.2f} s")
    row("  after a clean end", lambda _, restarted: f"{restarted.closed:.2f} s")
    row("  from the start of the process", lambda _, restarted: f"{restarted.process:.2f} s")
    return shown


if __name__ == "__main__":
    sys.exit(main())
