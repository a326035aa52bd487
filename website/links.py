"""Links of pages that also stand in the repository: what isn't on the site becomes the name of a file."""

from __future__ import annotations

import posixpath
import re
from typing import Final

MOVED: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Documents beside docs/ that are on the site, and where."""

_LINK: Final = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^()\s#]*)(#[^()\s]*)?\)")
_BLOCK: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def on_site(markdown: str, path: str, source: str) -> str:
    """Rewrites the links of a page so that they hold on the site.

    Args:
        markdown: the page, as it stands in the repository.
        path: where it is on the site, below docs/.
        source: where it is in the repository: "docs/cli.md", "CONTRIBUTING.md".
    """

    def rewrite(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if file in MOVED:
            there = MOVED[file]
        elif file.startswith("docs/") and file.endswith((".md", ".svg", ".png")):
            there = file.removeprefix("docs/")
        else:
            return text if file in text else f"{text} (`{file}`)"
        return f"[{text}]({posixpath.relpath(there, posixpath.dirname(path) or '.')}{anchor})"

    pieces, at = [], 0
    for block in _BLOCK.finditer(markdown):
        pieces += [_LINK.sub(rewrite, markdown[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*pieces, _LINK.sub(rewrite, markdown[at:])])
