"""What a process and all that it started use: processor time and memory, watched while they run."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


def members(pid: int) -> list[int]:
    """The process and its descendants, parents first; none that has ended."""
    found, number = [pid], 0
    while number < len(found):
        for task in _tasks(found[number]):
            with contextlib.suppress(OSError):
                found += [int(child) for child in (task / "children").read_text().split()]
        number += 1
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def cpu_seconds(pids: list[int]) -> float:
    """Processor time of processes, and of children of theirs that have ended."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            # The command's name, in brackets, may have spaces in it.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / TICKS


def resident_mebibytes(pids: list[int]) -> float:
    """Resident memory of processes; what they share counts for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return total * PAGE_MIB


def disk_mebibytes(directory: Path) -> float:
    """What folders within a folder take on the disk; not the files that are in it itself, such as logs."""
    total = 0
    for top in filter(Path.is_dir, directory.iterdir()):
        for folder, folders, files in os.walk(top):  # which passes over folders that go meanwhile
            for name in (*folders, *files):
                with contextlib.suppress(OSError):
                    total += Path(folder, name).lstat().st_blocks * 512
    return total / 2**20


def kill(pid: int) -> None:
    """SIGKILL to a process and all that it started, at once."""
    for member in members(pid):
        with contextlib.suppress(OSError):
            os.kill(member, signal.SIGKILL)


class Watch:
    """Looks at a tree four times a second, while its `with` block lasts.

    Attributes:
        peak: the most resident memory so far, in MiB.
    """

    def __init__(self, pid: int) -> None:
        self.peak = 0.0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def cpu(self) -> float:
        """Processor time of the tree until now, in seconds."""
        return cpu_seconds(members(self._pid))

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, resident_mebibytes(members(self._pid)))
            if self._over.wait(0.25):
                return
