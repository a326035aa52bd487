"""Each page of the list has a picture that the document shows, small enough, and made anew it is the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.console.made_up_cluster import KINDS, made_up_console
from tests.console.pictures import FOLDER, MOST_BYTES, PICTURES, pictures
from tests.console.test_server import page_of
from tests.interop.toolchains import BUILD_S
from tests.tools import CHROMIUM


def test_the_made_up_cluster_has_all_pages() -> None:
    import aiohttp

    async def whole() -> None:
        for kind in KINDS:
            async with (
                made_up_console(kind) as console,
                aiohttp.ClientSession(f"http://127.0.0.1:{console.port}") as http,
            ):
                for each in (each for each in PICTURES if each.kind == kind):
                    async with http.get(each.path) as answer:
                        assert answer.status == 200, each
                        page_of(await answer.text())

    asyncio.run(whole())


@pytest.mark.parametrize("name", [each.name for each in PICTURES])
def test_the_document_shows_each(name: str) -> None:
    text = (FOLDER.parent / "console.md").read_text()
    assert f"(images/console-{name}.png)" in text
    assert (FOLDER / f"console-{name}.png").stat().st_size <= MOST_BYTES


@pytest.mark.long
@pytest.mark.timeout(BUILD_S)
def test_each_shows_what_its_page_shows_now() -> None:
    CHROMIUM.require()
    made = asyncio.run(pictures(PICTURES))
    assert [*made] == [each.name for each in PICTURES]
    stored = {name: (FOLDER / f"console-{name}.png").read_bytes() for name in made}
    for each in made.values():
        assert each.png.startswith(b"\x89PNG")
        assert len(each.png) <= MOST_BYTES
    stale = {name: said for name, each in made.items() if (said := each.against(stored[name]))}
    assert not stale, f"run 'python -m tests.console.pictures': {stale}"
    assert "-Topics" in made["groups"].against(stored["topics"]).splitlines()  # that they differ would be seen
    topic = next(each for each in PICTURES if each.name == "topic")
    older = asyncio.run(pictures([topic._replace(first=with_wider_cells)]))["topic"]
    assert "looks otherwise" in older.against(stored["topic"])  # and that they only look otherwise


async def with_wider_cells(page: Any) -> None:
    """By the page's own stylesheet: it takes no other."""
    await page.evaluate("document.styleSheets[0].insertRule('td, th { padding: 1.2rem !important }', 0)")
