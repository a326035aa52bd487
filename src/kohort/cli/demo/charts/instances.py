"""The chart of instances: throughput and tasks of each over time, with the kill and the takeover."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.cli.demo.charts.style import COLOURS, FAINT, GRID, INK, RED, bare, new_figure, save, titled
from kohort.cli.demo.timeline import ACTIVE, RESTORING, STANDBY, Span, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BEFORE: Final = 4.0
"""Seconds shown before the first flight."""
_THICK, _THIN = 0.46, 0.17
"""Heights of bars: of active tasks, and of standbys. A row is 1 high."""


def draw_instances(timeline: Timeline, file: Path) -> Path:
    """Draws the chart, and writes a PNG."""
    tasks = timeline.tasks
    figure = new_figure(4.6 + 0.26 * len(tasks))
    grid = figure.add_gridspec(2, 1, height_ratios=(2.6, 0.26 * len(tasks)), left=0.07, right=0.975, top=0.90,
                               bottom=0.07, hspace=0.36)  # fmt: skip
    above = figure.add_subplot(grid[0])
    below = figure.add_subplot(grid[1], sharex=above)
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(timeline.instances)}
    _throughput(above, timeline, colours)
    _tasks(below, timeline, tasks, colours)
    length = timeline.ended - timeline.began
    above.set_xlim(-_BEFORE, length + 0.01 * length)
    _mark(above, below, timeline)
    return save(figure, file)


def _throughput(axes: Axes, timeline: Timeline, colours: dict[str, str]) -> None:
    rates = {name: timeline.throughput.rates[name] for name in timeline.instances}
    times = [at * timeline.throughput.step for at in range(len(timeline.throughput.total))]
    axes.stackplot(
        times, *rates.values(), labels=list(rates),
        colors=[colours[name] for name in rates], linewidth=0, step="post",
    )  # fmt: skip
    axes.set_ylim(0, axes.get_ylim()[1] * 1.22)  # room for the text of the kill
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.tick_params(labelbottom=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f} s")
    bare(axes, "y")
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1.0), ncols=len(rates), frameon=False, handlelength=1, fontsize=10
    )
    titled(
        axes,
        "Flights a second, by instance",
        f"{timeline.flights:,} flights, each counted once: when its epoch was committed",
    )


def _tasks(axes: Axes, timeline: Timeline, tasks: list[str], colours: dict[str, str]) -> None:
    rows = {task: row for row, task in enumerate(tasks)}
    for span in timeline.spans:
        _bar(axes, span, rows[span.task], span.begin - timeline.began, colours[span.instance])
    axes.set_yticks(range(len(tasks)), tasks)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f} s")
    subtopologies = [task.split("_")[0] for task in tasks]
    for row in range(1, len(tasks)):
        if subtopologies[row] != subtopologies[row - 1]:
            axes.axhline(row - 0.45, color=GRID, linewidth=1)
    bare(axes)
    titled(axes, "Who has which task", "thick: runs it (pale: restores it first); thin: keeps a copy of its state")


def _bar(axes: Axes, span: Span, row: int, begin: float, colour: str) -> None:
    width = span.end - span.begin
    if span.role in (ACTIVE, RESTORING):
        axes.barh(row - 0.1, width, left=begin, height=_THICK, color=colour, alpha=1 if span.role == ACTIVE else 0.45)
    else:
        axes.barh(row + 0.28, width, left=begin, height=_THIN, color=colour, alpha=0.6 if span.role == STANDBY else 0.9)


def _mark(above: Axes, below: Axes, timeline: Timeline) -> None:
    """The kill, and the time until all tasks ran again."""
    pause = max(timeline.takeovers().values(), default=None)
    for dead, killed in timeline.kills.items():
        at = killed - timeline.began
        for axes in (above, below):
            axes.axvline(at, color=RED, linewidth=1.4)
            if pause is not None:
                axes.axvspan(at, at + pause, color=RED, alpha=0.08, linewidth=0, zorder=0)
        top = above.get_ylim()[1]
        style: dict[str, Any] = {"va": "top", "fontsize": 9.5, "textcoords": "offset points"}
        above.annotate(f"kill -9, {dead}", (at, top), (-6, -3), ha="right", color=RED, fontweight="bold", **style)
        if pause is not None:
            late = at + pause > 0.7 * above.get_xlim()[1]  # no room on the right
            where = (
                {"xy": (at, top), "xytext": (-6, -18), "ha": "right"}
                if late
                else {"xy": (at + pause, top), "xytext": (6, -3)}
            )
            above.annotate(f"all its tasks run again after {pause:.1f} s", color=FAINT, **where, **style)
