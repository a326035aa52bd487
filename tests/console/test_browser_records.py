"""Records in a browser: chosen, searched, and written, be they full of HTML."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from kohort.client.producer import Producer
from tests.console.test_browser import HTML, Tab, in_browser, violations
from tests.console.test_browser_changes import writing
from tests.interop.toolchains import BUILD_S

pytestmark = [pytest.mark.long, pytest.mark.timeout(BUILD_S)]

NOON_MS = 1_357_041_600_000
"""2013-01-01, in the topic `times`, a record an hour from there on."""


async def rows(tab: Tab) -> list[list[str]]:
    """What the table of records shows, once it is there."""
    await tab.page.locator("table.records").wait_for()
    shown: list[list[str]] = await tab.page.evaluate(
        "[...document.querySelectorAll('.records tbody tr')].map(row => [...row.cells].map(each => each.innerText))"
    )
    return shown


async def show(tab: Tab, **fields: str) -> list[list[str]]:
    """Fills in the form above the records."""
    for name, value in fields.items():
        field = tab.page.locator(f"form.filter [name='{name.rstrip('_')}']")
        if await field.evaluate("each => each.tagName") == "SELECT":
            await field.select_option(value)
        else:
            await field.fill(value)
    await tab.page.get_by_role("button", name="Show").click()
    await tab.page.wait_for_load_state()
    return await rows(tab)


def test_records_are_chosen_and_searched() -> None:
    async def work(tab: Tab) -> None:
        await tab.admin.topics.create("times")
        async with Producer(tab.servers) as producer:
            for hour in range(6):
                value = json.dumps({"n": hour, "deep": {"odd": bool(hour % 2)}}).encode()
                await producer.send("times", value, key=b"k%d" % hour, timestamp_ms=NOON_MS + 3_600_000 * hour)
        await tab.open("/records?topic=times")
        found = await rows(tab)
        assert [each[0] for each in found] == [f"0: {number}" for number in range(6)]
        assert json.loads(found[1][3]) == {"n": 1, "deep": {"odd": True}}
        assert found[0][1].startswith("2013-01-01 12:00:00")

        assert [each[2] for each in await show(tab, from_="offset", offset="4")] == ["k4", "k5"]
        assert await tab.page.locator("select[name=from]").input_value() == "offset"
        assert [each[2] for each in await show(tab, from_="time", time="2013-01-01T14:30:00")] == ["k3", "k4", "k5"]
        await tab.page.get_by_text("Only some records").click()
        assert [each[2] for each in await show(tab, field="deep.odd = true")] == ["k3", "k5"]
        assert await tab.page.get_by_label("Field of the value").is_visible()
        await tab.page.get_by_text("2 records; 3 were looked at").wait_for()
        assert (await tab.page.get_by_label("Time (UTC)").input_value()).startswith("2013-01-01T14:30")

        # What is Kafka's own is decoded: a commit says whose it is.
        await tab.open("/records?topic=__consumer_offsets&key=billing")
        for _, _, key, value, _ in await rows(tab):
            commit = json.loads(key.partition("\nOffsetCommit")[0])["OffsetCommit"]
            assert (commit["Group"], commit["Topic"]) == ("billing", "orders")
            assert '"CommitTimestamp"' in value

    in_browser(work)


def test_who_may_only_look_is_told_so() -> None:
    async def work(tab: Tab) -> None:
        for path in ("/topic?name=orders", "/group?id=billing", "/topics"):
            await tab.open(path)
            for name in ("Change this group", "change this topic", "Create a topic"):
                assert await tab.page.get_by_role("link", name=name).count() == 0
        refused = "The console only shows: nothing is changed unless it is started with --write."
        await tab.open("/change?topic=orders")
        await tab.page.get_by_text(refused).wait_for()
        assert await violations(tab, "refused") == []
        # A form that was shown while the console had --write, or that somebody makes.
        fields = {"topic": "orders", "action": "produce", "value": "x"}
        await send(tab, "/change", fields)
        await tab.page.get_by_text(refused).wait_for()
        await tab.page.get_by_role("link", name="all topics").click()
        await tab.open("/records?topic=orders&partition=0&count=1")
        assert [each[0] for each in await rows(tab)] == ["0: 9"]

    in_browser(work)


async def send(tab: Tab, path: str, fields: dict[str, str]) -> None:
    """Sends a form from the page that is open."""
    script = """([path, fields]) => {
      const form = document.createElement("form");
      form.action = path;
      form.method = "post";
      for (const [name, value] of Object.entries(fields)) {
        const input = document.createElement("input");
        [input.type, input.name, input.value] = ["hidden", name, value];
        form.append(input);
      }
      document.body.append(form);
      form.submit();
    }"""
    async with tab.page.expect_navigation():
        await tab.page.evaluate(script, [path, fields])


def test_a_record_full_of_html_is_written_and_seen_as_it_is() -> None:
    image = "<img src=x onerror=alert(1)>"
    value = f"{image}{HTML}\n" * 12 + "</pre></details><style>main { display: none }</style>"

    async def work(tab: Tab) -> None:
        began = datetime.now(UTC)
        await tab.open("/topic?name=orders")
        await tab.page.get_by_role("link", name="change this topic").click()
        for name, text in {"key": image, "value": value, "headers": f"{HTML}={image}", "partition": "0"}.items():
            await tab.page.locator(f"form [name={name}]").first.fill(text)
        await tab.page.get_by_role("button", name="Show what will happen").first.click()
        assert await violations(tab, "a record to write") == []
        await tab.page.get_by_role("button", name="Write a record to orders").click()
        await tab.page.get_by_text("The record is in partition").wait_for()

        await tab.open("/records?topic=orders&partition=0&count=1")
        ((number, moment, key, shown, headers),) = await rows(tab)
        assert (number, key, headers) == ("0: 10", image, f"{HTML}: {image}")
        assert datetime.fromisoformat(moment.split(".")[0] + "+00:00") >= began.replace(microsecond=0)
        assert "text: <img src=x onerror=alert(1)><script>" in shown  # its beginning, before it is opened
        await tab.page.locator("td details summary").click()
        assert await tab.page.locator("td details pre").text_content() == value
        assert await tab.page.locator("main img, main script, main b, main style").count() == 0
        assert await tab.page.locator("main").is_visible()
        assert await violations(tab, "hostile") == []

    in_browser(work, writing())
