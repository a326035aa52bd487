"""What was measured, as tables: a column a contender, the aim beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from benchmarks.pipeline.cases import Case, Flights
from benchmarks.pipeline.contenders import Contender
from benchmarks.pipeline.measures import (
    LARGE,
    SESSION_SECONDS,
    SMALL,
    Epochs,
    Latency,
    Pause,
    Reading,
    Start,
    Throughput,
    middle,
)
from kohort.spark.monitoring.events import EpochDone

EPOCH_MS, EPOCH_RATE = 500, 200_000
START_S, FIRST_S = 7, 10
P50_MS, P99_MS, PAIR_MS = 200, 350, 300
PAUSE_S = 2.5
AUCTIONS_TIMES, AUCTIONS_MIB = 1.5, 1_536

MET, MISSED = "[green]met[/]", "[red]missed[/]"


@dataclass
class Found:
    """What was measured of a contender; None: not measured."""

    start: Start | None = None
    throughput: Throughput | None = None
    latency: Latency | None = None
    pause: Pause | None = None
    epochs: Epochs | None = None
    reading: Reading | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def compared(self) -> list[Start | Throughput | Latency | Pause]:
        """What was measured with results that a batch gives, too."""
        return [one for one in (self.start, self.throughput, self.latency, self.pause) if one]

    @property
    def differences(self) -> list[str]:
        """Where results weren't the batch's."""
        return [difference for one in self.compared for difference in one.differences]


@dataclass(frozen=True)
class Row:
    """A row of the table: from which measure, what of it, and how it is shown."""

    title: str
    measure: str
    figure: Callable[[Any], float | None]
    form: str

    def value(self, found: Found) -> float | None:
        """The figure, in the unit in which it is shown; None: not measured."""
        measured = getattr(found, self.measure)
        return None if measured is None else self.figure(measured)

    def cell(self, found: Found) -> str:
        """The figure as text; empty: not measured."""
        figure = self.value(found)
        return "" if figure is None else "–" if math.isnan(figure) else self.form.format(figure)


ROWS = {
    "start": Row("from the start until it processes", "start", lambda found: found.tasks, "{:.1f} s"),
    "first": Row("  until the first result", "start", lambda found: found.first, "{:.1f} s"),
    "start_cpu": Row("  processor time until then", "start", lambda found: found.cpu, "{:.1f} s"),
    "records": Row("records, all there at the start", "throughput", lambda found: found.records, "{:,}"),
    "start_up": Row("  start-up, not counted below", "throughput", lambda found: found.start_up, "{:.1f} s"),
    "rate": Row("  throughput", "throughput", lambda found: found.rate, "{:,.0f} records/s"),
    "cpu": Row("  processor time, start-up too", "throughput", lambda found: found.cpu, "{:,.1f} s"),
    "each": Row("    a record", "throughput", lambda found: found.cpu / found.records * 1e6, "{:,.1f} µs"),
    "broker": Row("    the broker's", "throughput", lambda found: found.broker_cpu / found.records * 1e6, "{:,.1f} µs"),
    "memory": Row("  peak memory", "throughput", lambda found: found.memory, "{:,.0f} MiB"),
    "state": Row("  state on the disk", "throughput", lambda found: found.state, "{:,.0f} MiB"),
    "written": Row("  results written", "throughput", lambda found: found.results, "{:,}"),
    "p50": Row("steady rate: latency, median", "latency", lambda found: found.p50 * 1000, "{:,.0f} ms"),
    "p99": Row("  99 %", "latency", lambda found: found.p99 * 1000, "{:,.0f} ms"),
    "busy": Row("  processor", "latency", lambda found: found.cpu_share, "{:.2f} cores"),
    "pause": Row("SIGKILL: longest wait for a result", "pause", lambda found: found.longest, "{:.1f} s"),
    "before": Row("  before it", "pause", lambda found: found.before, "{:.1f} s"),
    "pair": Row("  median before it", "pause", lambda found: found.median * 1000, "{:,.0f} ms"),
    "promotion": Row("  until a standby ran, once it was told", "pause", lambda found: found.promotion, "{:.2f} s"),
}  # fmt: skip


def report(
    found: Mapping[str, Found], contenders: Sequence[Contender], case: type[Case[Any]], rate: int
) -> Iterator[RenderableType]:
    """All that there is to show."""
    if any(one.compared for one in found.values()):
        yield table(found, contenders, case, rate)
        for contender in contenders:
            yield from (f"  {remark}" for remark in contender.remarks.get(case.name, ()))
    for contender in contenders:
        if (start := found[contender.name].start) and start.phases:
            yield phases(contender.title, start)
    for one in found.values():
        if one.throughput and one.throughput.epochs:
            yield epochs(one.throughput.epochs)
        if one.epochs:
            yield costs(one.epochs)
    if any(one.reading for one in found.values()):
        yield reading(found)


def by_row(found: Mapping[str, Found], contenders: Sequence[Contender]) -> dict[str, dict[str, float]]:
    """The figures of the table's rows, by the row's name in `ROWS` and the contender's title, of what was measured."""
    every = {name: {each.title: row.value(found[each.name]) for each in contenders} for name, row in ROWS.items()}
    known = {
        name: {title: figure for title, figure in those.items() if figure is not None and not math.isnan(figure)}
        for name, those in every.items()
    }
    return {name: those for name, those in known.items() if those}


def table(found: Mapping[str, Found], contenders: Sequence[Contender], case: type[Case[Any]], rate: int) -> Table:
    """All contenders beside each other."""
    steady = f"; steady rate: {rate:,} records/s; sessions of {SESSION_SECONDS} s" if "latency" in case.measures else ""
    shown = Table(title=f"{case.title}{steady}")
    shown.add_column("")
    for contender in contenders:
        shown.add_column(contender.title, justify="right")
    shown.add_column("Kohort's aim")
    shown.add_column("")
    for name, row in ROWS.items():
        cells = [row.cell(found[contender.name]) for contender in contenders]
        if any(cells):
            aims = (_flights_aims if case is Flights else _auctions_aims)(name, found)
            shown.add_row(row.title, *cells, "\n".join(aim for aim, _ in aims), "\n".join(met for _, met in aims))
    shown.add_row("equal to the batch", *(_equality(found[contender.name]) for contender in contenders), "", "")
    return shown


def _rate(found: Mapping[str, Found], contender: str) -> float | None:
    throughput = found[contender].throughput if contender in found else None
    return throughput.rate if throughput and not math.isnan(throughput.rate) else None


def _auctions_aims(name: str, found: Mapping[str, Found]) -> list[tuple[str, str]]:
    theirs = [rate for rate in (_rate(found, "structured"), _rate(found, "streams")) if rate]
    if name == "rate" and theirs and (own := _rate(found, "kohort")):
        times = own / max(theirs)
        return [(f"≥ {AUCTIONS_TIMES} × the faster: {times:.2f} ×", MET if times >= AUCTIONS_TIMES else MISSED)]
    ours = found["kohort"].throughput if "kohort" in found else None
    if name == "memory" and ours:
        return [(f"≤ {AUCTIONS_MIB:,} MiB", MET if ours.memory <= AUCTIONS_MIB else MISSED)]
    return []


def _flights_aims(name: str, found: Mapping[str, Found]) -> list[tuple[str, str]]:
    ours = found.get("kohort", Found())
    aims = []
    if name == "rate" and (own := _rate(found, "kohort")):
        for contender, times, title in (("structured", 1, "Structured Streaming"), ("quix", 10, "quixstreams")):
            if theirs := _rate(found, contender):
                text = f"≥ {f'{times} × ' if times > 1 else ''}{title}: {own / theirs:.2f} ×"
                aims.append((text, MET if own >= times * theirs else MISSED))
    for measured, limit, unit in (
        ("start", START_S, "s"), ("first", FIRST_S, "s"), ("p50", P50_MS, "ms"), ("p99", P99_MS, "ms"),
        ("pair", PAIR_MS, "ms"), ("pause", PAUSE_S, "s"),
    ):  # fmt: skip
        if name == measured and (taken := getattr(ours, ROWS[name].measure)) is not None:
            figure = ROWS[name].figure(taken)
            aims.append((f"≤ {limit} {unit}", MET if figure is not None and figure <= limit else MISSED))
    if name == "promotion" and ours.pause and ours.pause.promotion is not None:
        aims.append(("< 1 s", MET if ours.pause.promotion < 1 else MISSED))
    return aims


def _equality(found: Found) -> str:
    different = len(found.differences)
    texts = [f"[red]{different} groups differ[/]" if different else "[green]yes[/]"] if found.compared else []
    return "\n".join([*texts, *(f"[red]failed: {failure.partition(':')[0]}[/]" for failure in found.failures)])


def phases(title: str, start: Start) -> Table:
    """What an instance's start is made of."""
    shown = Table(title=f"{title}'s start")
    for column, justify in (("", "left"), ("took", "right"), ("done after", "right")):
        shown.add_column(column, justify=justify)  # type: ignore[arg-type]
    before = 0.0
    for phase, at in [*start.phases.items(), ("the first result", start.first)]:
        shown.add_row(phase, f"{at - before:.1f} s", f"{at:.1f} s")
        before = at
    return shown


def epochs(done: Sequence[EpochDone]) -> Table:
    """Where Kohort's time went, by subtopology."""
    shown = Table(title="Kohort's epochs in the run of all records at once")
    for column in ("subtopology", "epochs", "records", "median epoch", "in Spark", "in the transaction", "busy"):
        shown.add_column(column, justify="left" if column == "subtopology" else "right")
    span = max(epoch.at for epoch in done) - min(epoch.at - epoch.took_ms / 1000 for epoch in done)
    for part in sorted({epoch.subtopology for epoch in done}):
        own = [epoch for epoch in done if epoch.subtopology == part]
        total = sum(epoch.took_ms for epoch in own)
        shown.add_row(
            part,
            f"{len(own):,}",
            f"{sum(epoch.records for epoch in own):,}",
            f"{middle([epoch.took_ms for epoch in own]):,.0f} ms",
            f"{sum(epoch.job_ms for epoch in own) / total:.0%}",
            f"{sum(epoch.commit_ms for epoch in own) / total:.0%}",
            f"{total / 1000 / span:.0%}",
        )
    return shown


def costs(measured: Epochs) -> Table:
    """What epochs cost, of few and of many flights."""
    shown = Table(title="Kohort's epochs in an application that has nothing else to do")
    for column in ("", "epochs", "median", "95 %", "in Spark", "in the transaction", "aim", ""):
        shown.add_column(column, justify="right" if column not in ("", "aim") else "left")
    took = sorted(epoch.took_ms for epoch in measured.small)
    shown.add_row(
        f"{SMALL:,} flights: decode, aggregate, merge", f"{len(took)}", _number(middle(took), " ms"),
        _number(took[len(took) * 95 // 100] if took else math.nan, " ms"),
        _number(middle([epoch.job_ms for epoch in measured.small]), " ms"),
        _number(middle([epoch.commit_ms for epoch in measured.small]), " ms"),
        f"≤ {EPOCH_MS} ms", MET if middle(took) <= EPOCH_MS else MISSED,
    )  # fmt: skip
    # What counts is the whole epoch: the transaction, and all around the job, hold the next records up as well.
    in_spark = middle([epoch.records / epoch.job_ms * 1000 for epoch in measured.large])
    shown.add_row(
        f"{LARGE:,} flights and more, flights/s", f"{len(measured.large)}", _number(measured.rate), "",
        _number(in_spark), "", f"≥ {EPOCH_RATE:,}", MET if measured.rate >= EPOCH_RATE else MISSED,
    )  # fmt: skip
    return shown


def _number(figure: float, unit: str = "") -> str:
    return "" if math.isnan(figure) else f"{figure:,.0f}{unit}"


def reading(found: Mapping[str, Found]) -> Table:
    """The read path alone, with each data source that is there."""
    titles = {"kohort": 'spark.read.format("kohort")', "structured": "Spark's Kafka connector"}
    read = {name: one.reading for name, one in found.items() if one.reading}
    shown = Table(title="Reading a topic into a DataFrame (median of rounds)")
    for column in ("", "records/s", "MiB/s", "the first time", "aim", ""):
        shown.add_column(column, justify="right" if column not in ("", "aim") else "left")
    for name, one in read.items():
        aim = ["", ""]
        if name == "kohort" and (other := read.get("structured")):
            aim = [f"≥ the connector: {one.rate / other.rate:.2f} ×", MET if one.rate >= other.rate else MISSED]
        size = one.rate * one.bytes / one.records / 2**20
        shown.add_row(titles[name], f"{one.rate:,.0f}", f"{size:,.0f}", f"{one.first:.1f} s", *aim)
    return shown
