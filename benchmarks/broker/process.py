"""What Linux knows of a process: its time, its memory, its cores."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Time that all threads of the process have run, to the nanosecond.

    The times in /proc/PID/stat are in hundredths of a second: a short measure of a quick server would find none at all.

    Raises:
        ProcessLookupError: there is no such process.
    """
    clock = ctypes.c_int()
    if ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)):
        raise ProcessLookupError(f"process {pid} has ended")
    return time.clock_gettime(clock.value)


def resident_mebibytes(pid: int) -> float:
    """Resident memory, with what it shares with others."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(f"process {pid} has ended")


def run_on(pid: int, cores: set[int]) -> None:
    """Let all threads of the process, and those that they start, run on these cores alone."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)
