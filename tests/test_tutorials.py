"""The tutorials can be followed: their files run, and their commands print what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.testing import Broker
from tests.tools import JAVA
from tests.tutorials import Tutorial, blocks, matches

PAGES = Path(__file__).parents[1] / "docs" / "tutorials"


def follow(name: str, directory: Path) -> int:
    with Broker() as broker:
        return Tutorial(PAGES / name, directory, broker.bootstrap_servers).follow()


def test_a_broker_in_tests(tmp_path: Path) -> None:
    assert follow("broker-in-tests.md", tmp_path) == 2


@pytest.mark.long  # members are fenced after their session timeout
def test_debugging_a_rebalance(tmp_path: Path) -> None:
    assert follow("debugging-a-rebalance.md", tmp_path) >= 11


@pytest.mark.long  # Spark starts three times
def test_a_streams_application(tmp_path: Path) -> None:
    JAVA.require()
    assert follow("streams-application.md", tmp_path) == 4


def test_every_tutorial_is_followed_and_for_beginners() -> None:
    """Each begins with the words that it needs."""
    pages = sorted(PAGES.glob("*.md"))
    assert [page.name for page in pages] == ["broker-in-tests.md", "debugging-a-rebalance.md", "streams-application.md"]
    for page in pages:
        assert "\n## Five words first\n" in page.read_text()
        assert {language for language, _, _ in blocks(page)} == {"python", "sh", "text"}
        assert len(page.read_text().split()) <= 2_000  # ten minutes at 200 words a minute


def test_what_is_shown_is_found_in_what_is_printed() -> None:
    printed = "billing: Stable\n\n Member      Lag\n ann-12ab     3 \n in all 3\n"
    assert matches("billing: Stable\n ann-…   3\n", printed)
    assert not matches(" ann-…   4\n", printed)
    assert not matches("in all 3\nbilling: Stable\n", printed)  # another order
