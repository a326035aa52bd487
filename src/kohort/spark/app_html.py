"""What a notebook shows of an application: its topology, and of an instance that runs its tasks, lag and rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kohort.notebook_html import Cell, Html, badge, html, lines, page, paragraph, table
from kohort.number_ranges import numbers
from kohort.plurals import several
from kohort.spark.monitoring.events import TasksNow
from kohort.spark.monitoring.overview import Overview
from kohort.spark.program.topology_outline import SubtopologyOutline
from kohort.streams.tasks import TaskId

if TYPE_CHECKING:
    from kohort.spark.queues.counts import QueueCounts

_TONES: Final = {
    "running": "good", "restoring": "busy", "starting": "busy", "stopping": "busy", "waiting": "odd",
    "stopped": "plain", "failing": "bad", "failed": "bad",
}  # fmt: skip
_TOPOLOGY: Final = ("subtopology", "reads", "stores", "writes")
_MOST: Final = 8
"""Stores that are being restored, of which each has a line."""


def application_page(application_id: str, outlines: Sequence[SubtopologyOutline], *remarks: str) -> Html:
    """A program that doesn't run here, and what there is to remark."""
    rows = ([each.id, lines(each.reads), lines(each.stores), lines(each.writes)] for each in outlines)
    return page("streams application", application_id, table(_TOPOLOGY, rows), *(paragraph(each) for each in remarks))


def running_page(
    application_id: str,
    state: str,
    overview: Overview,
    outlines: Sequence[SubtopologyOutline],
    failure: str | None,
) -> Html:
    """An instance of it that runs in this process, or has run."""
    parts: list[Cell] = [paragraph(_figures(overview)), *_before_it_runs(state, overview)]
    if failure is not None:
        parts.append(paragraph(failure, "bad"))
    now = overview.now
    parts += [
        paragraph(f"subtopology {name} is stopped: {why}", "bad")
        for name, why in ({} if now is None else now.stopped).items()
    ]
    parts.append(_subtopologies(overview, outlines))
    restores = sorted(overview.restores.values(), key=lambda each: (each.task, each.store))
    rows = [(each.task, each.store, each.remaining) for each in restores[:_MOST]]
    parts.append(table(("restoring", "store", "records left"), rows))
    if len(restores) > _MOST:
        parts.append(paragraph(f"and {several(len(restores) - _MOST, 'store')} more"))
    return page("streams application", application_id, *parts, state=badge(state, _TONES.get(state, "plain")))


def queues_page(
    application_id: str, state: str, overview: Overview, counts: Sequence[QueueCounts], failure: str | None
) -> Html:
    """A worker of queues: what it has done of each."""
    rows = ([each.topic, each.line(), each.failure] for each in counts)
    parts: list[Cell] = _before_it_runs(state, overview)
    parts.append(table(("queue", "records since the start", "failure"), rows))
    if failure is not None:
        parts.append(paragraph(failure, "bad"))
    return page("work queues", application_id, *parts, state=badge(state, _TONES.get(state, "plain")))


def _before_it_runs(state: str, overview: Overview) -> list[Cell]:
    """What it is at, or waits for."""
    if state == "waiting" and overview.reason is not None:
        return [paragraph(f"waiting: {overview.reason}", "odd")]
    return [paragraph(overview.step, "busy")] if state == "starting" and overview.step is not None else []


def _figures(overview: Overview) -> str:
    total = several(overview.records, "record")
    if overview.group_lag is not None:
        return f"{total} since the start; the group had {overview.group_lag:,} left to read when this instance left it"
    return f"{overview.rate():,.0f} records/s, lag of the tasks here {overview.lag:,}, {total} since the start"


def _subtopologies(overview: Overview, outlines: Sequence[SubtopologyOutline]) -> Html:
    """What each reads, keeps and writes, with what this instance has of it."""
    lags, now = overview.lags(), overview.clock()
    rows = []
    for each in outlines:
        totals = overview.subtopologies.get(each.id)
        done: list[Cell] = [None] * 5
        if totals is not None:
            left_out = [f"{count:,} {reason}" for reason, count in sorted(totals.reasons.items())]
            left_out += [f"{totals.late:,} late"] if totals.late else []
            done = [
                lags.get(each.id), round(totals.rate(now)), totals.records, round(totals.last.took_ms), lines(left_out)
            ]  # fmt: skip
        tasks = _tasks(overview.now, each.id)
        rows.append([each.id, lines(each.reads), lines(each.stores), lines(each.writes), tasks, *done])
    columns = [*_TOPOLOGY, "tasks here", "lag", "records/s", "records", "last epoch, ms", "left out"]
    return table(columns, rows)


def _tasks(now: TasksNow | None, subtopology: str) -> Html:
    if now is None:
        return Html()
    restoring = set(now.restoring)
    roles = {
        "running": [task for task in now.active if task not in restoring],
        "restoring": now.restoring,
        "closing": now.closing,
        "standby": now.standby,
        "warm-up": now.warmup,
    }
    found = []
    for role, tasks in roles.items():
        own = [task.partition for task in map(TaskId.parse, tasks) if task.subtopology == subtopology]
        if own:
            found.append(html(f"{role} {numbers(own)}"))
    return lines(found)
