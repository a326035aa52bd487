"""Pictures of the console's pages, for the documents.

    python -m tests.console.pictures

It writes docs/images/console-*.png of a cluster that is made up; it needs Chromium. A new page comes into `PICTURES`.
Each file has within it the text of the page that it was made of, so that a test sees when the page says something else.
"""

from __future__ import annotations

import asyncio
import difflib
import io
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.console.made_up_cluster import KINDS, made_up_console
from tests.interop.toolchains import playwright
from tests.tools import CHROMIUM

__all__ = ["FOLDER", "MOST_BYTES", "PICTURES", "pictures"]

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
MOST_BYTES: Final = 150_000
WIDTH: Final = 1280
TEXT: Final = "Text"
"""The key of a page's text in a picture."""

PARTS: Final = 24
"""Of a picture's width, and of its height, that are compared by how they look, unless they were smaller than..."""
LEAST_PART: Final = 40
"""... so many pixels: of a smaller one a digit more in a text is much."""

MOST_OFF: Final = {"L": 6, "RGB": 20}
"""How much brighter or darker (L), more or less red, green or blue (RGB) one of them may be, of 255.

Times that change make 3 and 12; wider cells, a larger font or bold words 8 to 46 (L) on most pages, links of another
colour 19 to 48 (RGB), and all of it less than 5 on average. With other fonts than on Debian all differ: make them anew
there.
"""


class Picture(NamedTuple):
    """A page that has a picture.

    Attributes:
        name: of the file, behind "console-".
        path: of the page.
        height: of the picture, in pixels.
        paste: bytes that are put into the page's form first; "" for none.
        width: of the page, in pixels.
        dark: whether it is the page that people see who like it dark.
        part: what of the page is in the picture, by a selector of CSS; "" for all of it.
        kind: of console that has the page, one of `KINDS`.
        first: what is done on the page before.
    """

    name: str
    path: str
    height: int = 720
    paste: str = ""
    width: int = WIDTH
    dark: bool = False
    part: str = ""
    kind: str = ""
    first: Callable[[Any], Awaitable[None]] | None = None


async def _show_plan(page: Any) -> None:
    await page.locator("select[name=to]").select_option("shift")
    await page.locator("input[name=shift]").fill("-5000")
    await page.get_by_role("button", name="Show what will happen").first.click()
    await page.get_by_text("records are read again.").wait_for()


async def _confirm(page: Any) -> None:
    await _show_plan(page)
    await page.get_by_role("button", name="Reset the offsets").click()
    await page.get_by_role("status").get_by_text("are reset").wait_for()


PICTURES: Final = (
    Picture("groups", "/groups", 460),
    Picture("phone", "/groups", 844, width=390, dark=True),
    Picture("group", "/group?id=flight-delays", 1_150),
    Picture("topology", "/group?id=flight-delays", part=".topology"),
    Picture("placement", "/group/placement?id=flight-delays&add=1", 1_450),
    Picture("task", "/group/placement?id=flight-delays&task=0_1", 900),
    Picture("share-group", "/group?id=mail", 1_100),
    Picture("topics", "/topics", 440),
    Picture("topic", "/topic?name=orders", 900),
    Picture("records", "/records?topic=flight-delays-by-origin-changelog&field=state.n+%3D+2", 560),
    Picture("stores", "/group/stores?id=flight-delays&store=flight-delays-by-origin", 800, kind="stores"),
    Picture("change", "/change?group=nightly-export", 1_000, kind="writes"),
    Picture("change-topic", "/change?topic=orders", 1_000, kind="writes"),
    Picture("new-topic", "/change", 500, kind="writes"),
    Picture("plan", "/change?group=nightly-export", 520, kind="writes", first=_show_plan),
    Picture("done", "/change?group=nightly-export", 240, kind="writes", first=_confirm),
    Picture("login", "/login?next=%2Fgroups", 400, kind="login"),
    Picture("message", "/wire/message?name=Heartbeat", 900),
    Picture("wire", "/wire", 1_080, "00 00 00 15 00 0c 00 04 00 00 00 05 00 01 62 00 06 67 72 6f 75 70 00 00 00"),
)
"""The pages, in the order of the document."""


class Made(NamedTuple):
    """A picture that was made.

    Attributes:
        png: the file, with the page's text within it.
    """

    png: bytes

    def against(self, stored: bytes) -> str:
        """How another picture differs, by its page's text and from afar; "" if it doesn't."""
        then, now = _text(stored).splitlines(), _text(self.png).splitlines()
        if then != now:
            return "\n".join(difflib.unified_diff(then, now, "the picture", "the page", lineterm="", n=1))
        parts = _parts(stored)
        for mode, most in MOST_OFF.items():
            looks = (_look(png, mode, parts) for png in (stored, self.png))
            off = max(abs(one - other) for one, other in zip(*looks, strict=True))
            if off > most:
                return f"a part looks otherwise, by {off} of 255"
        return ""


async def pictures(wanted: Iterable[Picture]) -> dict[str, Made]:
    """Pictures by name.

    Raises:
        AssertionError: a page complained, or isn't there.
    """
    sys.path.append(str(playwright()))
    try:
        from playwright.async_api import async_playwright  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(playwright()))
    found = {}
    async with AsyncExitStack() as stack, async_playwright() as driver:
        consoles = {kind: await stack.enter_async_context(made_up_console(kind)) for kind in KINDS}
        browser = await driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        try:
            for each in wanted:
                viewport = {"width": each.width, "height": each.height}
                page = await browser.new_page(viewport=viewport, color_scheme="dark" if each.dark else "light")
                complaints: list[str] = []
                page.on("pageerror", lambda error, heard=complaints: heard.append(str(error)))
                answer = await page.goto(f"http://127.0.0.1:{consoles[each.kind].port}{each.path}")
                assert answer.status == 200, f"{each.path}: {answer.status}"
                if await page.locator("body[data-events]").count():
                    await page.get_by_text("Up to date").wait_for()
                if each.paste:
                    await page.fill("textarea", each.paste)
                    await page.click("form button")
                    await page.locator("section.dump").first.wait_for()
                if each.first is not None:
                    await each.first(page)
                assert complaints == []
                shown = page.locator(each.part) if each.part else page
                words = await page.locator(each.part or "body").inner_text()
                png = await shown.screenshot(animations="disabled", caret="hide")
                found[each.name] = Made(_small(png, _without_times(words)))
                await page.close()
        finally:
            await browser.close()
    return found


def _small(png: bytes, text: str) -> bytes:
    """The same picture with 256 colours, of which some are those of a few letters, and with the text."""
    from PIL import Image, PngImagePlugin

    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
    told = PngImagePlugin.PngInfo()
    told.add_itxt(TEXT, text, zip=True)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True, pnginfo=told)
    return out.getvalue()


def _text(png: bytes) -> str:
    """What the page said that a picture was made of; "" if that isn't within it."""
    from PIL import Image

    image = Image.open(io.BytesIO(png))
    image.load()
    return str(image.info.get(TEXT, ""))


def _parts(png: bytes) -> tuple[int, int]:
    """Of how many parts a picture is compared, beside and below each other."""
    from PIL import Image

    width, height = Image.open(io.BytesIO(png)).size
    return max(1, min(PARTS, width // LEAST_PART)), max(1, min(PARTS, height // LEAST_PART))


def _look(png: bytes, mode: str, parts: tuple[int, int]) -> bytes:
    """How a picture looks from afar: brightness or colours of its parts, which the edges of letters hardly change."""
    from PIL import Image

    image = Image.open(io.BytesIO(png)).convert("RGB").convert(mode)
    return image.resize(parts, Image.Resampling.BOX).tobytes()


def _without_times(text: str) -> str:
    """A page's text, a line a cell, without the times, rates and growths that another second changes."""
    changing = r"\d[\d,.]* (?:ms|s|min|h|d)\b(?: \d+ (?:s|min|h)\b)*|[+-]\d[\d,]*(?= in )|\d[\d,.]*(?=/s\b)"
    lines = (re.sub(changing, "…", line).strip() for line in re.split(r"[\n\t]", text))
    return "\n".join(filter(None, lines))


def main() -> None:
    """Writes all of them."""
    CHROMIUM.require()
    for name, made in asyncio.run(pictures(PICTURES)).items():
        (FOLDER / f"console-{name}.png").write_bytes(made.png)
        sys.stdout.write(f"docs/images/console-{name}.png: {len(made.png):,} bytes\n")


if __name__ == "__main__":
    main()
