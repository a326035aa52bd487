"""A change made with nothing but a keyboard: the focus is seen wherever it goes, and goes in the order of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.console.test_browser import P0, P1, Tab, in_browser
from tests.console.test_browser_changes import writing
from tests.interop.toolchains import BUILD_S

pytestmark = [pytest.mark.long, pytest.mark.timeout(BUILD_S)]

MOST_STEPS = 60
"""From the beginning of a page to what is wanted."""

FOCUS = """() => {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  const before = window.before;
  window.before = at;
  const label = at.labels && at.labels.length ? at.labels[0].firstChild.textContent : "";
  return {
    name: (label || at.getAttribute("aria-label") || at.textContent).trim(),
    tag: at.tagName.toLowerCase(),
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    seen: box.width > 0 && box.left >= 0 && box.top < innerHeight && box.bottom > 0 && box.left < innerWidth,
    onwards: !before || before === at || Boolean(before.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING),
  };
}"""


@dataclass
class Stop:
    """Where the focus is.

    Attributes:
        name: what is said of it.
        tag: the element.
    """

    name: str
    tag: str


async def tab_on(page: Any) -> Stop:
    """Presses Tab once: what has the focus then is on the screen, has an outline, and is further down the page."""
    await page.keyboard.press("Tab")
    at = await page.evaluate(FOCUS)
    assert at["outlined"], at
    assert at["seen"], at
    assert at["onwards"], at
    return Stop(at["name"], at["tag"])


async def tab_to(page: Any, name: str, tag: str) -> list[str]:
    """Presses Tab until an element of this name has the focus; the names of those before it."""
    passed: list[str] = []
    for _ in range(MOST_STEPS):
        stop = await tab_on(page)
        if (stop.name, stop.tag) == (name, tag):
            return passed
        if passed[-1:] != [stop.name]:  # a field of a time has a stop for each of its parts
            passed.append(stop.name)
    raise AssertionError(f"{name} isn't reached by Tab: {passed}")


def test_offsets_are_reset_by_keyboard_alone() -> None:
    async def work(tab: Tab) -> None:
        page = tab.page
        await tab.open("/groups?q=billing")
        passed = await tab_to(page, "billing", "a")
        assert passed[0] == "Skip to the content"
        assert passed[1:6] == ["Kohort", "Groups", "Topics", "The wire", "Pause updates"]
        assert passed[6] == "Name has"
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", level=1, name="billing").wait_for()

        await tab_to(page, "Skip to the content", "a")
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"
        await page.evaluate("window.before = document.activeElement")
        assert await tab_to(page, "Change this group", "a") == ["Groups"]
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", level=1, name="Change billing").wait_for()

        await tab_to(page, "To", "select")
        await page.keyboard.type("so many")
        assert await page.locator("select[name=to]").input_value() == "shift"
        assert await tab_to(page, "Records on; back, if negative", "input") == ["Offset", "Time (UTC)"]
        await page.keyboard.type("-1")
        await tab_to(page, "Show what will happen", "button")
        await page.keyboard.press("Enter")
        await page.get_by_text("2 records are read again.").wait_for()

        await tab_to(page, "Reset the offsets of billing", "button")
        await page.keyboard.press("Space")
        await page.get_by_role("status").get_by_text("are reset").wait_for()
        found = await tab.admin.group_offsets.committed("billing")
        assert {at: each.offset for at, each in found.items()} == {P0: 0, P1: 9}
        await tab_to(page, "billing", "a")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", level=1, name="billing").wait_for()

    in_browser(work, writing())
