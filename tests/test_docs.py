"""The Python of the README and the guides runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kohort.testing.broker import Broker

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "docs/admin.md", "docs/broker.md", "docs/consumer.md", "docs/placement.md", "docs/protocol.md"]


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


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
