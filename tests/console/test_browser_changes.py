"""Changes and logins in a browser: as people do them, and with names that are HTML."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urlencode

import pytest

from kohort.console.audit import AuditLog
from kohort.console.login import Login
from kohort.console.server import Policy
from kohort.console.visit import RefusedError
from tests.console.test_browser import HTML, P0, P1, Tab, in_browser, violations
from tests.interop.toolchains import BUILD_S

pytestmark = [pytest.mark.long, pytest.mark.timeout(BUILD_S)]


def writing() -> Policy:
    return Policy(write=True, audit=AuditLog(stream=io.StringIO()))


def test_offsets_are_reset_in_two_steps() -> None:
    async def work(tab: Tab) -> None:
        await tab.open("/group?id=billing")
        await tab.page.get_by_role("link", name="Change this group").click()
        assert await violations(tab, "change group") == []
        await tab.page.locator("select[name=to]").select_option("shift")
        await tab.page.locator("input[name=shift]").fill("-1")
        await tab.page.get_by_role("button", name="Show what will happen").first.click()
        await tab.page.get_by_text("2 records are read again.").wait_for()
        assert await violations(tab, "plan") == []
        await tab.page.get_by_role("button", name="Reset the offsets of billing").click()
        await tab.page.get_by_role("status").get_by_text("are reset").wait_for()
        await tab.page.reload()  # shows it again, and does nothing again
        await tab.page.get_by_role("status").get_by_text("are reset").wait_for()
        assert await violations(tab, "done") == []
        found = await tab.admin.group_offsets.committed("billing")
        assert {at: each.offset for at, each in found.items()} == {P0: 0, P1: 9}

    in_browser(work, writing())


def test_names_and_values_that_are_html_stay_text_in_forms() -> None:
    async def work(tab: Tab) -> None:
        await tab.open("/change?" + urlencode({"group": HTML}))
        await tab.page.get_by_role("button", name="Show what will happen").last.click()
        assert await tab.page.get_by_role("heading", level=1).text_content() == f"Delete the group {HTML}?"
        await tab.open("/change?topic=orders")
        assert await violations(tab, "change topic") == []
        await tab.page.locator("textarea[name=value]").fill(HTML)
        await tab.page.locator("textarea[name=headers]").fill(f"{HTML}=x")
        await tab.page.get_by_role("button", name="Show what will happen").first.click()
        await tab.page.get_by_role("button", name="Write a record to orders").click()
        await tab.page.get_by_text("The record is in partition").wait_for()

    in_browser(work, writing(), java_script_enabled=True)


class _Open(Login):
    by_name = True

    async def enter(self, name: str, secret: str) -> Any:
        raise RefusedError(f"{HTML} isn't let in.", 200)


def test_the_login() -> None:
    async def work(tab: Tab) -> None:
        await tab.open("/group?id=billing")
        assert tab.page.url.endswith("/login?next=%2Fgroup%3Fid%3Dbilling")
        assert await violations(tab, "login") == []
        await tab.page.get_by_label("Name").fill(HTML)
        await tab.page.get_by_label("Password").fill("x")
        await tab.page.keyboard.press("Enter")
        await tab.page.get_by_role("alert").get_by_text("isn't let in").wait_for()
        assert await violations(tab, "not let in") == []

    in_browser(work, Policy(_Open(), audit=AuditLog(stream=io.StringIO())))
