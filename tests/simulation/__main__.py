"""Run as many seeds as wanted: of groups, whole instances, queues, share partitions; or see how available tasks are.

python -m tests.simulation --seeds 10000 --first 1 --kind streams
python -m tests.simulation --availability
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter

from tests.simulation import scenario as classic
from tests.simulation.books import InvariantError
from tests.simulation.consumer_groups import scenario as consumer
from tests.simulation.queues import scenario as queues
from tests.simulation.runtime import scenario as runtime
from tests.simulation.runtime.application import PROGRAM_KINDS
from tests.simulation.share_partitions import scenario as share_partitions
from tests.simulation.streams import scenario as streams
from tests.simulation.streams.availability import report

KINDS = ("classic", "consumer", "streams", "runtime", "programs", "queues", "share_partitions")


def simulate_seed(kind: str, seed: int, size: str) -> Counter[str]:
    """One seed of one kind. Consumer groups, whole instances, queues and share partitions have but one size."""
    if kind == "consumer":
        return consumer.simulate(seed)
    if kind == "queues":
        return queues.simulate(seed)
    if kind == "share_partitions":
        return share_partitions.simulate(seed)
    if kind == "runtime":
        return runtime.simulate(seed)
    if kind == "programs":
        return runtime.simulate(seed, kinds=PROGRAM_KINDS)
    if kind == "classic":
        return classic.simulate(seed, classic.SIZES[size])
    return streams.simulate(seed, streams.SIZES[size])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1_000, help="number of seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--size", choices=[*classic.SIZES], default="small", help="groups and members a run has")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all", help="which groups")
    parser.add_argument("--availability", action="store_true", help="print how available stateful tasks are, instead")
    options = parser.parse_args()
    logging.getLogger("kohort").setLevel(logging.CRITICAL)
    if options.availability:
        for line in report():
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        return 0
    for kind in KINDS if options.kind == "all" else (options.kind,):
        began, total = time.monotonic(), Counter[str]()
        for seed in range(options.first, options.first + options.seeds):
            try:
                total += simulate_seed(kind, seed, options.size)
            except InvariantError as error:
                sys.stderr.write(f"{error}\n")
                return 1
        took = time.monotonic() - began
        counts = ", ".join(f"{count:,} {what}" for what, count in total.items())
        sys.stdout.write(f"{kind}: {counts} in {took:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
