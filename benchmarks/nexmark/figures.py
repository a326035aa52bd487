"""What was measured, as a table: a row a query and contender."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from rich.table import Table

from benchmarks.nexmark.batch import QUERIES
from benchmarks.pipeline.contenders import Contender
from benchmarks.pipeline.figures import Found

OURS = "kohort"


def table(found: Mapping[str, Mapping[str, Found]], contenders: Sequence[Contender], events: int) -> Table:
    """All queries, and what contenders needed for each.

    Args:
        found: by query, and by the contender's name.
        events: how many.
    """
    shown = Table(
        title=f"Nexmark: {events:,} events, all there at the start",
        caption="From the start of processing until the last result; processor time with the start. "
        "In brackets, and not in the median: where results of either aren't the batch's. "
        "Each JVM may have a heap of 2 GiB. "
        "Structured Streaming writes results at least once; its state is that of its checkpoint.",
    )
    for column in ("", "", "events/s", "Kohort's to it", "processor s a million", "peak MiB", "state MiB", "results"):
        shown.add_column(column, justify="right" if column else "left")
    shown.add_column("equal to the batch")
    for query, those in found.items():
        title = f"{query}  {QUERIES[query].title.partition(':')[0]}"
        for contender in contenders:
            if (one := those.get(contender.name)) is not None:
                ratio, fair = times(those, contender.name), is_fair(those, contender.name)
                shown.add_row(title, contender.title, *_cells(one, ratio, fair=fair))
                title = ""
        shown.add_section()
    for contender in contenders:
        comparable = [those for those in found.values() if is_fair(those, contender.name)]
        ratios = [ratio for those in comparable if (ratio := times(those, contender.name))]
        if ratios:
            shown.add_row("the median query", contender.title, "", f"{statistics.median(ratios):.2f} ×")
    return shown


def rates(found: Mapping[str, Mapping[str, Found]], contenders: Sequence[Contender]) -> dict[str, dict[str, float]]:
    """Events a second, by query and by the contender's title, of those that were measured."""
    return {
        query: {
            each.title: measured.rate
            for each in contenders
            if each.name in those and (measured := those[each.name].throughput) and not math.isnan(measured.rate)
        }
        for query, those in found.items()
    }


def measured(found: Mapping[str, Mapping[str, Found]], contenders: Sequence[Contender]) -> dict[str, dict[str, object]]:
    """What the table has, by query and by the contender's title: processor seconds a million events, memory in MiB."""
    return {
        query: {
            each.title: {
                "processor": round(one.cpu / one.records * 1e6, 2),
                "memory": round(one.memory),
                "state": round(one.state, 1),
                "results": one.results,
                "differences": one.differences,
                "epochs": len(one.epochs),
            }
            for each in contenders
            if each.name in those and (one := those[each.name].throughput)
        }
        for query, those in found.items()
    }


def times(found: Mapping[str, Found], other: str) -> float | None:
    """How many times as fast as another Kohort was, if both were measured."""
    ours, theirs = (found[name].throughput if name in found else None for name in (OURS, other))
    ratio = ours.rate / theirs.rate if ours and theirs and other != OURS else math.nan
    return None if math.isnan(ratio) else ratio


def is_fair(found: Mapping[str, Found], other: str) -> bool:
    """Whether both gave the batch's results: how fast one was that gave others says nothing."""
    return not any(found[name].differences for name in (OURS, other) if name in found)


def _cells(found: Found, ratio: float | None, *, fair: bool) -> list[str]:
    compared = f"[red]{found.differences[0]}[/]" if found.differences else "[green]yes[/]"
    if found.failures or (measured := found.throughput) is None:
        return [*[""] * 6, f"[red]failed: {found.failures[0].partition(':')[0]}[/]" if found.failures else ""]
    shown = "" if ratio is None else f"{ratio:.2f} ×"
    shown = shown if fair or not shown else f"[red]({shown})[/]"
    return [
        "–" if math.isnan(measured.rate) else f"{measured.rate:,.0f}",
        shown,
        f"{measured.cpu / measured.records * 1e6:,.1f}",
        f"{measured.memory:,.0f}",
        f"{measured.state:,.1f}",
        f"{measured.results:,}",
        compared,
    ]
