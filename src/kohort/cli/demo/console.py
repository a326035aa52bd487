"""The console beside the demo: where it is while the demo runs, and its pictures for the page at the end."""

from __future__ import annotations

import asyncio
import html
import re
import sys
import time
import urllib.request
from dataclasses import dataclass
from importlib.resources import files
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
_TASKS_BOX: Final = re.compile(r'<svg viewBox="([0-9 ]+)" data-viewbox="timeline_box"')
_TASKS_BARS: Final = re.compile(r'<path class="([a-z-]+ colour-[0-9]+)" d="([Mhvz0-9.,-]+)" data-d="timeline ')
_TASKS_NAMES: Final = re.compile(r'<text x="([0-9]+)" y="([0-9]+)" data-text="timeline [a-z]+ [0-9]+">([^<]+)<')
_TASKS_TEXT: Final = re.compile(r'data-text="timeline_text">([^<]*)<')
_COLOURS: Final = re.compile(r"^\.colour-[0-9]+ \{[^}]*\}$", re.MULTILINE)


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
class TaskLine:
    """The group's tasks over time, as its page in the console draws them.

    Attributes:
        box: the SVG's view box.
        bars: the classes of each path, which say role and member, and the path.
        names: x, y and text of tasks, and of the members that have them.
        text: what it says below.
    """

    box: str
    bars: tuple[tuple[str, str], ...]
    names: tuple[tuple[str, str, str], ...]
    text: str

    @classmethod
    def of(cls, page: str) -> TaskLine | None:
        """The picture on a group's page; None if there is none, or nothing in it yet."""
        box, text = _TASKS_BOX.search(page), _TASKS_TEXT.search(page)
        bars = tuple((each[1], each[2]) for each in _TASKS_BARS.finditer(page))
        if box is None or text is None or not bars:
            return None
        names = tuple((each[1], each[2], html.unescape(each[3])) for each in _TASKS_NAMES.finditer(page))
        return cls(box[1], bars, names, html.unescape(text[1]))


def member_colours() -> str:
    """The rules of the console's style sheet that give members their colours."""
    return "\n".join(_COLOURS.findall((files("kohort.console") / "static" / "console.css").read_text()))


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

    async def pictures(self) -> tuple[LagChart | None, TaskLine | None]:
        """The group's lag and tasks over time as they are now; None for what can't be had: the demo goes on without."""
        try:
            page = await asyncio.to_thread(self._page)
        except OSError:
            return None, None
        return LagChart.of(page), TaskLine.of(page)

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
