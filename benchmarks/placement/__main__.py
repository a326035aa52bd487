"""Our assignors beside Kafka's StickyTaskAssignor, on the grid that Kafka's own developers use.

    make bench-placement
    python -m benchmarks.placement --quick
    python -m benchmarks.placement --members 1000 --subtopologies 100 --assignor sticky

Both are called from where they run, warmed up, on the same groups: Kafka's in a JVM, ours here. Times are medians.
Where one member joins, the others have what the same assignor gave them before. What the placements are worth is
computed by the same code for both, and the least that must be restored and moved by a flow that neither uses.
"""

from __future__ import annotations

import argparse
import statistics
import time
from unittest.mock import patch

from rich.console import Console

from benchmarks.placement.figures import LEGEND, Figures, summary, table
from benchmarks.placement.kafka import Kafka
from benchmarks.placement.optimum import least
from benchmarks.placement.problems import Case, grid, having, with_last, without_last
from kohort.coordinator.placement import ASSIGNORS, Assignor, Group, Placement
from kohort.coordinator.placement.metrics import measure
from kohort.coordinator.placement.min_cost_flow import MinCostFlow
from tests.tools import MAVEN, need

ROUNDS = 7


def ours(assignor: Assignor, group: Group, rounds: int) -> tuple[Placement, list[float]]:
    """The same as `Kafka.place` does for Kafka's."""
    placement = assignor(group)  # imports what it needs
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        placement = assignor(group)
        seconds.append(time.perf_counter() - started)
    return placement, seconds


def is_certified(assignor: Assignor, group: Group) -> bool:
    """Whether an assignor of ours asks no solver; where one is asked at all, a flow is solved."""
    with patch.object(MinCostFlow, "solve", autospec=True, side_effect=MinCostFlow.solve) as solve:
        assignor(group)
    return not solve.called


def figures(group: Group, placement: Placement, seconds: list[float], certified: bool | None) -> Figures:
    stateful = sum(subtopology.partitions for subtopology in group.subtopologies if subtopology.state_stores)
    others = len({member.process for member in group.members}) - 1
    standbys = stateful * min(group.standbys, others)
    return Figures(statistics.median(seconds), measure(group, placement), least(group), standbys, certified)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the small groups, fewer rounds: for CI")
    parser.add_argument("--assignor", choices=list(ASSIGNORS), default="optimal", help="which of ours")
    for name in ("members", "per-process", "subtopologies", "partitions", "standbys"):
        parser.add_argument(f"--{name}", type=int, help="only cases with so many")
    parser.add_argument("--stores", type=int, default=1, help="stateful tasks have one to so many state stores (1)")
    options = parser.parse_args()
    rounds = 3 if options.quick else ROUNDS
    wanted = {
        name: value
        for name in ("members", "per_process", "subtopologies", "partitions", "standbys")
        if (value := getattr(options, name)) is not None
    }
    cases = [
        case
        for case in grid(options.quick, options.stores)
        if all(getattr(case, name) == value for name, value in wanted.items())
    ]
    if not cases:
        parser.error("the grid has no such case")
    need(MAVEN)
    names = f"Kohort's {options.assignor}", "Kafka's sticky"
    assignor = ASSIGNORS[options.assignor]
    found: dict[Case, dict[str, Figures]] = {}
    console = Console(width=None if Console().is_terminal else 200)
    with Kafka() as kafka, console.status("") as status:
        for number, case in enumerate(cases, 1):
            found[case] = {}
            for name, place in (
                (names[0], lambda group, rounds: ours(assignor, group, rounds)),
                (names[1], kafka.place),
            ):
                status.update(f"{number} of {len(cases)}: {name}, {case}")
                group = case.group()
                if case.joining:
                    before = without_last(group)
                    group = with_last(having(before, place(before, 1)[0]), group)
                certified = is_certified(assignor, group) if name == names[0] else None
                found[case][name] = figures(group, *place(group, rounds), certified)
    console.print(table(found, names))
    console.print(LEGEND, markup=False, highlight=False)
    for line in summary(found, names):
        console.print(line)


if __name__ == "__main__":
    main()
