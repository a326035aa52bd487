"""The benchmark of memory at rest reads what any JVM tells of its heap, or says that it can't."""

from __future__ import annotations

import pytest

from benchmarks.pipeline.resting import heap, tenths

METASPACE = " Metaspace       used 113K, committed 320K, reserved 1114112K\n  class space    used 9K, committed 128K"


@pytest.mark.parametrize(
    "told",
    [
        " garbage-first heap   total 10240K, used 2048K [0x1, 0x2)\n  region size 1024K, 2 young (2048K)",
        " garbage-first heap   total reserved 1048576K, committed 10240K, used 2048K [0x1, 0x2)",
        " def new generation   total 9216K, used 1024K [0x1, 0x2)\n  eden space 8192K,  12% used [0x1, 0x2)\n"
        " tenured generation   total 1024K, used 1024K [0x1, 0x2)",
        " PSYoungGen      total 9216K, used 1024K [0x1, 0x2)\n ParOldGen       total 1024K, used 1024K [0x1, 0x2)",
    ],
)
def test_committed_and_used_mebibytes_of_a_heap(told: str) -> None:
    assert heap(f"7:\n{told}\n{METASPACE}\n") == (10.0, 2.0)


def test_a_heap_that_is_told_of_in_another_way_ends_it_with_a_sentence() -> None:
    with pytest.raises(SystemExit, match="heap") as ended:
        heap(f"7:\n ZHeap           used 6M, capacity 254M, max capacity 3984M\n{METASPACE}\n")
    assert "ZHeap" in str(ended.value)


@pytest.mark.parametrize("records", [0, 1, 9, 10, 25, 100_000])
def test_records_are_sent_a_tenth_at_a_time_however_few(records: int) -> None:
    parts = tenths(records)
    assert sum(len(part) for part in parts) == records
    assert len(parts) <= 19  # what doesn't go into ten comes after
