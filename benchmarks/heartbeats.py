"""Heartbeats of a streams and of a consumer group, beside those of classic groups, and beside Apache Kafka's server.

    make bench-heartbeats
    python -m benchmarks.heartbeats --without-kafka

Each group has 1,000 members that are settled: nothing is new, for them nor for the server. Both servers have their own
defaults, and one core; the generator has another. Classic heartbeats are those of 100 groups with a member each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.broker import peers
from benchmarks.broker.peers import Peer
from benchmarks.broker.process import run_on
from tests.tools import MAVEN

SERVER_CORE, GENERATOR_CORE = 0, 1
AIM = 25_000
"""Heartbeats a second of a streams or a consumer group, with one core."""
ROUNDS = 2
"""The first warms up."""
MODERN = ("streams", "consumer")
DEPTHS = {1: "one at a time on 100 connections", 32: "32 at a time on 100 connections"}


def generate(module: str, *arguments: str | float) -> dict[str, Any]:
    """What a generator measured, on its own core."""
    done = subprocess.run([sys.executable, "-m", module, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def heartbeats(peer: Peer, members: int, seconds: float, rounds: int) -> dict[str, Any]:
    """All kinds of heartbeats, by depth. Of the modern ones the last round counts."""
    run_on(peer.pid, {SERVER_CORE})
    address = (peer.server.host, peer.server.port, GENERATOR_CORE)
    found = {}
    for kind in MODERN:
        for _ in range(rounds):
            found[kind] = generate("benchmarks.broker.settled", kind, *address, peer.pid, members, seconds, *DEPTHS)
    classic = {
        str(depth): generate("benchmarks.broker.groups", "heartbeats", *address, peer.pid, depth, seconds)
        for depth in DEPTHS
    }
    return {**found, "classic": {"found": classic}}


def table(found: dict[str, dict[str, Any]], members: int) -> Table:
    """A row for each kind and depth."""
    shown = Table(title=f"Heartbeats of {members:,} settled members of a group, and of classic groups")
    shown.add_column("")
    for peer in found:
        shown.add_column(peer, justify="right")
    shown.add_column("aim", justify="right")

    for number, manner in DEPTHS.items():
        for kind in (*MODERN, "classic"):
            measured = [peer[kind]["found"][str(number)] for peer in found.values()]
            aim = f"≥ {AIM:,} /s" if kind in MODERN else ""
            shown.add_row(f"{kind}, {manner}", *(f"{each['rate']:,.0f} /s" for each in measured), aim)
            per_core = (f"{each['rate'] / each['server']:,.0f} /s" for each in measured)
            shown.add_row("  for each second that the server ran", *per_core)
            shown.add_row("  cores used by the server", *(f"{each['server']:.2f}" for each in measured))
            shown.add_row("  cores used by the generator", *(f"{each['generator']:.2f}" for each in measured))
    for kind in MODERN:
        for what in ("request", "answer"):
            cells = [f"{peer[kind][what]} bytes" for peer in found.values()]
            shown.add_row(f"{kind}, {what} with its header", *cells, "")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heartbeats", description=__doc__.partition("\n")[0])
    parser.add_argument("--members", type=int, default=1000, help="of each modern group, at least 100")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--without-kafka", action="store_true", help="needs neither Java nor Maven")
    parser.add_argument("--quick", action="store_true", help="100 members, a fifth of a second, no warm-up: for CI")
    options = parser.parse_args()
    rounds = ROUNDS
    if options.quick:
        options.members, options.seconds, rounds = 100, 0.2, 1
    console = Console(width=None if Console().is_terminal else 120)
    if not options.without_kafka and not MAVEN.is_there():
        console.print(f"Without Apache Kafka: {MAVEN.missing}.", soft_wrap=True)
        options.without_kafka = True
    found = {}
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as directory, console.status("") as status:
        for make in (peers.kohort,) if options.without_kafka else (peers.kohort, peers.kafka):
            peer = make(Path(directory))
            status.update(f"heartbeats with {peer.name}")
            peer.start()
            try:
                found[peer.name] = heartbeats(peer, options.members, options.seconds, rounds)
            finally:
                peer.stop()
    console.print(table(found, options.members))


if __name__ == "__main__":
    main()
