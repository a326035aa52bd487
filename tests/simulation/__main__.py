"""Run as many seeds as wanted: `python -m tests.simulation --seeds 10000 --first 1 --size small`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.books import InvariantError
from tests.simulation.scenario import LARGE, SMALL, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="number of seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--size", choices=["small", "large"], default="small", help="groups and members a run has")
    options = parser.parse_args()
    scale = LARGE if options.size == "large" else SMALL
    began, total = time.monotonic(), Counter[str]()
    for seed in range(options.first, options.first + options.seeds):
        try:
            total += simulate(seed, scale)
        except InvariantError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    took = time.monotonic() - began
    counts = ", ".join(f"{count:,} {what}" for what, count in total.items())
    sys.stdout.write(f"{counts} in {took:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
