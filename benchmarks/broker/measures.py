"""What is measured, in which unit, and what Kohort aims at; the table of all that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Measure:
    """A row of the table.

    Attributes:
        key: what the figures are noted under.
        title: what the row is called.
        unit: of the figures.
        digits: after the point.
        more_is_better: how the two are compared.
        times: the aim, as a ratio to the peer: so many times its throughput at least, or its cost at most.
        least: the aim, as a figure.
    """

    key: str
    title: str
    unit: str = ""
    digits: int = 0
    more_is_better: bool = True
    times: float | None = None
    least: float | None = None

    def shown(self, figure: float) -> str:
        """A figure with its unit."""
        return f"{figure:,.{self.digits}f} {self.unit}".rstrip()

    @property
    def aim(self) -> str:
        """The aim in a few characters; empty where there is none."""
        if self.least is not None:
            return f"≥ {self.shown(self.least)}"
        if self.times is not None:
            return f"{'≥' if self.more_is_better else '≤'} {self.times:g} ×"
        return ""

    def met(self, ours: float, theirs: float) -> bool | None:
        """Whether the aim is met; None where there is none."""
        if self.least is not None:
            return ours >= self.least
        if self.times is not None:
            return ours >= self.times * theirs if self.more_is_better else ours <= self.times * theirs
        return None


def _shares(what: str) -> list[Measure]:
    """How busy both sides were: who is at 1 or more is what bounds the rest."""
    return [
        Measure(f"{what} server", "  cores used by the server", "", 2),
        Measure(f"{what} client", "  cores used by the client", "", 2),
    ]


def _flow(work: str, size: str) -> list[Measure]:
    return [
        Measure(f"{work} {size} MB/s", f"{work}, {size}", "MB/s", 1, times=1),
        Measure(f"{work} {size} records/s", f"{work}, {size}", "records/s", times=1),
        *_shares(f"{work} {size}"),
    ]


ALL = [
    Measure("ready", "time to ready", "s", 3, more_is_better=False, times=0.1),
    Measure("idle", "resident memory, idle", "MiB", more_is_better=False, times=0.125),
    Measure("loaded", "resident memory, after the load", "MiB", more_is_better=False, times=0.125),
    *(measure for size in ("100 B", "1 KiB") for work in ("produce", "consume") for measure in _flow(work, size)),
    Measure("p50", "produce one by one, p50", "ms", 3, more_is_better=False),
    Measure("p99", "produce one by one, p99", "ms", 3, more_is_better=False, times=2),
    Measure("heartbeats one", "heartbeats, one at a time on 100 connections", "/s", least=40_000),
    Measure("heartbeats one per core", "  for each second that the server ran", "/s"),
    *_shares("heartbeats one"),
    Measure("heartbeats pipelined", "heartbeats, 32 at a time on 100 connections", "/s", least=40_000),
    Measure("heartbeats pipelined per core", "  for each second that the server ran", "/s"),
    *_shares("heartbeats pipelined"),
    Measure("joins", "200 members join one group, until stable", "s", 3, more_is_better=False),
    Measure("generations", "  generations it took", "", more_is_better=False),
]


def table(
    figures: Mapping[Measure, tuple[float, ...]], title: str = "Kohort beside Apache Kafka, both with their defaults"
) -> Table:
    """A row a measure: Kohort's median, Kafka's, ours in parts of theirs, the aim."""
    shown = Table(title=f"{title} (medians)")
    shown.add_column("")
    for column in ("Kohort", "Apache Kafka", "Kohort ÷ Kafka", "aim"):
        shown.add_column(column, justify="right")
    shown.add_column("")
    for measure, (ours, theirs) in figures.items():
        verdict = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[measure.met(ours, theirs)]
        compared = "" if measure.title.startswith(" ") else f"{ours / theirs:.2f}"
        shown.add_row(measure.title, measure.shown(ours), measure.shown(theirs), compared, measure.aim, verdict)
    return shown
