"""What stages leave in a worker's memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

PROGRAM: Final = """
import re
from pathlib import Path
from kohort.spark.jobs.stages.context import stage_of

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

def batches(_):
    several = [bytes(2000) for _ in range(20_000)]
    kept.append(bytes(2000))  # behind them, so that they aren't at the heap's end
    print(resident())
    yield from ()

kept = []
print(resident())
list(stage_of(batches)(iter(())))
print(resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it's glibc that gives it back")
def test_what_a_first_task_has_freed_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    before, most, after = map(int, done.stdout.split())
    assert most - before > 30, done.stderr
    assert after - before < 10
