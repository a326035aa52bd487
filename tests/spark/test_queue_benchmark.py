"""What the benchmark of queues counts, and how it ends the processes that it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.queues.__main__ import FULL, QUICK, WORKS
from benchmarks.queues.contenders import CONTENDERS, Workers
from benchmarks.queues.rows import WARM, Results
from tests.waiting import run, until


def workers(directory: Path, script: str) -> Workers:
    made = Workers(CONTENDERS[0], "localhost:1", "rows", "hash", directory)
    made._command = ["sh", "-c", script]
    return made


def said(directory: Path, number: int) -> str:
    path = directory / f"rows-{number}.txt"
    return path.read_text() if path.exists() else ""


def runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_a_worker_says_that_has_ended_is_its_own(tmp_path: Path) -> None:
    async def body() -> None:
        with workers(tmp_path, "echo worker $$.") as started:
            started.start(2)
            (first, _), (second, _) = started._running
            await until(lambda: second.poll() is not None)
            started.kill_first()
            with pytest.raises(RuntimeError, match=f"a worker has ended:\nworker {second.pid}\\."):
                started.check()
            assert said(tmp_path, 0) == f"worker {first.pid}.\n"

    run(body())


def test_what_a_worker_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    async def body() -> None:
        with workers(tmp_path, "sleep 600 & echo $!") as started:
            started.start(1)
            ((process, _),) = started._running
            await until(lambda: process.poll() is not None)
            left = said(tmp_path, 0).strip()
            assert runs(left)
        await until(lambda: not runs(left))

    run(body())


def test_in_small_each_contender_works_and_each_work_is_done() -> None:
    numbers = range(len(CONTENDERS))
    assert [FULL.works(number) for number in numbers] == [WORKS for _ in numbers]
    assert [len(QUICK.works(number)) for number in numbers] == [1 for _ in numbers]
    assert {work for number in numbers for work in QUICK.works(number)} == set(WORKS)


def test_results_of_rows_before_those_that_are_measured_do_not_count() -> None:
    results = Results("localhost:1", "rows")
    try:
        for number in (WARM, 0, 1, 1):
            results._take({"worker": 7, "id": number, "sent": 1.0}, 2.0)
        assert (results.warm, results.taken, results.again) == (1, {0: 1.0, 1: 1.0}, 1)
        results.begin_at(2)
        for number in (0, 2):
            results._take({"worker": 7, "id": number, "sent": 1.0}, 2.0)
        assert (results.taken, results.again) == ({2: 1.0}, 1)
    finally:
        results.close()
