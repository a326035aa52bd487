"""Each page of the list has a picture that the document shows, small enough, and made anew it is the same."""

from __future__ import annotations

import asyncio
import difflib
import io

import pytest

from tests.console.made_up_cluster import made_up_console
from tests.console.pictures import FOLDER, MOST_BYTES, PICTURES, look_of, pictures, text_of
from tests.console.test_server import page_of
from tests.interop.toolchains import BUILD_S
from tests.tools import CHROMIUM

MOST_OFF = 4.0
"""How much brighter or darker the parts of a picture may be, of 255, on average."""


def test_the_made_up_cluster_has_all_pages() -> None:
    import aiohttp

    async def whole() -> None:
        async with made_up_console() as console, aiohttp.ClientSession(f"http://127.0.0.1:{console.port}") as http:
            for each in PICTURES:
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
    """By the text of its page, and by how it looks from afar: fonts and edges may be another machine's."""
    CHROMIUM.require()
    made = asyncio.run(pictures(PICTURES))
    assert [*made] == [each.name for each in PICTURES]
    stale = {}
    for name, png in made.items():
        assert png.startswith(b"\x89PNG")
        assert len(png) <= MOST_BYTES
        stored = (FOLDER / f"console-{name}.png").read_bytes()
        then, now = text_of(stored).splitlines(), text_of(png).splitlines()
        assert now, name
        looks = [abs(one - other) for one, other in zip(look_of(stored), look_of(png), strict=True)]
        if then != now:
            stale[name] = "\n".join(difflib.unified_diff(then, now, "the picture", "the page", lineterm="", n=1))
        elif sum(looks) / len(looks) > MOST_OFF:
            stale[name] = f"it looks otherwise: {sum(looks) / len(looks):.1f} of 255"
    assert not stale, "run 'python -m tests.console.pictures'"


def test_a_picture_tells_its_text_and_its_look() -> None:
    from PIL import Image

    plain = io.BytesIO()
    Image.new("RGB", (48, 48), "white").save(plain, "PNG")
    assert text_of(plain.getvalue()) == ""
    assert set(look_of(plain.getvalue())) == {255}
