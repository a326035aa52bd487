from __future__ import annotations

import subprocess
import sys

import pytest

_SORT = """
import random, sys
import pyarrow as pa
from kohort.spark.state.restore_buffer import RestoreBuffer

draw, each_key = random.Random(1), int(sys.argv[1])
buffer = RestoreBuffer()
for position in range(50):
    keys = [b"%010d" % draw.randrange(10**9) for _ in range(2_000 // each_key)] * each_key
    buffer.add(pa.array(keys), pa.array([draw.randbytes(80) for _ in keys]), position)
pool = pa.default_memory_pool()
assert pool.max_memory() < 1.2 * buffer.size
buffer.sort()
print(pool.max_memory() / buffer.size, pool.bytes_allocated() / buffer.size)
"""


@pytest.mark.parametrize("each_key", [1, 2])
def test_sorting_takes_twice_the_memory_of_what_was_gathered(each_key: int) -> None:
    """Measured in a process of its own: Arrow has the peak since it began."""
    out = subprocess.run([sys.executable, "-c", _SORT, str(each_key)], capture_output=True, text=True, check=True)
    peak, kept = map(float, out.stdout.split())
    assert peak < 2.2
    assert kept < 1.1 / each_key
