"""The Python of the README and the guides runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.nexmark import queries
from kohort.testing.broker import Broker
from tests.smoke import areas, targets

ROOT = Path(__file__).parents[1]
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
PAGES = [
    "README.md",
    "docs/admin.md",
    "docs/broker.md",
    "docs/coming-from-testcontainers.md",
    "docs/consumer.md",
    "docs/placement.md",
    "docs/protocol.md",
    "docs/share-consumer.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {"__name__": "example"}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    with Broker() as broker:
        for block in blocks:
            runnable = block.replace('b"..."', 'b""').replace("localhost:9092", broker.bootstrap_servers)
            exec(compile(runnable, page, "exec"), scope)
    assert capsys.readouterr().out


def test_nexmark_shows_the_programs_that_run() -> None:
    """Each is a file, after its imports."""
    blocks = re.findall(
        r"^## (q\d+): .*?```python\n(.*?)```", (ROOT / "docs/nexmark.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert [name for name, _ in blocks] == list(queries.NAMES)
    for name, block in blocks:
        assert (ROOT / "benchmarks" / "nexmark" / "queries" / f"{name}.py").read_text().endswith(f"\n{block}"), name


def test_what_is_to_be_run_can_be() -> None:
    """Targets are the Makefile's; and Kohort isn't installed from an index, where it isn't. Its extras can be added."""
    known = targets() | {f"test-{area}" for area in areas()}
    for page in TEXTS:
        text = page.read_text()
        for target in re.findall(r"(?:`|^    )make ([a-z-]+)(?=[`\s])", text, re.MULTILINE):
            assert target in known, f"{page.name}: make {target}"
        assert not re.search(r"pip install '?kohort\b(?![\[-])", text), page.name
    for source in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"pip install '?kohort\b(?!\[)", source.read_text()), source.name


def test_the_readme_is_short() -> None:
    """Whoever wonders what this is has half a minute."""
    assert len((ROOT / "README.md").read_text().split()) < 700


def test_links_lead_somewhere() -> None:
    """In the repository; of the site, where pages of the reference are generated, `make docs` checks them.

    Nobody else's site is asked.
    """
    for page in TEXTS:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith(("reference/", "https://")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
