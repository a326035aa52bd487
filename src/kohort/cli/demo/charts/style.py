"""The style of charts: light, with few lines, and colours that everybody can distinguish."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER: Final = "#ffffff"
INK: Final = "#1f2933"
FAINT: Final = "#7b8794"
GRID: Final = "#e4e7eb"
RED: Final = "#c81e4a"
COLOURS: Final = ("#2868b5", "#e8833a", "#3a9b78")
"""One for each instance, or airport."""

_WIDTH: Final = 12.0
"""Inches."""
_DPI: Final = 150


def new_figure(height: float) -> Figure:
    """An empty figure, `height` inches high."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update(
        {
            "font.family": "sans-serif",
            "font.size": 10,
            "text.color": INK,
            "axes.labelcolor": FAINT,
            "xtick.color": FAINT,
            "ytick.color": FAINT,
            "axes.edgecolor": GRID,
            "svg.fonttype": "none",
        }
    )
    return Figure(figsize=(_WIDTH, height), facecolor=PAPER)


def titled(axes: Axes, title: str, note: str = "") -> None:
    """A title above on the left, with a note in grey below it."""
    above: dict[str, Any] = {
        "xy": (0, 1),
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "annotation_clip": False,
    }
    axes.annotate(title, xytext=(0, 24 if note else 8), fontsize=12.5, fontweight="bold", **above)
    if note:
        axes.annotate(note, xytext=(0, 8), fontsize=9.5, color=FAINT, **above)


def bare(axes: Axes, grid: str = "") -> None:
    """No frame and no ticks; lines of a grid along `grid` ("x" or "y") behind everything."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis=grid, color=GRID, linewidth=0.8)  # type: ignore[arg-type]


def save(figure: Figure, file: Path) -> Path:
    figure.savefig(file, dpi=_DPI, facecolor=PAPER)
    return file
