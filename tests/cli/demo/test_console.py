"""The console beside the demo."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kohort.cli.demo.console import DemoConsole, LagChart, start_console, until_there
from kohort.cli.demo.page import write_page
from kohort.cli.demo.plan import APPLICATION, Plan
from kohort.cli.demo.processes import Child
from kohort.client.admin import Admin
from kohort.client.types import TopicPartition
from kohort.testing import Broker


def test_it_is_there_and_its_chart_goes_into_the_page(tmp_path: Path) -> None:
    plan = Plan(None, 10, tmp_path, tmp_path, 0, 1, False)
    plan.prepare()

    async def whole(servers: str) -> tuple[DemoConsole | None, LagChart | None]:
        async with Admin(servers) as admin:
            await admin.topics.create("flights")
            await admin.group_offsets.alter(APPLICATION, {TopicPartition("flights", 0): 0})
        with start_console(servers, plan) as process:
            console = await until_there(process)
            return console, None if console is None else await console.lag_chart()

    with Broker() as broker:
        console, lag = asyncio.run(whole(broker.bootstrap_servers))
    assert console is not None
    assert console.group.endswith("/group?id=flight-delays")
    assert lag is not None
    program = tmp_path / "program.py"
    program.write_text("pass")
    page = write_page(
        tmp_path / "demo.html",
        verdict="v",
        good=True,
        facts=[],
        charts=[],
        program=program,
        lag=lag,
        console=console.group,
    ).read_text()
    assert f'<polyline points="{lag.points}">' in page
    assert f'<a href="{console.group}">' in page


def test_a_console_that_ends_is_done_without(tmp_path: Path) -> None:
    with Child("the console", ["true"], tmp_path / "log") as process:
        assert asyncio.run(until_there(process)) is None
    assert LagChart.of("<svg viewBox='0'>") is None
