"""What the instance does, line by line: in the log, or on standard error where the log doesn't take it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console

from kohort.spark.monitoring.events import EpochDone, Restoring, TasksNow
from kohort.spark.monitoring.overview import Overview, PartSoFar

__all__ = ["ProgressLog", "printable", "summary"]

log = logging.getLogger("kohort.spark.monitoring.progress_line")

_LOGGED_EVERY: Final = 1.0  # seconds between lines that sum up epochs, in the log
_WRITTEN_EVERY: Final = 10.0  # and on standard error
_TASKS_EVERY: Final = 1.0  # seconds between lines of tasks there: they come and go by the dozen
_STEP: Final = 0.25  # of a restore, between log lines


class ProgressLog:
    """Changes when they happen, and epochs summed up.

    Whoever has set up `logging` to hear of them, so at INFO, finds them there. Otherwise they are written, with the
    time in UTC; failures are logged as well where the log takes them.

    Args:
        name: the application's.
        overview: of the same instance.
        console: where they are written.
    """

    def __init__(self, name: str, overview: Overview, console: Console) -> None:
        self._name, self._overview, self._console = name, overview, console
        self._epochs = 0
        self._tasks = self._told = ""
        self._stopped: dict[str, str] = {}
        self._steps: dict[tuple[str, str], float] = {}
        self._sums = _Paced(self._sum_up, overview.clock)
        self._changes = _Paced(self._tell_tasks, overview.clock)

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""
        self._epochs += 1
        self._sums.due(_LOGGED_EVERY if _is_logged(logging.INFO) else _WRITTEN_EVERY)

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed."""
        parts = [
            f"{name} {','.join(tasks)}"
            for name, tasks in (
                ("active", now.active), ("restoring", now.restoring), ("closing", now.closing),
                ("standby", now.standby), ("warm-up", now.warmup),
            )
            if tasks
        ]  # fmt: skip
        self._tasks = "; ".join(parts) or "none"
        self._changes.due(0.0 if _is_logged(logging.INFO) else _TASKS_EVERY)
        for part, why in now.stopped.items():
            if self._stopped.get(part) != why:
                self._say(logging.WARNING, f"part {part} stands still: {why}")
        self._stopped = dict(now.stopped)

    def restoring(self, progress: Restoring) -> None:
        """A store is being restored."""
        if not _is_logged(logging.INFO):
            self._sums.due(_WRITTEN_EVERY)
            return
        key = (progress.task, progress.store)
        share = 1 - progress.remaining / max(progress.end, 1)
        if progress.done:
            self._steps.pop(key, None)
            self._say(logging.INFO, f"task {progress.task}: {progress.store} is restored")
        elif key not in self._steps or share >= self._steps[key] + _STEP:
            self._steps[key] = share
            left = f"{int(100 * share)}%, {progress.remaining:,} records left"
            self._say(logging.INFO, f"task {progress.task}: restoring {progress.store}: {left}")

    def waiting(self, reason: str | None) -> None:
        """Why nothing goes on."""
        self._say(logging.INFO, "going on" if reason is None else f"waiting: {reason}")

    def failed(self, text: str) -> None:
        """Something went wrong."""
        self._say(logging.ERROR, text)

    def flush(self) -> None:
        """Say what hasn't been said yet."""
        self._changes.flush()
        self._sums.flush()

    def _tell_tasks(self) -> bool:
        if self._tasks == self._told:
            return False
        self._told = self._tasks
        self._say(logging.INFO, f"tasks: {self._tasks}")
        return True

    def _sum_up(self) -> bool:
        restores = [] if _is_logged(logging.INFO) else list(self._overview.restores.values())
        if not self._epochs and not restores:
            return False
        said = [summary(self._overview)]
        if restores:
            left = sum(each.remaining for each in restores)
            said.append(f"restoring {_several(len(restores), 'store')}: {left:,} records left")
        if self._epochs:
            said.append(_several(self._epochs, "epoch"))
        self._epochs = 0
        self._say(logging.INFO, ", ".join(said))
        return True

    def _say(self, level: int, text: str) -> None:
        if _is_logged(level):
            log.log(level, "%s: %s", self._name, text)
        if _is_logged(logging.INFO):
            return
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._overview.clock()))
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            print(f"{at} {self._name}: {printable(text)}", file=self._console.file, flush=True)


class _Paced:
    """Says something once in so many seconds at most: at once, or when they are over if more has come meanwhile.

    `say` gives whether there was anything to say.
    """

    def __init__(self, say: Callable[[], bool], clock: Callable[[], float]) -> None:
        self._say, self._clock = say, clock
        self._said = float("-inf")
        self._later: asyncio.TimerHandle | None = None

    def due(self, every: float) -> None:
        wait = self._said + every - self._clock()
        if wait <= 0:
            self.flush()
        elif self._later is None:
            with contextlib.suppress(RuntimeError):  # no loop: then the next time says it, or the end
                self._later = asyncio.get_running_loop().call_later(wait, self.flush)

    def flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._say():
            self._said = self._clock()


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _is_logged(level: int) -> bool:
    return log.isEnabledFor(level) and log.hasHandlers()


def summary(overview: Overview) -> str:
    """Records, rate, lag, the last epoch and tasks by role: "1,200 records  400/s  lag 0  …"."""
    now = overview.now
    parts = [f"{overview.records:,} records", f"{overview.rate():,.0f}/s"]
    if now is None or now.active or overview.lag:  # without tasks, what is left to read is others'
        parts.append(f"lag {overview.lag:,}")
    ends = [part.last for part in list(overview.parts.values())]
    if ends:
        last = max(ends, key=lambda done: done.at)
        ago = time.strftime("%H:%M:%SZ", time.gmtime(last.at))
        parts.append(f"epoch {last.part}#{last.number} {last.took_ms:,.0f} ms at {ago}")
    parts += _left_out(list(overview.parts.values()))
    if now is not None:
        roles = [f"{len(now.active)} active"]
        roles += [f"{len(now.standby)} standby"] if now.standby else []
        roles += [f"{len(now.warmup)} warm-up"] if now.warmup else []
        parts.append("tasks " + " ".join(roles))
    return "  ".join(parts)


def _left_out(parts: Sequence[PartSoFar]) -> list[str]:
    said = []
    if dropped := sum(part.dropped for part in parts):
        reasons = sum((part.reasons for part in parts), Counter())
        said.append(f"{dropped:,} dropped ({', '.join(f'{reasons[why]:,} {why}' for why in sorted(reasons))})")
    if late := sum(part.late for part in parts):
        said.append(f"{late:,} late")
    return said


def printable(text: str) -> str:
    """`text` with escapes for whatever a terminal would obey instead of showing it."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
