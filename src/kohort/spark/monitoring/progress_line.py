"""The live line on a terminal: what the instance does."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kohort.plurals import several
from kohort.spark.monitoring.events import EpochDone, Listener, Restoring, TasksNow
from kohort.spark.monitoring.overview import Overview
from kohort.spark.monitoring.progress_log import ProgressLog, printable, summary

_REFRESH: Final = 4  # a second
_BAR: Final = 30
_MAX_BARS: Final = 8
_STYLES: Final = {
    "running": "green",
    "restoring": "cyan",
    "starting": "cyan",
    "waiting": "yellow",
    "stopped": "red",
    "failing": "red",
}


class ProgressLine(Listener):
    """Shows what the instance does: on a terminal in a line that changes, elsewhere line by line.

    Below the line on a terminal are a bar for each store that is being restored, and the reason if the instance waits.

    Args:
        overview: a listener of the same instance that is called before this one.
        console: where it writes; standard error by default.
    """

    def __init__(self, application_id: str, overview: Overview, console: Console | None = None) -> None:
        self._console = Console(stderr=True, highlight=False) if console is None else console
        self._overview = overview
        self._live: _Live | None = None
        self._log = ProgressLog(application_id, overview, self._console)
        self._name = application_id

    def start(self) -> None:
        if self._console.is_terminal and self._live is None:
            self._live = _Live(self.rendered, self._console)
            self._live.start()

    def close(self) -> None:
        """Shows the last state, and stops."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        else:
            self._log.flush()

    def starting(self, step: str) -> None:
        if self._live is None:
            self._log.starting(step)

    def epoch(self, done: EpochDone) -> None:
        if self._live is None:
            self._log.epoch(done)

    def tasks(self, now: TasksNow) -> None:
        if self._live is None:
            self._log.tasks(now)

    def restoring(self, progress: Restoring) -> None:
        if self._live is None:
            self._log.restoring(progress)

    def waiting(self, reason: str | None) -> None:
        if self._live is None:
            self._log.waiting(reason)

    def left(self, group_lag: int) -> None:
        """Says the lag of the group, which is another than this instance's: the live line has it as its last."""
        if self._live is None:
            self._log.left(group_lag)

    def failed(self, text: str) -> None:
        """Shows a failure; on a terminal it stays above the line."""
        if self._live is None:
            self._log.failed(text)
        else:
            self._console.print(Text.assemble((f"{self._name}: ", "bold red"), printable(text)))

    def rendered(self) -> RenderableType:
        """The line, the bars and the reason."""
        overview = self._overview
        state = overview.state()
        style = _STYLES[state]
        lines: list[RenderableType] = [
            Text.assemble(
                (self._name, "bold"), " ", (state, style), "  ", summary(overview), no_wrap=True, overflow="ellipsis"
            )
        ]
        restores = sorted(overview.restores.values(), key=lambda each: (each.task, each.store))
        if restores:
            bars = Table.grid(padding=(0, 1))
            for restore in restores[:_MAX_BARS]:
                done = restore.end - restore.remaining
                bars.add_row(
                    f"  restoring {restore.task} {printable(restore.store)}",
                    ProgressBar(total=max(restore.end, 1), completed=max(done, 0), width=_BAR),
                    f"{several(restore.remaining, 'record')} left",
                )
            lines.append(bars)
        if len(restores) > _MAX_BARS:
            lines.append(Text(f"  and {len(restores) - _MAX_BARS} more stores"))
        stopped = {} if overview.now is None else overview.now.stopped
        lines += [Text(f"  subtopology {name} is stopped: {printable(why)}", "red") for name, why in stopped.items()]
        if state == "starting" and overview.step is not None:
            lines.append(Text(f"  {printable(overview.step)}", "cyan"))
        if overview.reason is not None:
            lines.append(Text(f"  waiting: {printable(overview.reason)}", "yellow"))
        return Group(*lines)


class _Live(Live):
    """Refreshes in a thread of its own. What loggers write to the terminal goes above the line."""

    def __init__(self, render: Callable[[], RenderableType], console: Console) -> None:
        super().__init__(console=console, refresh_per_second=_REFRESH, get_renderable=render)
        self._moved: list[tuple[logging.StreamHandler[Any], Any]] = []

    def start(self, refresh: bool = False) -> None:
        before = {id(stream): name for name in ("stdout", "stderr") if (stream := getattr(sys, name)) is not None}
        super().start(refresh)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and id(handler.stream) in before:
                self._moved.append((handler, handler.setStream(getattr(sys, before[id(handler.stream)]))))

    def stop(self) -> None:
        while self._moved:
            handler, stream = self._moved.pop()
            handler.setStream(stream)
        super().stop()

    def refresh(self) -> None:
        with contextlib.suppress(RuntimeError):  # the overview changed meanwhile; the next refresh comes soon
            super().refresh()
