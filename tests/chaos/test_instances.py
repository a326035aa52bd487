"""An instance that is paused or killed takes along what it has started, whichever group that is in."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .instances import Instance

_PROGRAM = """
import subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0)
print(worker.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_in_a_group_of_their_own_are_paused_and_killed_too(tmp_path: Path) -> None:
    instance = Instance(tmp_path, "nowhere")
    instance._command = [sys.executable, "-c", _PROGRAM]
    log = tmp_path / "log"
    with instance:
        _wait(lambda: log.read_text().endswith("\n"))
        worker = int(log.read_text())
        instance.pause()
        _wait(lambda: _state(worker) == "T")
        instance.go_on()
        _wait(lambda: _state(worker) in "SR")
        instance.kill()
        _wait(lambda: _state(worker) in "Z-")
        assert not instance.runs


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "-"


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
