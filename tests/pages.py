"""The code blocks of the README and of the pages in docs/, fenced and indented, wherever they stand."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
"""All pages, relative to the repository."""

GUIDE: Final = (
    "aggregates.md", "changing-a-program.md", "dataframes.md", "formats.md", "guarantees.md", "joins.md", "pipeline.md",
    "running.md", "state.md", "streams-and-tables.md", "windows.md",
)  # fmt: skip
"""Pages about streams applications whose programs run in one Spark session."""
OTHERS: Final = {
    ("README.md", "py"): "tests/cli/demo/test_command.py",
    ("docs/cookbook.md", "python"): "tests/pipeline/test_cookbook.py",
    ("docs/coming-from-kafka-streams.md", "java"): "tests/pipeline/test_coming_from.py",
    ("docs/coming-from-kafka-streams.md", "python"): "tests/pipeline/test_coming_from.py",
    ("docs/coming-from-structured-streaming.md", "python"): "tests/pipeline/test_coming_from.py",
    ("docs/nexmark.md", "python"): "tests/test_docs.py",
    ("docs/notebooks.md", "python"): "tests/pipeline/test_notebooks.py",
    ("docs/queues.md", "python"): "tests/pipeline/test_queues.py",
    ("docs/security.md", "properties"): "tests/interop/test_security_page.py",
    ("docs/security.md", "sh"): "tests/interop/test_security_page.py",
    ("docs/stores.md", ""): "tests/pipeline/test_stores_page.py",
    ("docs/stores.md", "python"): "tests/pipeline/test_stores_page.py",
    ("docs/testing.md", "python"): "tests/pipeline/test_testing_docs.py",
    **{(f"docs/{page}", "python"): "tests/pipeline/test_guide_programs.py" for page in GUIDE},
    **{
        (f"docs/tutorials/{page}.md", language): "tests/test_tutorials.py"
        for page in ("broker-in-tests", "debugging-a-rebalance", "streams-application")
        for language in ("python", "sh", "text")
    },
}
"""Blocks of a page in a language that a test runs, all of them."""

_FENCE: Final = re.compile(r"^ *(`{3,}|~{3,}) *(\w*)")


class Block(NamedTuple):
    """A block of code.

    Attributes:
        page: where it is, relative to the repository.
        line: that of its first line.
        language: what its fence says; "" if nothing does.
        text: what is in it, without the indentation of all.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def first(self) -> str:
        """Its first line, by which it is told from the others of its page."""
        return self.text.split("\n", 1)[0]

    @property
    def place(self) -> str:
        """Where to look, as editors take it."""
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in their order."""
    return parse(page, (ROOT / page).read_text())


def parse(page: str, text: str) -> list[Block]:
    """The blocks of a text. What is indented by four after an empty line is code; in lists and admonitions by eight."""
    lines = text.splitlines()
    found: list[Block] = []
    at, within = 0, 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is not None:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == fence[1]), len(lines))
            found.append(Block(page, at + 2, fence[2], _dedented(lines[at + 1 : end])))
            at = end + 1
            continue
        line = lines[at]
        indented = len(line) - len(line.lstrip())
        if line.strip() and indented < within:
            within = indented // 4 * 4
        if re.match(r" *(!!!|\?\?\?\+?|===) ", line) or re.match(r" *(\d+\.|[-*]) ", line):
            within = indented // 4 * 4 + 4
        elif line.strip() and indented >= within + 4 and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" " * (within + 4))):
                end += 1
            found.append(Block(page, at + 1, "", _dedented(lines[at:end])))
            at = end
            continue
        elif line.strip() and not indented:
            within = 0
        at += 1
    return found


def block(page: str, first: str) -> Block:
    """The block of a page whose first line begins so.

    Raises:
        LookupError: there is none, or more than one.
    """
    found = [each for each in blocks(page) if each.first.startswith(first)]
    if len(found) != 1:
        raise LookupError(f"{page}: {len(found)} blocks begin with {first!r}")
    return found[0]


def under(page: str, heading: str, language: str) -> str:
    """The first block in a language in the section under a heading.

    Raises:
        LookupError: there is none.
    """
    _, _, after = (ROOT / page).read_text().partition(f"\n## {heading}\n")
    found = [each.text for each in parse(page, after.partition("\n## ")[0]) if each.language == language]
    if not found:
        raise LookupError(f"{page}: no block in {language} under {heading!r}")
    return found[0]


@cache
def run_by_others() -> tuple[tuple[Block, str], ...]:
    """Blocks that a test of another file runs."""
    every = [each for page in PAGES for each in blocks(page)]
    return tuple((each, OTHERS[each.page, each.language]) for each in every if (each.page, each.language) in OTHERS)


def _dedented(lines: list[str]) -> str:
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[least:] for line in lines).rstrip() + "\n"
