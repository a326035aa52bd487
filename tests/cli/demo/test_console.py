"""The console beside the demo."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

from kohort.cli.demo.console import DemoConsole, LagChart, TaskLine, start_console, until_there
from kohort.cli.demo.page import write_page
from kohort.cli.demo.plan import APPLICATION, Plan
from kohort.cli.demo.processes import Child
from kohort.client.admin import Admin
from kohort.client.types import TopicPartition
from kohort.testing import Broker
from tests.console.made_up_cluster import made_up_console


def test_it_is_there_and_its_chart_goes_into_the_page(tmp_path: Path) -> None:
    plan = Plan(None, 10, tmp_path, tmp_path, 0, 1, False)
    plan.prepare()

    async def whole(servers: str) -> tuple[DemoConsole | None, LagChart | None]:
        async with Admin(servers) as admin:
            await admin.topics.create("flights")
            await admin.group_offsets.alter(APPLICATION, {TopicPartition("flights", 0): 0})
        with start_console(servers, plan) as process:
            console = await until_there(process)
            return console, None if console is None else (await console.pictures())[0]

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


def test_the_page_has_the_tasks_over_time(tmp_path: Path) -> None:
    """Of two instances, one of them away for a while: what the console draws, in its colours; names are text."""

    async def whole() -> tuple[LagChart | None, TaskLine | None]:
        with Child("the console", ["true"], tmp_path / "log") as process:
            async with made_up_console() as server:
                return await DemoConsole(process, f"http://127.0.0.1:{server.port}/").pictures()

    lag, tasks = asyncio.run(whole())
    assert lag is not None
    assert tasks is not None
    assert {of for of, _ in tasks.bars} == {f"{role} colour-{at}" for role in ("active", "standby") for at in (0, 1)}
    assert [name for x, _, name in tasks.names if x == "4"] == [f"{part}_{at}" for part in (0, 1) for at in range(6)]
    assert "12 tasks in the last 15 min" in tasks.text
    program = tmp_path / "program.py"
    program.write_text("pass")
    shown = replace(tasks, names=(*tasks.names, ("4", "300", "<b>")))
    page = write_page(
        tmp_path / "demo.html", verdict="v", good=True, facts=[], charts=[], program=program, tasks=shown
    ).read_text()
    for of, path in tasks.bars:
        assert f'<path class="{of}" d="{path}"></path>' in page
        assert re.search(rf"\.{of.split()[1]} {{ --colour: #", page)
    assert '<text x="4" y="300">&lt;b&gt;</text>' in page
    assert 'class="lag"' not in page


def test_a_console_that_ends_is_done_without(tmp_path: Path) -> None:
    with Child("the console", ["true"], tmp_path / "log") as process:
        assert asyncio.run(until_there(process)) is None
    assert LagChart.of("<svg viewBox='0'>") is None
    assert TaskLine.of('<svg viewBox="0 0 1 1" data-viewbox="timeline_box">') is None
