"""The site as a browser has it: opened as files, without a network, and searched."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.toolchains import BUILD_S, playwright
from tests.tools import CHROMIUM

ROOT = Path(__file__).parents[1]


@pytest.mark.long
@pytest.mark.timeout(BUILD_S)
def test_the_site_is_built_and_searched_without_a_network(tmp_path: Path) -> None:
    """No page wants anything from elsewhere, and search finds a page by a word of it."""
    CHROMIUM.require()
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    sys.path.append(str(playwright()))
    try:
        from playwright.async_api import async_playwright  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(playwright()))

    async def search() -> None:
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = await browser.new_page()
            wanted: list[str] = []
            complaints: list[str] = []
            page.on("request", lambda request: wanted.append(request.url))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await page.goto((tmp_path / "reference" / "messages" / "heartbeat.html").as_uri())
            await page.click("input.md-search__input")
            await page.keyboard.type("generationid")
            await page.wait_for_selector("a.md-search-result__link")
            found = await page.eval_on_selector_all("a.md-search-result__link", "all => all.map(each => each.href)")
            assert any("/reference/messages/heartbeat.html" in each for each in found)
            assert [url for url in wanted if not url.startswith(("file:", "data:", "blob:"))] == []
            assert complaints == []
            await browser.close()

    asyncio.run(search())
