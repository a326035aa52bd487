"""The demo's result as a self-contained page."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kohort.cli.demo.console import LagChart, TaskLine, member_colours

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Flight delays</title>
<style>
  body {{ margin: 0; background: #f5f7fa; color: #1f2933; font: 16px/1.5 system-ui, sans-serif; }}
  main {{ max-width: 72rem; margin: 0 auto; padding: 2.5rem 1.25rem; }}
  h1 {{ margin: 0; font-size: 1.7rem; }}
  .lead {{ margin: .25rem 0 1.75rem; color: #52606d; }}
  .verdict {{ color: {colour}; font-weight: 600; }}
  dl {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem; margin: 0 0 1.75rem; }}
  dl div, figure, pre {{ background: #fff; border-radius: .6rem; box-shadow: 0 1px 3px #1f293318; }}
  dl div {{ padding: .8rem 1rem; }}
  dt {{ color: #7b8794; font-size: .85rem; }}
  dd {{ margin: 0; font-size: 1.35rem; font-weight: 600; }}
  figure {{ margin: 0 0 1.5rem; padding: 1rem; }}
  img {{ display: block; width: 100%; height: auto; }}
  svg {{ display: block; width: 100%; }}
  .lag {{ height: 9rem; }}
  polyline {{ fill: none; stroke: #1d4f91; stroke-width: 2; vector-effect: non-scaling-stroke; }}
  figcaption {{ color: #52606d; font-size: .85rem; }}
  .tasks {{ overflow-x: auto; }}
  .tasks svg {{ min-width: 40rem; }}
  .tasks text {{ fill: #1f2933; font-size: 12px; }}
  .tasks path {{ fill: var(--colour); }}
  .tasks .warm-up {{ opacity: .5; }}
  {colours}
  pre {{ padding: 1rem 1.25rem; overflow-x: auto; font-size: .85rem; line-height: 1.45; }}
</style>
<main>
  <h1>Flights out of New York, 2013</h1>
  <p class="lead">A streams application in PySpark, two instances, one of which was killed.
    <span class="verdict">{verdict}</span></p>
  <dl>{facts}</dl>
  {figures}
  {console}
  <h2>The program</h2>
  <pre>{program}</pre>
</main>
</html>
"""


def write_page(
    file: Path,
    *,
    verdict: str,
    good: bool,
    facts: Sequence[tuple[str, str]],
    charts: Sequence[tuple[Path, str]],
    program: Path,
    lag: LagChart | None = None,
    console: str | None = None,
    tasks: TaskLine | None = None,
) -> Path:
    """Writes the page.

    Args:
        verdict: the result of the comparison.
        good: whether stream and batch are equal.
        facts: names and values.
        charts: PNG files, which are embedded, each with an alternative text.
        program: the application's source.
        lag: the lag over time, from the group's page in the console.
        console: where that page is, if it stays.
        tasks: the tasks over time, from there.
    """
    text = _PAGE.format(
        colour="#1f7a4d" if good else "#c81e4a",
        verdict=html.escape(verdict),
        facts="".join(f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>" for name, value in facts),
        figures="\n  ".join(_figure(chart, alt) for chart, alt in charts),
        console=_console(lag, tasks, console),
        colours="" if tasks is None else member_colours(),
        program=html.escape(program.read_text()),
    )
    file.write_text(text, encoding="utf-8")
    return file


def _console(lag: LagChart | None, tasks: TaskLine | None, address: str | None) -> str:
    """What the console shows of the group: who has had which task, its lag, and the way there."""
    parts = []
    if tasks is not None:
        bars = "".join(f'<path class="{html.escape(of)}" d="{html.escape(path)}"></path>' for of, path in tasks.bars)
        names = "".join(f'<text x="{x}" y="{y}">{html.escape(name)}</text>' for x, y, name in tasks.names)
        parts.append(
            "<h2>Which instance has had which task, in the console</h2>\n  "
            f'<figure><div class="tasks" role="region" aria-label="Tasks over time" tabindex="0">'
            f'<svg viewBox="{html.escape(tasks.box)}" role="img" aria-label="Tasks over time">{bars}{names}</svg></div>'
            f"<figcaption>{html.escape(tasks.text)}</figcaption></figure>"
        )
    if lag is not None:
        parts.append(
            "<h2>The group's lag over time, in the console</h2>\n  "
            f'<figure><svg class="lag" viewBox="{html.escape(lag.box)}" preserveAspectRatio="none" aria-hidden="true">'
            f'<polyline points="{html.escape(lag.points)}"></polyline></svg>'
            f"<figcaption>{html.escape(lag.text)}</figcaption></figure>"
        )
    if address is not None:
        link = html.escape(address)
        parts.append(f'<p>While the demo goes on, these and more are in the console: <a href="{link}">{link}</a></p>')
    return "\n  ".join(parts)


def _figure(chart: Path, alt: str) -> str:
    data = base64.b64encode(chart.read_bytes()).decode()
    return f'<figure><img alt="{html.escape(alt)}" src="data:image/png;base64,{data}"></figure>'
