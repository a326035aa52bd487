"""Bar charts of the benchmarks' figures, as SVG in the colours of the page."""

from __future__ import annotations

import html
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.results import FOLDER

FIGURES: Final = Path(__file__).with_name("figures.toml")
MARK: Final = "<!-- charts -->"
"""Where they go on a page."""

_NAMES: Final = 170
_BARS: Final = 400
_ROW: Final = 26


@dataclass(frozen=True)
class Chart:
    """Figures that can be compared.

    Attributes:
        title: what was measured.
        unit: of all figures.
        better: whether more is better, or less.
        command: what measures it.
        page: where the whole table is, and what bounds it.
        bars: figures by contender, ours first.
        run: when and on what it was measured.
    """

    title: str
    unit: str
    better: Literal["more", "less"]
    command: str
    page: str
    bars: dict[str, float]
    run: str


def charts(path: Path = FIGURES) -> list[Chart]:
    """The charts of a file."""
    return [_chart(each) for each in tomllib.loads(path.read_text())["charts"]]


def _chart(written: dict[str, Any]) -> Chart:
    """A chart with the figures of a benchmark's file, rounded as the page's table has them."""
    rest = {name: value for name, value in written.items() if name not in ("result", "measure", "digits")}
    found = json.loads((FOLDER / written["result"]).read_text())
    digits = written.get("digits", 0)
    figures = {name: round(value, digits) for name, value in found["figures"][written["measure"]].items()}
    bars = {name: value if digits > 0 else int(value) for name, value in figures.items()}
    machine = found["machine"]
    run = f"Measured on {found['date']} with {machine['cores']} cores of {machine['processor']}: `{found['command']}`."
    return Chart(bars=bars, run=run, **rest)


def svg(chart: Chart) -> str:
    """A chart as a picture: a bar for each figure, as long as it is large."""
    most = max(chart.bars.values())
    height = _ROW * len(chart.bars) + 4
    lines = [f'<svg viewBox="0 0 700 {height}" width="700" role="img" font-size="13" fill="currentColor">']
    lines.append(f"<title>{html.escape(chart.title)}</title>")
    for number, (name, value) in enumerate(chart.bars.items()):
        y = _ROW * number + 2
        length = max(2, round(_BARS * value / most))
        ours = "#4a7bd0" if number == 0 else "#8a8f99"
        lines.append(f'<text x="{_NAMES - 10}" y="{y + 16}" text-anchor="end">{html.escape(name)}</text>')
        lines.append(f'<rect x="{_NAMES}" y="{y}" width="{length}" height="{_ROW - 6}" rx="2" fill="{ours}"/>')
        lines.append(f'<text x="{_NAMES + length + 8}" y="{y + 16}">{value:,} {html.escape(chart.unit)}</text>')
    return "".join([*lines, "</svg>"])


def markdown() -> str:
    """All charts, each with what measures it."""
    parts = []
    for chart in charts():
        parts += [f"### {chart.title}", f'<div class="picture" markdown="0">{svg(chart)}</div>']
        said = f"{chart.better.title()} is better. `{chart.command}`; [the whole table]({chart.page})."
        parts.append(f"{said} {chart.run}")
    return "\n\n".join(parts)
