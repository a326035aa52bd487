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

    Attributes:
        seconds: median time.
        metrics: what the placement is worth.
        least: what has to be restored and moved for all to be balanced, from what members had.
        standbys: how many could be placed.
        certified: whether counting was enough to see that nothing is better, and no solver ran; None for Kafka's.
    """

    seconds: float
    metrics: Metrics
    least: Least
    standbys: int
    certified: bool | None

    @property
    def restored_beyond(self) -> int:
        """State stores restored beyond the least; negative for who leaves the group out of balance instead."""
        return self.metrics.restore.stores - self.least.stores

    @property
    def moved_beyond(self) -> int:
        """Tasks moved beyond what the least restoring takes; negative likewise."""
        return self.metrics.moved - self.least.moves

    @property
    def standbys_missing(self) -> int:
        """Standbys that could be placed, and aren't."""
        return self.standbys - self.metrics.standbys_placed


@dataclass(frozen=True)
class Quality:
    """A column where less is better, down to 0.

    Attributes:
        title: what it is called.
        of: the figure. What is below 0 is shown, and compared as 0: it isn't better, but paid for with balance.
    """

    title: str
    of: Callable[[Figures], float]

    def compared(self, figures: Figures) -> float:
        """The figure as it is compared."""
        return max(0, self.of(figures))


QUALITIES = (
    Quality("imbalance of a subtopology", lambda of: max(b.imbalance for b in of.metrics.subtopologies.values())),
    Quality("imbalance of state", lambda of: of.metrics.stateful.imbalance),
    Quality("imbalance in all", lambda of: of.metrics.total.imbalance),
    Quality("spread of state stores", lambda of: float(of.metrics.state_stores.spread)),
    Quality("stores restored beyond the least", lambda of: of.restored_beyond),
    Quality("tasks moved beyond the least", lambda of: of.moved_beyond),
    Quality("standbys missing", lambda of: of.standbys_missing),
)


LEGEND = """\
imbalance: how far some member is from the floor or the ceiling of its fair share, in tasks.
moved: active tasks that had an owner and got another. What members had is what the same assignor gave them before.
beyond the least: more than the least that brings every member to fair shares, from what members had: first the fewest
  state stores to restore, then the fewest moves with that. It doesn't ask for an even spread of state stores. A
  negative number is what an assignor saves by leaving the group out of balance, and counts as 0 below.
*: a lower bound proved that nothing is better, so no solver ran."""


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
            " | ".join(f"{side.seconds * 1000:.1f}{'*' if side.certified else ''}" for side in sides),
            " | ".join(f"{side.metrics.moved:,}" for side in sides) if case.joining else "",
            *(" | ".join(f"{quality.of(side):.4g}" for side in sides) for quality in QUALITIES),
        )
    return shown


def summary(found: dict[Case, dict[str, Figures]], names: tuple[str, str]) -> Iterable[str]:
    """For each quality: in how many cases ours is better, as good, and worse, and the worst of each."""
    ours, theirs = names
    for quality in QUALITIES:
        pairs = [(quality.compared(figures[ours]), quality.compared(figures[theirs])) for figures in found.values()]
        better = sum(our < their for our, their in pairs)
        worse = sum(our > their for our, their in pairs)
        worst_ours, worst_theirs = (max(side) for side in zip(*pairs, strict=True))
        yield (
            f"{quality.title}: {ours} better in {better}, worse in {worse} of {len(pairs)} cases; "
            f"at most {worst_ours:.4g} against {worst_theirs:.4g}"
        )
    for name in names:
        saved = [-figures[name].moved_beyond for figures in found.values() if figures[name].moved_beyond < 0]
        yield f"{name} moves fewer than balance takes in {len(saved)} cases, by at most {max(saved, default=0)}"
    certified = sum(figures[ours].certified is True for figures in found.values())
    yield f"{ours}: no solver is needed in {certified} of {len(found)} cases"
    quicker = sum(figures[ours].seconds < figures[theirs].seconds for figures in found.values())
    for joining, what in ((False, "full"), (True, "one joins")):
        slowest = [
            max(figures[name].seconds for case, figures in found.items() if case.joining is joining) for name in names
        ]
        yield f"slowest, {what}: {ours} {slowest[0] * 1000:.0f} ms, {theirs} {slowest[1] * 1000:.0f} ms"
    yield f"{ours} is quicker in {quicker} of {len(found)} cases"
