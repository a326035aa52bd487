"""The live line: what the instance does, for those who watch it run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kohort.spark.running.listener import EpochDone, Restoring, TasksNow
from kohort.spark.serving.overview import Overview

__all__ = ["ProgressLine", "summary"]

log = logging.getLogger(__name__)

_REFRESH: Final = 4  # a second
_BAR: Final = 30
_MAX_BARS: Final = 8
_QUIET_FOR: Final = 1.0  # seconds between log lines of epochs
_STEP: Final = 0.25  # of a restore, between log lines
_STYLES: Final = {
    "running": "green",
    "restoring": "cyan",
    "starting": "cyan",
    "waiting": "yellow",
    "stopped": "red",
    "failing": "red",
}


class ProgressLine:
    """A listener that shows what the instance does: on a terminal in a line that changes, elsewhere in the log.

    Below the line on a terminal are a bar for each store that is being restored, and why nothing goes on if that is so.

    Args:
        application_id: of the application.
        overview: another listener of the same instance; it must be told first.
        console: where to write; standard error by default.
    """

    def __init__(self, application_id: str, overview: Overview, console: Console | None = None) -> None:
        self._console = Console(stderr=True, highlight=False) if console is None else console
        self._overview = overview
        self._live: _Live | None = None
        self._log = _LogLines(application_id, overview, overview.clock)
        self._name = application_id

    def start(self) -> None:
        """Begin to show it."""
        if self._console.is_terminal and self._live is None:
            self._live = _Live(self.rendered, self._console)
            self._live.start()

    def close(self) -> None:
        """Show the last state, and no more."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        else:
            self._log.flush()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""
        if self._live is None:
            self._log.epoch(done)

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed."""
        if self._live is None:
            self._log.tasks(now)

    def restoring(self, progress: Restoring) -> None:
        """A store is being restored."""
        if self._live is None:
            self._log.restoring(progress)

    def waiting(self, reason: str | None) -> None:
        """Why nothing goes on."""
        if self._live is None:
            self._log.waiting(reason)

    def failed(self, text: str) -> None:
        """Something went wrong. On a terminal it stays to be read, above the line."""
        if self._live is None:
            log.error("%s: %s", self._name, text)
        else:
            self._console.print(Text.assemble((f"{self._name}: ", "bold red"), _printable(text)))

    def rendered(self) -> RenderableType:
        """The line, the bars and the reason, as they are now."""
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
                    f"  restoring {restore.task} {_printable(restore.store)}",
                    ProgressBar(total=max(restore.end, 1), completed=max(done, 0), width=_BAR),
                    f"{restore.remaining:,} records left",
                )
            lines.append(bars)
        if len(restores) > _MAX_BARS:
            lines.append(Text(f"  and {len(restores) - _MAX_BARS} more stores"))
        stopped = {} if overview.now is None else overview.now.stopped
        lines += [Text(f"  part {part} stands still: {_printable(why)}", "red") for part, why in stopped.items()]
        if overview.reason is not None:
            lines.append(Text(f"  waiting: {_printable(overview.reason)}", "yellow"))
        return Group(*lines)


class _Live(Live):
    """Refreshes from a thread of its own. What loggers write to the terminal meanwhile goes above the line."""

    def __init__(self, render: Callable[[], RenderableType], console: Console) -> None:
        super().__init__(
            console=console,
            refresh_per_second=_REFRESH,
            get_renderable=render,
        )
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
        with contextlib.suppress(RuntimeError):  # what is shown changed in the middle of it; it is shown again soon
            super().refresh()


class _LogLines:
    """The same in the log: changes when they happen, epochs at most once a second."""

    def __init__(self, name: str, overview: Overview, clock: Callable[[], float]) -> None:
        self._name = name
        self._overview = overview
        self._clock = clock
        self._said = 0.0
        self._pending = 0
        self._later: asyncio.TimerHandle | None = None
        self._steps: dict[tuple[str, str], float] = {}

    def epoch(self, done: EpochDone) -> None:
        self._pending += 1
        wait = self._said + _QUIET_FOR - self._clock()
        if wait <= 0:
            self.flush()
        elif self._later is None:
            with contextlib.suppress(RuntimeError):  # no loop: then the next epoch says it, or the end
                self._later = asyncio.get_running_loop().call_later(wait, self.flush)

    def flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._pending:
            epochs, self._pending = self._pending, 0
            self._said = self._clock()
            log.info("%s: %s, %d epoch%s", self._name, summary(self._overview), epochs, "" if epochs == 1 else "s")

    def tasks(self, now: TasksNow) -> None:
        parts = [
            f"{name} {','.join(tasks)}"
            for name, tasks in (
                ("active", now.active), ("restoring", now.restoring), ("closing", now.closing),
                ("standby", now.standby), ("warm-up", now.warmup),
            )
            if tasks
        ]  # fmt: skip
        log.info("%s: tasks: %s", self._name, "; ".join(parts) or "none")
        for part, why in now.stopped.items():
            log.warning("%s: part %s stands still: %s", self._name, part, why)

    def restoring(self, progress: Restoring) -> None:
        key = (progress.task, progress.store)
        share = 1 - progress.remaining / max(progress.end, 1)
        if progress.done:
            self._steps.pop(key, None)
            log.info("%s: task %s: %s is restored", self._name, *key)
        elif key not in self._steps or share >= self._steps[key] + _STEP:
            self._steps[key] = share
            log.info(
                "%s: task %s: restoring %s: %d%%, %s records left",
                self._name, *key, int(100 * share), f"{progress.remaining:,}",
            )  # fmt: skip

    def waiting(self, reason: str | None) -> None:
        if reason is None:
            log.info("%s: going on", self._name)
        else:
            log.info("%s: waiting: %s", self._name, reason)


def summary(overview: Overview) -> str:
    """Records, rate, lag, the last epoch and tasks by role: "1,200 records  400/s  lag 0  …"."""
    now = overview.now
    parts = [f"{overview.records:,} records", f"{overview.rate():,.0f}/s", f"lag {overview.lag:,}"]
    ends = [part.last for part in list(overview.parts.values())]
    if ends:
        last = max(ends, key=lambda done: done.at)
        ago = time.strftime("%H:%M:%S", time.localtime(last.at))
        parts.append(f"epoch {last.part}#{last.number} {last.took_ms:,.0f} ms at {ago}")
    for name, count in (("dropped", "dropped"), ("late", "late")):
        if total := sum(getattr(part, count) for part in list(overview.parts.values())):
            parts.append(f"{total:,} {name}")
    if now is not None:
        roles = [f"{len(now.active)} active"]
        roles += [f"{len(now.standby)} standby"] if now.standby else []
        roles += [f"{len(now.warmup)} warm-up"] if now.warmup else []
        parts.append("tasks " + " ".join(roles))
    return "  ".join(parts)


def _printable(text: str) -> str:
    """`text` with escapes for whatever a terminal would obey instead of showing it."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
