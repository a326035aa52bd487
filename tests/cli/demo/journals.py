"""Journals of two instances, the first of which is killed, without any instance."""

from __future__ import annotations

from pathlib import Path

from kohort.spark.monitoring.events import EpochDone, TasksNow
from kohort.spark.monitoring.journal_writer import JournalWriter

START = 1_790_000_000.0
KILL = START + 10.0
TAKEN_OVER = KILL + 5.0
ONE = ["0_0", "1_1"]
OTHER = ["0_1", "1_0"]


def epoch(at: float, tasks: list[str], records: int = 1000, *, stream: str = "stream") -> EpochDone:
    subtopology = tasks[0][0]
    late, reasons = (1, {"no key": 2}) if tasks == ["0_0"] or tasks == ["1_1"] else (0, {})
    return EpochDone(
        at,
        subtopology,
        1,
        stream,
        records,
        0,
        0,
        sum(reasons.values()),
        late,
        0,
        tasks,
        500.0,
        400.0,
        50.0,
        {},
        reasons,
    )


def write_journals(directory: Path) -> list[Path]:
    """Instance 1 runs a task of each subtopology for ten seconds; five seconds later instance 2 has all of them."""
    first, second = directory / "instance-1.jsonl", directory / "instance-2.jsonl"
    with JournalWriter(first) as journal:
        journal.tasks(TasksNow(START - 2, ONE, OTHER, [], restoring=ONE))
        journal.tasks(TasksNow(START - 1, ONE, OTHER, []))
        for second_of in range(1, 11):
            journal.epoch(epoch(START + second_of - 0.2, ["0_0"]))
            journal.epoch(epoch(START + second_of - 0.1, ["1_1"], 10))
    with JournalWriter(second) as journal:
        journal.tasks(TasksNow(START - 2, OTHER, ONE, []))
        journal.epoch(epoch(START, ["0_1"], 16, stream="airlines"))
        for second_of in range(1, 21):
            if second_of == 15:
                journal.tasks(TasksNow(TAKEN_OVER, OTHER + ONE, [], [], restoring=ONE))
                journal.tasks(TasksNow(TAKEN_OVER + 0.2, OTHER + ONE, [], []))
            extra = second_of > 15
            journal.epoch(epoch(START + second_of, ["0_0", "0_1"] if extra else ["0_1"], 2000 if extra else 1000))
            journal.epoch(epoch(START + second_of + 0.1, ["1_0", "1_1"] if extra else ["1_0"], 10))
    return [first, second]
