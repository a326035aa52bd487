"""Progress of a command: a bar in a terminal, and a summary at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kohort.cli.terminal import err
from kohort.plurals import several

_UNITS = ("B", "kB", "MB", "GB", "TB")


class Progress:
    """What has been done since it was made.

    Attributes:
        total: the end of `position`; None if unknown.
        position: how much of `total` is done.
    """

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.total: int | None = None
        self.position = 0
        self._refresh: Callable[[], None] = lambda: None
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return max(1e-3, time.monotonic() - self._started)

    def summary(self, done: str) -> str:
        """A sentence: "sent 1,000 records (10.2 kB) in 0.1 s: 10,000 records/s, 102 kB/s"."""
        what = f"{done} {several(self.records, 'record')} ({in_words(self.bytes)}) in {self.seconds:,.1f} s"
        if not self.records:
            return what
        return f"{what}: {self.records / self.seconds:,.0f} records/s, {in_words(self.bytes / self.seconds)}/s"

    def restart(self) -> None:
        """Counts time from now on: what came before, such as connecting, doesn't belong to it."""
        self._started = time.monotonic()

    @contextmanager
    def shown(self, wanted: bool) -> Iterator[None]:
        """Draws a bar on standard error while the body runs, if that is a terminal and `wanted`."""
        if not (wanted and err.is_terminal):
            yield
            return
        with _bar(self) as refresh:
            self._refresh = refresh
            yield

    def advance(self, records: int, size: int) -> None:
        self.records += records
        self.bytes += size
        self._refresh()


@contextmanager
def _bar(progress: Progress) -> Iterator[Callable[[], None]]:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Display

    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[rate]}"),
    ]
    with Display(*columns, console=err, transient=True) as display:
        task = display.add_task("", total=None, rate="")

        def refresh() -> None:
            display.update(
                task,
                description=f"{several(progress.records, 'record')}, {in_words(progress.bytes)}",
                total=progress.total,
                completed=progress.position,
                rate=f"{progress.records / progress.seconds:,.0f} records/s",
            )

        yield refresh


def in_words(size: float) -> str:
    """A number of bytes in the largest unit that leaves it at 1 or more."""
    index = 0
    while size >= 999.5 and index < len(_UNITS) - 1:
        size /= 1000
        index += 1
    return f"{size:,.0f} {_UNITS[index]}" if index == 0 or size >= 99.95 else f"{size:.1f} {_UNITS[index]}"
