"""The demo's result as a self-contained page."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Final

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
  pre {{ padding: 1rem 1.25rem; overflow-x: auto; font-size: .85rem; line-height: 1.45; }}
</style>
<main>
  <h1>Flights out of New York, 2013</h1>
  <p class="lead">A streams application in PySpark, two instances, one of which was killed.
    <span class="verdict">{verdict}</span></p>
  <dl>{facts}</dl>
  {figures}
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
) -> Path:
    """Writes the page.

    Args:
        verdict: the result of the comparison.
        good: whether stream and batch are equal.
        facts: names and values.
        charts: PNG files, which are embedded, each with an alternative text.
        program: the application's source.
    """
    text = _PAGE.format(
        colour="#1f7a4d" if good else "#c81e4a",
        verdict=html.escape(verdict),
        facts="".join(f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>" for name, value in facts),
        figures="\n  ".join(_figure(chart, alt) for chart, alt in charts),
        program=html.escape(program.read_text()),
    )
    file.write_text(text, encoding="utf-8")
    return file


def _figure(chart: Path, alt: str) -> str:
    data = base64.b64encode(chart.read_bytes()).decode()
    return f'<figure><img alt="{html.escape(alt)}" src="data:image/png;base64,{data}"></figure>'
