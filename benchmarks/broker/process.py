"""What Linux knows of a process: its time, its memory, its cores."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Time that all threads of the process have run."""
    # The command's name, in brackets, may have spaces in it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
