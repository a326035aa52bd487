"""What was measured, as tables: a column a contender, the aim beside it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from benchmarks.pipeline.contenders import Contender
from benchmarks.pipeline.measures import LARGE, SESSION_SECONDS, SMALL, Epochs, Latency, Pause, Throughput
from kohort.spark.serving.journals import Journals

EPOCH_MS, EPOCH_RATE = 500, 200_000

MET, MISSED = "[green]met[/]", "[red]missed[/]"


@dataclass
class Found:
    """What was measured of a contender; None: not measured."""

    throughput: Throughput | None = None
    latency: Latency | None = None
    pause: Pause | None = None
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """A row of the table: from which measure, what of it, and how it is shown."""

    title: str
    measure: str
    figure: Callable[[Any], float | None]
    form: str

    def cell(self, found: Found) -> str:
        """The figure as text; empty: not measured."""
        measured = getattr(found, self.measure)
        figure = None if measured is None else self.figure(measured)
        return "" if figure is None else self.form.format(figure)


ROWS = {
    "records": Row("records, all there at the start", "throughput", lambda found: found.records, "{:,}"),
    "start": Row("  start-up, not counted below", "throughput", lambda found: found.start_up, "{:.1f} s"),
    "rate": Row("  throughput", "throughput", lambda found: found.rate, "{:,.0f} records/s"),
    "cpu": Row("  processor time, start-up too", "throughput", lambda found: found.cpu, "{:,.1f} s"),
    "each": Row("    a record", "throughput", lambda found: found.cpu / found.records * 1e6, "{:,.1f} µs"),
    "broker": Row("    the broker's", "throughput", lambda found: found.broker_cpu / found.records * 1e6, "{:,.1f} µs"),
    "memory": Row("  peak memory", "throughput", lambda found: found.memory, "{:,.0f} MiB"),
    "written": Row("  results written", "throughput", lambda found: found.results, "{:,}"),
    "p50": Row("steady rate: latency, median", "latency", lambda found: found.p50 * 1000, "{:,.0f} ms"),
    "p99": Row("  99 %", "latency", lambda found: found.p99 * 1000, "{:,.0f} ms"),
    "busy": Row("  processor", "latency", lambda found: found.cpu_share, "{:.2f} cores"),
    "pause": Row("SIGKILL: longest wait for a result", "pause", lambda found: found.longest, "{:.1f} s"),
    "before": Row("  before it", "pause", lambda found: found.before, "{:.1f} s"),
    "promotion": Row("  until a standby ran, once it was told", "pause", lambda found: found.promotion, "{:.2f} s"),
}  # fmt: skip


def table(found: Mapping[str, Found], contenders: Sequence[Contender], rate: int) -> Table:
    """All contenders beside each other."""
    shown = Table(title=f"Delays by origin and hour; steady rate: {rate:,} records/s; sessions of {SESSION_SECONDS} s")
    shown.add_column("")
    for contender in contenders:
        shown.add_column(contender.title, justify="right")
    shown.add_column("Kohort's aim")
    shown.add_column("")
    for name, row in ROWS.items():
        cells = [row.cell(found[contender.name]) for contender in contenders]
        if any(cells):
            aims = _aims(name, found)
            shown.add_row(row.title, *cells, "\n".join(aim for aim, _ in aims), "\n".join(met for _, met in aims))
    shown.add_row("equal to the batch", *(_equality(found[contender.name]) for contender in contenders), "", "")
    return shown


def _aims(name: str, found: Mapping[str, Found]) -> list[tuple[str, str]]:
    def rate(contender: str) -> float | None:
        throughput = found[contender].throughput if contender in found else None
        return throughput.rate if throughput else None

    ours = found.get("kohort", Found())
    aims = []
    if name == "rate" and (own := rate("kohort")):
        for contender, times, title in (("structured", 1, "Structured Streaming"), ("quix", 10, "quixstreams")):
            if theirs := rate(contender):
                text = f"≥ {f'{times} × ' if times > 1 else ''}{title}: {own / theirs:.2f} ×"
                aims.append((text, MET if own >= times * theirs else MISSED))
    if name == "pause" and ours.pause:
        aims.append((f"< {SESSION_SECONDS + 2} s", MET if ours.pause.longest < SESSION_SECONDS + 2 else MISSED))
    if name == "promotion" and ours.pause and ours.pause.promotion is not None:
        aims.append(("< 1 s", MET if ours.pause.promotion < 1 else MISSED))
    return aims


def _equality(found: Found) -> str:
    measured = [one for one in (found.throughput, found.latency, found.pause) if one]
    different = sum(len(one.differences) for one in measured)
    texts = [f"[red]{different} groups differ[/]" if different else "[green]yes[/]"] if measured else []
    return "\n".join([*texts, *("[red]failed[/]" for _ in found.failures)])


def epochs(journals: Journals) -> Table:
    """Where Kohort's time went, by subtopology: its lanes run beside each other."""
    done = [one for _, one in journals.epochs()]
    shown = Table(title="Kohort's epochs in the run of all records at once")
    for column in ("subtopology", "epochs", "records", "median epoch", "in Spark", "in the transaction", "busy"):
        shown.add_column(column, justify="left" if column == "subtopology" else "right")
    span = max(epoch.at for epoch in done) - min(epoch.at - epoch.took_ms / 1000 for epoch in done)
    for part in sorted({epoch.part for epoch in done}):
        own = [epoch for epoch in done if epoch.part == part]
        total = sum(epoch.took_ms for epoch in own)
        shown.add_row(
            part,
            f"{len(own):,}",
            f"{sum(epoch.records for epoch in own):,}",
            f"{statistics.median(epoch.took_ms for epoch in own):,.0f} ms",
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
    small = {"0": f"{SMALL:,} flights: decode, aggregate", "1": "  their partials: merge with the store"}
    for part, title in small.items():
        own = [epoch for epoch in measured.small if epoch.part == part]
        took, job, commit = ([getattr(epoch, name) for epoch in own] for name in ("took_ms", "job_ms", "commit_ms"))
        middle = statistics.median(took)
        shown.add_row(
            title, f"{len(own)}", f"{middle:,.0f} ms", f"{sorted(took)[len(took) * 95 // 100]:,.0f} ms",
            f"{statistics.median(job):,.0f} ms", f"{statistics.median(commit):,.0f} ms",
            f"≤ {EPOCH_MS} ms", MET if middle <= EPOCH_MS else MISSED,
        )  # fmt: skip
    rates = [epoch.records / epoch.job_ms * 1000 for epoch in measured.large]
    rate = statistics.median(rates)
    shown.add_row(
        f"{LARGE:,} flights and more, flights/s in Spark", f"{len(rates)}", f"{rate:,.0f}", "", "", "",
        f"≥ {EPOCH_RATE:,}", MET if rate >= EPOCH_RATE else MISSED,
    )  # fmt: skip
    return shown


def reading(found: Mapping[str, dict[str, Any]]) -> Table:
    """The read path alone, with each data source that is there."""
    titles = {"kohort": 'spark.read.format("kohort")', "kafka": "Spark's Kafka connector"}
    rates = {name: one["records"] / statistics.median(one["seconds"]) for name, one in found.items()}
    shown = Table(title="Reading a topic into a DataFrame (median of rounds)")
    for column in ("", "records/s", "MiB/s", "the first time", "aim", ""):
        shown.add_column(column, justify="right" if column not in ("", "aim") else "left")
    for name, one in found.items():
        aim = ["", ""]
        if name == "kohort" and "kafka" in rates:
            aim = [
                f"≥ the connector: {rates[name] / rates['kafka']:.2f} ×",
                MET if rates[name] >= rates["kafka"] else MISSED,
            ]
        size = rates[name] * one["bytes"] / one["records"] / 2**20
        shown.add_row(titles[name], f"{rates[name]:,.0f}", f"{size:,.0f}", f"{one['first']:.1f} s", *aim)
    return shown
