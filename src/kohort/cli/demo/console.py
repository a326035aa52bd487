"""The console beside the demo: where it is while the demo runs, and its chart for the page at the end."""

from __future__ import annotations

import asyncio
import html
import re
import sys
import time
import urllib.request
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from kohort.cli.demo.plan import APPLICATION, Plan
from kohort.cli.demo.processes import Child

_START: Final = 30.0
"""Seconds that it may take to start; without it the demo goes on."""

_ANSWER: Final = 5.0

_LINE: Final = re.compile(r'<polyline points="([0-9., ]+)"')
_BOX: Final = re.compile(r'<svg viewBox="([0-9 -]+)"')
_TEXT: Final = re.compile(r'data-text="chart_text">([^<]*)<')


@dataclass(frozen=True, slots=True)
class LagChart:
    """The group's lag over time, as its page in the console draws it.

    Attributes:
        box, points: of the SVG's view box and its line.
        text: what it says below.
    """

    box: str
    points: str
    text: str

    @classmethod
    def of(cls, page: str) -> LagChart | None:
        """The chart on a group's page; None if there is none."""
        box, line, text = _BOX.search(page), _LINE.search(page), _TEXT.search(page)
        if box is None or line is None or text is None:
            return None
        return cls(box[1], line[1], html.unescape(text[1]))


@dataclass(frozen=True, slots=True)
class DemoConsole:
    """The console.

    Attributes:
        process: that it runs in.
        address: of its first page.
    """

    process: Child
    address: str

    @property
    def group(self) -> str:
        """The address of the application's group."""
        return f"{self.address}group?{urlencode({'id': APPLICATION})}"

    async def lag_chart(self) -> LagChart | None:
        """The chart as it is now; None if it can't be had, without which the demo goes on."""
        try:
            return LagChart.of(await asyncio.to_thread(self._page))
        except OSError:
            return None

    def _page(self) -> str:
        with urllib.request.urlopen(self.group, timeout=_ANSWER) as answer:
            text: str = answer.read().decode(errors="replace")
            return text


def start_console(servers: str, plan: Plan) -> Child:
    """Starts the console of a cluster, on a free port."""
    command = [sys.executable, "-P", "-m", "kohort.cli", "console", "--bootstrap-server", servers, "--port", "0"]
    return Child("the console", command, plan.run / "console-log.txt")


async def until_there(process: Child) -> DemoConsole | None:
    """Waits for the console; None if it doesn't come."""
    deadline = time.monotonic() + _START
    while process.code is None and time.monotonic() < deadline:
        if found := re.search(r"^(http://\S+/)$", process.log.read_text(errors="replace"), re.MULTILINE):
            return DemoConsole(process, found[1])
        await asyncio.sleep(0.1)
    return None
