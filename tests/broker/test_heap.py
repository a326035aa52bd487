from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource, sys
from kohort.broker.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        bytes(4_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

kept = keep_freed_memory()
faults()
print(kept, faults())
"""


def test_freed_buffers_are_used_again() -> None:
    """A page is touched for the first time once, not for each buffer; of other allocators nothing is said."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    kept, faults = ran.stdout.split()
    assert kept == "False" or int(faults) < 1000
