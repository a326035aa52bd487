"""The chart of delays: by day and hour, by hour and airport, by sky."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import numpy as np

from kohort.cli.demo.charts.style import COLOURS, FAINT, INK, bare, new_figure, save, titled
from kohort.cli.demo.compare import Groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NEW_YORK: Final = ZoneInfo("America/New_York")
_FIRST_HOUR, _LAST_HOUR = 5, 23
"""Hours of the day in which flights leave."""
_AIRPORTS: Final = {"EWR": "Newark", "JFK": "JFK", "LGA": "LaGuardia"}
_SKIES: Final = ("calm", "wind", "fog", "rain", "snow")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WORST: Final = 75.0
"""Minutes of delay with the darkest colour."""


def draw_delays(by_hour: Groups, by_sky: Groups, file: Path) -> Path:
    """Draws the topics `delays-by-hour` and `delays-by-sky`, and writes a PNG."""
    figure = new_figure(8.2)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 1), left=0.055, right=0.975, top=0.915, bottom=0.065,
                               hspace=0.4, wspace=0.16)  # fmt: skip
    flights = sum(int(row["n"]) for row in by_hour.values())
    _calendar(figure, figure.add_subplot(grid[0, :]), by_hour.values(), flights)
    _airports(figure.add_subplot(grid[1, 0]), by_hour.values())
    _skies(figure.add_subplot(grid[1, 1]), by_sky.values())
    return save(figure, file)


def _calendar(figure: Figure, axes: Axes, rows: Iterable[Mapping[str, Any]], flights: int) -> None:
    """Mean delay by day and hour."""
    from matplotlib.colors import LinearSegmentedColormap

    total = np.zeros((_LAST_HOUR - _FIRST_HOUR + 1, 365))
    n = np.zeros_like(total)
    for row in rows:
        at = _local(row["window"])
        if at.year == 2013 and at.hour >= _FIRST_HOUR:
            cell = at.hour - _FIRST_HOUR, at.timetuple().tm_yday - 1
            total[cell] += row["mean"] * row["n"]
            n[cell] += row["n"]
    mean = np.where(n > 0, total / np.maximum(n, 1), np.nan)
    colours = LinearSegmentedColormap.from_list("delays", ["#f5f7fa", "#fde3b5", "#f5a65b", "#d9483b", "#6b1238"])
    colours.set_bad("#ffffff")
    drawn = axes.imshow(
        np.maximum(mean, 0), aspect="auto", cmap=colours, vmin=0, vmax=_WORST, interpolation="nearest",
        extent=(0, 365, _LAST_HOUR + 0.5, _FIRST_HOUR - 0.5),
    )  # fmt: skip
    first_days = [datetime(2013, month, 1).timetuple().tm_yday - 1 for month in range(1, 13)]
    axes.set_xticks([day + 15 for day in first_days], _MONTHS)
    axes.set_yticks(range(6, 24, 4), [f"{hour}:00" for hour in range(6, 24, 4)])
    bare(axes)
    titled(
        axes,
        "When flights out of New York leave late",
        f"2013, {flights:,} flights: mean delay in minutes by day and scheduled hour of departure",
    )
    legend = axes.inset_axes((0.78, 1.06, 0.22, 0.035))
    bar = figure.colorbar(drawn, cax=legend, orientation="horizontal", ticks=[0, 25, 50, 75])
    bar.ax.set_xticklabels(["on time", "25", "50", "75 min"])
    bar.ax.tick_params(length=0, labelsize=8.5, labelbottom=False, labeltop=True, pad=1)
    bar.outline.set_visible(False)


def _airports(axes: Axes, rows: Iterable[Mapping[str, Any]]) -> None:
    """Mean delay by hour of the day, a line an airport."""
    total: defaultdict[tuple[str, int], float] = defaultdict(float)
    n: defaultdict[tuple[str, int], int] = defaultdict(int)
    for row in rows:
        at = row["origin"], _local(row["window"]).hour
        total[at] += row["mean"] * row["n"]
        n[at] += row["n"]
    ends = []
    for colour, (code, name) in zip(COLOURS, _AIRPORTS.items(), strict=True):
        hours = [hour for hour in range(_FIRST_HOUR, _LAST_HOUR + 1) if n[code, hour] > 50]
        means = [total[code, hour] / n[code, hour] for hour in hours]
        axes.plot(hours, means, color=colour, linewidth=2.2, solid_capstyle="round")
        if hours:
            ends.append((means[-1], hours[-1], name, colour))
    last = -np.inf
    for value, hour, name, colour in sorted(ends):  # labels don't overlap: each is a line above the one below
        last = max(value, last + 2.2)
        axes.text(hour + 0.25, last, name, color=colour, fontweight="bold", va="center", fontsize=9.5)
    axes.set_xlim(_FIRST_HOUR - 0.3, _LAST_HOUR + 2.6)
    axes.set_xticks(range(6, 24, 3), [f"{hour}:00" for hour in range(6, 24, 3)])
    axes.set_ylim(bottom=min(0, *axes.get_ylim()) - 1)
    bare(axes, "y")
    titled(axes, "Delays pile up over the day", "mean delay in minutes by hour of departure")


def _skies(axes: Axes, rows: Iterable[Mapping[str, Any]]) -> None:
    """Mean delay by sky, all airlines together."""
    n: defaultdict[str, int] = defaultdict(int)
    total: defaultdict[str, float] = defaultdict(float)
    late: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        n[row["sky"]] += row["n"]
        total[row["sky"]] += row["mean"] * row["n"]
        late[row["sky"]] += row["late"]
    skies = [sky for sky in _SKIES if n[sky]]
    means = [total[sky] / n[sky] for sky in skies]
    axes.barh(skies, means, color=COLOURS[0], height=0.62)
    for place, (sky, mean) in enumerate(zip(skies, means, strict=True)):
        value = axes.annotate(
            f"{mean:.0f} min", (mean, place), (5, 0), textcoords="offset points", va="center", fontweight="bold"
        )
        share = f"{late[sky] / n[sky]:.0%} of {n[sky]:,}"
        axes.annotate(share, (1, 0), (8, 0), xycoords=value, textcoords="offset points", color=FAINT, fontsize=9)
    axes.set_xlim(0, max(means, default=1) * 1.4)
    axes.set_xticks([])
    bare(axes)
    axes.tick_params(axis="y", labelsize=10.5, labelcolor=INK)
    titled(axes, "What the sky does", "mean delay by weather, and how many left over an hour late")


def _local(window: str) -> datetime:
    """The start of a window in New York's time."""
    return datetime.fromisoformat(window).astimezone(_NEW_YORK)
