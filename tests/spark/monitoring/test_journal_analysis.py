from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.spark.monitoring.journal_analysis import TaskCount, read_journals
from kohort.spark.monitoring.journal_writer import JournalWriter
from tests.spark.monitoring.events import epoch, restoring, tasks


def test_written_events_are_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "one.jsonl"
    with JournalWriter(path, clock=lambda: 7.5) as journal:
        journal.tasks(tasks(1.0, ["0_0"]))
        journal.epoch(epoch(2.0, positions={"flights-0": 5}))
        journal.restoring(restoring(3.0, 5, 10))
        journal.waiting("no broker")
        journal.failed("Zürich")
        journal.note("killed", victim="two")
    journal.close()
    journal.waiting(None)  # ignored, as it is closed
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == [
        "started", "tasks", "epoch", "restoring", "waiting", "failed", "killed", "stopped",
    ]  # fmt: skip
    assert lines[0] == {"event": "started", "at": 7.5, "instance": "one", "pid": os.getpid()}
    assert lines[2]["positions"] == {"flights-0": 5}
    journals = read_journals(path)
    assert list(journals.epochs()) == [("one", epoch(2.0, ["0_0"], positions={"flights-0": 5}))]
    assert list(journals.tasks()) == [("one", tasks(1.0, ["0_0"], [], warmup=[], restoring=[], closing=[]))]
    assert [restore.remaining for _, restore in journals.restores()] == [5]


def test_promotions(tmp_path: Path) -> None:
    """From when an instance with a copy got the task until it ran: at once, later, and never."""
    with JournalWriter(tmp_path / "one.jsonl") as journal:
        journal.tasks(tasks(1.0, ["0_0"], ["1_0", "1_1"], warmup=["1_2"]))
        journal.tasks(tasks(2.0, ["0_0", "1_0", "1_1", "1_2"], restoring=["1_1", "1_2"]))
        journal.tasks(tasks(2.5, ["0_0", "1_0", "1_1", "1_2"], restoring=["1_2"]))
        journal.tasks(tasks(3.0, ["0_0", "1_0", "1_1", "1_3"], restoring=["1_3"]))
        journal.tasks(tasks(4.0, ["0_0", "1_0", "1_1", "1_3"]))
    journals = read_journals(tmp_path)
    assert journals.promotions() == {"1_0": 0.0, "1_1": 0.5}
    assert journals.promotions(since=2.2) == {"1_1": 0.5}
    assert journals.promotions(until=2.2) == {"1_0": 0.0}


def test_a_promotion_ends_when_its_instance_restarts(tmp_path: Path) -> None:
    for run, clock in enumerate((0.0, 10.0)):
        with JournalWriter(tmp_path / "one.jsonl", clock=lambda at=clock: at) as journal:
            if run == 0:
                journal.tasks(tasks(1.0, [], ["1_0"]))
                journal.tasks(tasks(2.0, ["1_0"], restoring=["1_0"]))
            else:
                journal.tasks(tasks(11.0, ["1_0"]))
    assert read_journals(tmp_path).promotions() == {}


def test_a_restart_appends_to_the_file(tmp_path: Path) -> None:
    for _ in range(2):
        with JournalWriter(tmp_path / "one.jsonl", "first"):
            pass
    journals = read_journals(tmp_path)
    assert [entry.event for entry in journals.entries] == ["started", "stopped", "started", "stopped"]
    assert journals.instances == ["first"]


def test_torn_lines(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    JournalWriter(path).epoch(epoch(1.0))
    with path.open("ab") as file:
        file.write(b'{"event":"epo')
    assert [entry.event for entry in read_journals(path).entries] == ["epoch", "started"]  # by time
    JournalWriter(path).close()
    assert len(read_journals(path).entries) == 4
    path.write_bytes(b"nonsense\n{}\n" + path.read_bytes())
    with pytest.raises(ValueError, match="line 1: not a line of a journal"):
        read_journals(path)


def test_a_killed_process_leaves_all_lines(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from kohort.spark.monitoring.journal_writer import JournalWriter\n"
        "journal = JournalWriter(sys.argv[1])\n"
        "for number in range(100): journal.note('n', number=number)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, tmp_path / "one.jsonl"], check=False).returncode == -9
    assert len(read_journals(tmp_path).entries) == 101


def journal(path: Path, *events: object) -> None:
    """Writes a journal."""
    written = JournalWriter(path, clock=lambda: 0.0)
    for event in events:
        getattr(written, {"EpochDone": "epoch", "TasksNow": "tasks"}[type(event).__name__])(event)


def test_pauses(tmp_path: Path) -> None:
    """Instance a is killed at 3.2; its task 0_1 moves to b, whose own task doesn't pause."""
    journal(tmp_path / "a.jsonl", *(epoch(at, ["0_1"]) for at in (1.0, 2.0, 3.0)))
    journal(
        tmp_path / "b.jsonl",
        *(epoch(at, ["0_0"], took_ms=1_000) for at in (1.0, 2.0, 3.0, 4.0, 5.0)),
        epoch(6.0, ["0_0", "0_1"], took_ms=1_000),
    )
    journals = read_journals(tmp_path)
    longest = journals.longest_pauses()
    assert {task: (pause.seconds, pause.idle, pause.moved) for task, pause in longest.items()} == {
        "0_0": (1.0, 0.0, False),
        "0_1": (3.0, 2.0, True),
    }
    assert journals.moved_tasks() == {"0_1"}
    assert journals.moved_tasks(until=5.5) == set()
    hit = journals.pauses_at(3.2)
    assert (hit["0_1"].resumed, hit["0_1"].before, hit["0_1"].after) == (6.0, "a", "b")
    assert journals.longest_pauses(until=5.0)["0_1"].seconds == 1.0


def test_tasks_over_time(tmp_path: Path) -> None:
    journal(tmp_path / "a.jsonl", tasks(1.0, ["0_1"], ["0_0"]), epoch(3.0, ["0_1"]))
    journal(tmp_path / "b.jsonl", tasks(1.0, ["0_0"]), tasks(9.0, ["0_0", "0_1"], restoring=["0_1"]))
    assert read_journals(tmp_path).tasks_over_time() == {
        "a": [TaskCount(1.0, 1, 1, 0, 0), TaskCount(3.0, 0, 0, 0, 0)],  # dead, since it has no later entries
        "b": [TaskCount(1.0, 1, 0, 0, 0), TaskCount(9.0, 2, 0, 0, 1)],
    }


def test_throughput(tmp_path: Path) -> None:
    journal(tmp_path / "a.jsonl", epoch(12.0, records=400, took_ms=2_000), epoch(12.0, ["1_0"], records=50))
    journal(tmp_path / "b.jsonl", epoch(13.5, records=300, took_ms=1_000), epoch(13.5, input="airlines"))
    throughput = read_journals(tmp_path).throughput(subtopologies=["0"])
    assert (throughput.start, throughput.step) == (10.0, 1.0)
    assert throughput.rates == {"a": [200.0, 200.0, 0.0, 0.0], "b": [0.0, 0.0, 150.0, 150.0]}
    assert throughput.total == [200.0, 200.0, 150.0, 150.0]
    assert sum(read_journals(tmp_path).throughput(0.3).total) * 0.3 == pytest.approx(750)


def test_no_journals(tmp_path: Path) -> None:
    journals = read_journals(tmp_path)
    assert journals.pauses() == []
    assert journals.throughput().total == []
    assert journals.tasks_over_time() == {}
