"""Pictures that take the colours of the page: SVG becomes a part of it."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Final

_PICTURE: Final = re.compile(r"^!\[([^\]]*)\]\(([^)\s]*images/concepts/[^)\s]+\.svg)\)$", re.MULTILINE)


def inlined(markdown: str, folder: Path) -> str:
    """Puts drawings in place of links to them; `folder` is the one that the page's links begin in.

    A drawing has a style for readers who see it by itself; in a page it has that page's.
    """

    def drawing(link: re.Match[str]) -> str:
        svg = re.sub(r"\s*<style>.*?</style>", "", (folder / link[2]).read_text(), flags=re.DOTALL)
        label = html.escape(link[1], quote=True)
        whole = re.sub(r"\n\s*", "", svg.replace('role="img"', f'role="img" aria-label="{label}"'))
        return f'<div class="picture" markdown="0">{whole}</div>'

    return _PICTURE.sub(drawing, markdown)
