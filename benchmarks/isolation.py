"""How long a member's heartbeat waits beside requests that are much work, with Kohort's broker and with Apache Kafka's.

    make bench-isolation
    python -m benchmarks.isolation --without-kafka

Members of 20 groups heartbeat one after the other while somebody else sends what the first column says, on connections
of its own; what each server's longest wait was stands beside it. Both have their own defaults, and both cores. An error
is one that a heartbeat was answered with: the member had been thrown out.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.broker import peers
from benchmarks.broker.peers import Peer
from kohort.protocol.errors import ErrorCode
from tests.isolation.attacks import Attack, attacks
from tests.isolation.watch import Waits, Watch, peak_memory
from tests.tools import MAVEN

AIM_MS = 250


async def measure(peer: Peer, wanted: list[Attack], console: Console) -> dict[str, Waits]:
    found = {}
    with console.status("") as status:
        async with Watch(peer.server.port, peer.pid) as watch:
            for attack in wanted:
                status.update(f"{peer.name}: {attack.name}")
                found[attack.name] = await watch.beside(attack)
    return found


def shown(waits: Waits) -> str:
    errors = ", ".join(ErrorCode(code).name for code in sorted(waits.errors))
    return f"{waits.longest * 1000:,.0f} ms" + (f" ({errors})" if errors else "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isolation", description=__doc__.partition("\n")[0])
    parser.add_argument("--without-kafka", action="store_true", help="needs neither Java nor Maven")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of everything: for CI")
    options = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 120)
    if not options.without_kafka and not MAVEN.is_there():
        console.print(f"Without Apache Kafka: {MAVEN.missing}.", soft_wrap=True)
        options.without_kafka = True
    wanted = attacks(0.02 if options.quick else 1.0)
    table = Table(title="The longest wait for a heartbeat's answer beside …")
    table.add_column("")
    columns: list[dict[str, Waits]] = []
    memory = []
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory:
        for make in (peers.kohort,) if options.without_kafka else (peers.kohort, peers.kafka):
            peer = make(Path(directory))
            peer.server.settings = peers.SETTINGS | peers.ONE_NODE
            peer.start()
            try:
                columns.append(asyncio.run(measure(peer, wanted, console)))
                memory.append(peak_memory(peer.pid))
            finally:
                peer.stop()
            table.add_column(peer.name, justify="right")
    table.add_column("aim", justify="right")
    for attack in wanted:
        table.add_row(attack.name, *(shown(column[attack.name]) for column in columns), f"≤ {AIM_MS} ms")
    table.add_row("the most memory", *(f"{used / 2**20:,.0f} MiB" for used in memory), "≤ 1,024 MiB")
    console.print(table)


if __name__ == "__main__":
    main()
