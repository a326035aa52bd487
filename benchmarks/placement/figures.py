"""What is measured of a placement, and the tables of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich import box
from rich.table import Table

from benchmarks.placement.optimum import Least
from benchmarks.placement.problems import Case
from kohort.coordinator.placement.metrics import Metrics


@dataclass(frozen=True)
class Figures:
    """What an assignor made of a case.

    Who leaves a group out of balance may well restore and move less than has to be; that isn't counted.

    Attributes:
        seconds: median time.
        metrics: what the placement is worth.
        least: what has to be restored and moved for all to be balanced, from what members had.
        standbys: how many could be placed.
    """

    seconds: float
    metrics: Metrics
    least: Least
    standbys: int

    @property
    def restored_in_vain(self) -> int:
        """State stores restored beyond the least."""
        return max(0, self.metrics.restore.stores - self.least.stores)

    @property
    def moved_in_vain(self) -> int:
        """Tasks moved beyond what the least restoring takes."""
        return max(0, self.metrics.moved - self.least.moves)

    @property
    def standbys_missing(self) -> int:
        """Standbys that could be placed, and aren't."""
        return self.standbys - self.metrics.standbys_placed


@dataclass(frozen=True)
class Quality:
    """A column where less is better.

    Attributes:
        title: what it is called.
        of: the figure.
    """

    title: str
    of: Callable[[Figures], float]


QUALITIES = (
    Quality("imbalance of a subtopology", lambda of: max(b.imbalance for b in of.metrics.subtopologies.values())),
    Quality("imbalance of state", lambda of: of.metrics.stateful.imbalance),
    Quality("imbalance in all", lambda of: of.metrics.total.imbalance),
    Quality("spread of state stores", lambda of: float(of.metrics.state_stores.spread)),
    Quality("stores restored beyond the least", lambda of: of.restored_in_vain),
    Quality("tasks moved beyond the least", lambda of: of.moved_in_vain),
    Quality("standbys missing", lambda of: of.standbys_missing),
)


def table(found: dict[Case, dict[str, Figures]], names: tuple[str, str]) -> Table:
    """A row a case; in each cell ours, a stroke, and Kafka's."""
    ours, theirs = names
    shown = Table(title=f"{ours} | {theirs}", box=box.SIMPLE_HEAD)
    for header in ("members", "a process", "subtopologies × partitions", "standbys", "", "ms", "moved"):
        shown.add_column(header, justify="right")
    for quality in QUALITIES:
        shown.add_column(quality.title, justify="right")
    for case, figures in found.items():
        sides = figures[ours], figures[theirs]
        shown.add_row(
            f"{case.members:,}",
            str(case.per_process),
            f"{case.subtopologies} × {case.partitions}",
            str(case.standbys),
            "one joins" if case.joining else "full",
            " | ".join(f"{side.seconds * 1000:.1f}" for side in sides),
            " | ".join(f"{side.metrics.moved:,}" for side in sides) if case.joining else "",
            *(" | ".join(f"{quality.of(side):.4g}" for side in sides) for quality in QUALITIES),
        )
    return shown


def summary(found: dict[Case, dict[str, Figures]], names: tuple[str, str]) -> Iterable[str]:
    """For each quality: in how many cases ours is better, as good, and worse, and the worst of each."""
    ours, theirs = names
    for quality in QUALITIES:
        pairs = [(quality.of(figures[ours]), quality.of(figures[theirs])) for figures in found.values()]
        better = sum(our < their for our, their in pairs)
        worse = sum(our > their for our, their in pairs)
        worst_ours, worst_theirs = (max(side) for side in zip(*pairs, strict=True))
        yield (
            f"{quality.title}: {ours} better in {better}, worse in {worse} of {len(pairs)} cases; "
            f"at most {worst_ours:.4g} against {worst_theirs:.4g}"
        )
    quicker = sum(figures[ours].seconds < figures[theirs].seconds for figures in found.values())
    for joining, what in ((False, "full"), (True, "one joins")):
        slowest = [
            max(figures[name].seconds for case, figures in found.items() if case.joining is joining) for name in names
        ]
        yield f"slowest, {what}: {ours} {slowest[0] * 1000:.0f} ms, {theirs} {slowest[1] * 1000:.0f} ms"
    yield f"{ours} is quicker in {quicker} of {len(found)} cases"
