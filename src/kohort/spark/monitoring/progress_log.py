"""What the instance does, line by line: in the log, or on standard error where nobody listens to the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Final

from kohort.plurals import several
from kohort.spark.monitoring.events import EpochDone, Listener, Restoring, TasksNow
from kohort.spark.monitoring.overview import Overview, SubtopologyTotals

if TYPE_CHECKING:
    from rich.console import Console

log = logging.getLogger("kohort.spark.monitoring.progress_line")

_LOGGED_EVERY: Final = 1.0  # seconds between summaries of epochs, in the log
_WRITTEN_EVERY: Final = 10.0  # the same on standard error
_TASKS_EVERY: Final = 1.0  # seconds between lines of tasks on standard error: tasks come and go by the dozen
_STEP: Final = 0.25  # the share of a restore between two lines of it


class ProgressLog(Listener):
    """Writes changes when they happen, and summaries of epochs.

    The lines go to the log if that takes INFO. Otherwise they go to the console, with the time in UTC, and warnings and
    failures to the log as well if that takes them.

    Args:
        name: the application's.
        overview: a listener of the same instance that is called before this one.
        console: where lines go that the log doesn't take.
    """

    def __init__(self, name: str, overview: Overview, console: Console) -> None:
        self._name, self._overview, self._console = name, overview, console
        self._epochs = 0
        self._step: str | None = None
        self._tasks = self._tasks_written = ""
        self._stopped: dict[str, str] = {}
        self._steps: dict[tuple[str, str], float] = {}
        self._summaries = _RateLimited(self._write_summary, overview.clock)
        self._changes = _RateLimited(self._write_tasks, overview.clock)

    def starting(self, step: str) -> None:
        if step != self._step and not _is_logged(logging.INFO):  # which has it already
            self._write(logging.INFO, step)
        self._step = step

    def epoch(self, done: EpochDone) -> None:
        self._epochs += 1
        self._summaries.due(_LOGGED_EVERY if _is_logged(logging.INFO) else _WRITTEN_EVERY)

    def tasks(self, now: TasksNow) -> None:
        roles = [
            f"{name} {','.join(tasks)}"
            for name, tasks in (
                ("active", now.active), ("restoring", now.restoring), ("closing", now.closing),
                ("standby", now.standby), ("warm-up", now.warmup),
            )
            if tasks
        ]  # fmt: skip
        self._tasks = "; ".join(roles) or "none"
        self._changes.due(0.0 if _is_logged(logging.INFO) else _TASKS_EVERY)
        for subtopology, why in now.stopped.items():
            if self._stopped.get(subtopology) != why:
                self._write(logging.WARNING, f"subtopology {subtopology} is stopped: {why}")
        self._stopped = dict(now.stopped)

    def restoring(self, progress: Restoring) -> None:
        if not _is_logged(logging.INFO):
            self._summaries.due(_WRITTEN_EVERY)
            return
        key = (progress.task, progress.store)
        share = 1 - progress.remaining / max(progress.end, 1)
        if progress.done:
            self._steps.pop(key, None)
            self._write(logging.INFO, f"task {progress.task}: {progress.store} is restored")
        elif key not in self._steps or share >= self._steps[key] + _STEP:
            self._steps[key] = share
            left = f"{int(100 * share)}%, {several(progress.remaining, 'record')} left"
            self._write(logging.INFO, f"task {progress.task}: restoring {progress.store}: {left}")

    def waiting(self, reason: str | None) -> None:
        self._write(logging.INFO, "going on" if reason is None else f"waiting: {reason}")

    def failed(self, text: str) -> None:
        self._write(logging.ERROR, text)

    def left(self, group_lag: int) -> None:
        self._write(logging.INFO, f"has left its group, which has {several(group_lag, 'record')} left to read")

    def flush(self) -> None:
        """Writes what is still due."""
        self._changes.flush()
        self._summaries.flush()

    def _write_tasks(self) -> bool:
        if self._tasks == self._tasks_written:
            return False
        self._tasks_written = self._tasks
        self._write(logging.INFO, f"tasks: {self._tasks}")
        return True

    def _write_summary(self) -> bool:
        restores = [] if _is_logged(logging.INFO) else list(self._overview.restores.values())
        if not self._epochs and not restores:
            return False
        texts = [summary(self._overview)]
        if restores:
            left = sum(each.remaining for each in restores)
            texts.append(f"restoring {several(len(restores), 'store')}: {several(left, 'record')} left")
        if self._epochs:
            texts.append(several(self._epochs, "epoch"))
        self._epochs = 0
        self._write(logging.INFO, ", ".join(texts))
        return True

    def _write(self, level: int, text: str) -> None:
        write_line(level, self._name, text, self._console.file, self._overview.clock())


class _RateLimited:
    """Calls `write`, which returns whether it had anything to write, at most once in so many seconds.

    It is called at once, or when the seconds since the last line are over.
    """

    def __init__(self, write: Callable[[], bool], clock: Callable[[], float]) -> None:
        self._write, self._clock = write, clock
        self._written_at = float("-inf")
        self._later: asyncio.TimerHandle | None = None

    def due(self, every: float) -> None:
        wait = self._written_at + every - self._clock()
        if wait <= 0:
            self.flush()
        elif self._later is None:
            with contextlib.suppress(RuntimeError):  # no loop: the next call writes it, or the last flush
                self._later = asyncio.get_running_loop().call_later(wait, self.flush)

    def flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._write():
            self._written_at = self._clock()


def write_line(level: int, name: str, text: str, file: IO[str], at: float) -> None:
    """Writes a line of an application to the log, or to a file where that doesn't take INFO.

    Args:
        at: the time, in seconds since 1970.
    """
    if _is_logged(level):
        log.log(level, "%s: %s", name, text)
    if _is_logged(logging.INFO):
        return
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    with contextlib.suppress(OSError, ValueError):  # the file is closed
        print(f"{shown} {name}: {printable(text)}", file=file, flush=True)


def _is_logged(level: int) -> bool:
    return log.isEnabledFor(level) and log.hasHandlers()


def summary(overview: Overview) -> str:
    """Records, rate, lag, the last epoch and tasks by role: "1,200 records  400/s  lag here 0  …".

    Rows that come out of repartition topics are counted apart: a user has written them once. The lag is of the
    instance's own tasks; in the end the group's, too.
    """
    now = overview.now
    texts = [several(overview.records, "record"), f"{overview.rate():,.0f}/s"]
    texts += [f"{overview.again:,} repartitioned"] if overview.again else []
    if overview.group_lag is not None:
        texts.append(f"lag of the group {overview.group_lag:,}")
    elif now is None or now.active or overview.lag:  # without tasks, the lag is another instance's
        texts.append(f"lag here {overview.lag:,}")
    subtopologies = list(overview.subtopologies.values())
    if subtopologies:
        last = max((totals.last for totals in subtopologies), key=lambda done: done.at)
        at = time.strftime("%H:%M:%SZ", time.gmtime(last.at))
        texts.append(f"epoch {last.subtopology}#{last.number} {last.took_ms:,.0f} ms at {at}")
    texts += _left_out(subtopologies)
    if now is not None:
        roles = [f"{len(now.active)} active"]
        roles += [f"{len(now.standby)} standby"] if now.standby else []
        roles += [f"{len(now.warmup)} warm-up"] if now.warmup else []
        texts.append("tasks " + " ".join(roles))
    return "  ".join(texts)


def _left_out(subtopologies: Sequence[SubtopologyTotals]) -> list[str]:
    texts = []
    if dropped := sum(totals.dropped for totals in subtopologies):
        reasons = sum((totals.reasons for totals in subtopologies), Counter())
        texts.append(f"{dropped:,} dropped ({', '.join(f'{reasons[why]:,} {why}' for why in sorted(reasons))})")
    if late := sum(totals.late for totals in subtopologies):
        texts.append(f"{late:,} late")
    return texts


def printable(text: str) -> str:
    """`text` with escapes for the characters that a terminal wouldn't show."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
