from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import sys

import pytest
from rich.console import Console

from kohort.spark.monitoring.events import Listeners
from kohort.spark.monitoring.overview import Overview
from kohort.spark.monitoring.progress_line import ProgressLine
from tests.spark.monitoring.events import epoch, restoring, tasks
from tests.spark.monitoring.test_overview import Clock


def shown(line: ProgressLine) -> list[str]:
    console = Console(file=io.StringIO(), width=160)
    console.print(line.rendered())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_line() -> None:
    overview = Overview(Clock())
    line = ProgressLine("flights", overview)
    assert shown(line) == ["flights starting  0 records  0/s  lag here 0"]
    listeners = Listeners([overview, line])
    listeners.starting("compiling the program")
    assert shown(line)[1:] == ["  compiling the program"]
    listeners.tasks(tasks(0.0, ["0_0", "1_0"], ["1_1"], warmup=["1_2"], restoring=["1_0"]))
    listeners.epoch(epoch(0.0, records=1_200, took_ms=480, lag=34_000, dropped=2, reasons={"no key": 2}, number=7))
    (first,) = shown(line)
    assert first.startswith("flights running  1,200 records  2,500/s  lag here 34,000  epoch 0#7 480 ms at ")
    assert first.endswith("2 dropped (2 no key)  tasks 2 active 1 standby 1 warm-up")
    listeners.restoring(restoring(0.0, 5_000, 10_000))
    listeners.waiting("no broker answers:\x1b[2J localhost:9092")
    _, bar, reason = shown(line)
    assert bar.startswith("  restoring 1_0 delays ━━━━━━━━━━━━━━━")
    assert bar.rstrip().endswith("5,000 records left")
    assert reason == "  waiting: no broker answers:\\x1b[2J localhost:9092"
    for task in range(20):
        listeners.restoring(restoring(0.0, 1, 10, f"2_{task}"))
    assert "  and 13 more stores" in shown(line)
    listeners.tasks(tasks(0.0, ["0_0"], stopped={"1": "record 5 is bad"}))
    assert "  subtopology 1 is stopped: record 5 is bad" in shown(line)


def test_rows_that_go_through_a_repartition_topic_are_counted_apart() -> None:
    overview = Overview(Clock())
    overview.epoch(epoch(0.0, records=1_200, took_ms=480))
    overview.epoch(epoch(0.0, ["1_0"], records=1_100, took_ms=480, again=True))
    overview.epoch(epoch(0.0, ["1_0"], records=30, took_ms=480, input="airports"))
    (line,) = shown(ProgressLine("flights", overview))
    assert line.startswith("flights starting  1,230 records  2,562/s  1,100 repartitioned  lag here 0  ")
    assert overview.health_page()["records"] == 1_230


def test_the_line_of_an_instance_without_tasks_says_no_lag() -> None:
    """What is left to read is others' then, or whose who comes next."""
    overview = Overview(Clock())
    line = ProgressLine("flights", overview)
    listeners = Listeners([overview, line])
    listeners.tasks(tasks(0.0, ["0_0"]))
    listeners.epoch(epoch(0.0, lag=34_000))
    assert "  lag here 34,000  " in shown(line)[0]
    listeners.tasks(tasks(1.0))
    assert "lag" not in shown(line)[0]
    assert shown(line)[0].endswith("  tasks 0 active")


def test_in_the_end_the_lag_is_the_groups() -> None:
    """An instance's own tasks may have nothing left while others' have."""
    overview = Overview(Clock())
    file = io.StringIO()
    line = ProgressLine("flights", overview, Console(file=file))
    listeners = Listeners([overview, line])
    listeners.tasks(tasks(0.0, ["0_0"]))
    listeners.epoch(epoch(0.0, records=1, lag=0))
    assert "1 record  " in shown(line)[0] and "  lag here 0  " in shown(line)[0]
    listeners.left(12_345)
    assert "  lag of the group 12,345  " in shown(line)[0]
    assert file.getvalue().endswith("flights: has left its group, which has 12,345 records left to read\n")


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log lines of others go above the line; what went wrong stays to be read."""
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    handler = logging.StreamHandler()
    logging.getLogger().addHandler(handler)
    overview = Overview(Clock())
    console = Console(file=terminal, force_terminal=True, width=100, legacy_windows=False, color_system=None)
    try:
        with contextlib.closing(ProgressLine("flights", overview, console)) as line:
            line.start()
            listeners = Listeners([overview, line])
            listeners.epoch(epoch(0.0))
            logging.getLogger("somebody").warning("said this")
            listeners.failed("a job\x1b failed")
            assert handler.stream is not terminal
        assert handler.stream is terminal
    finally:
        logging.getLogger().removeHandler(handler)
    text = terminal.getvalue()
    assert "said this\n" in text
    assert "flights: a job\\x1b failed" in text
    assert text.index("said this") < text.rindex("100 records")


def test_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kohort.spark.monitoring.progress_line")
    clock = Clock()
    overview = Overview(clock)
    line = ProgressLine("flights", overview, Console(file=io.StringIO()))
    listeners = Listeners([overview, line])

    async def happen() -> None:
        line.start()
        listeners.tasks(tasks(0.0, ["0_0"], ["1_1"], restoring=["0_0"]))
        for position in (0, 10, 20, 30, 60, 100):
            listeners.restoring(restoring(0.0, position, 100))
        listeners.waiting("no records")
        listeners.waiting("no records")
        listeners.waiting(None)
        for at in (10.0, 10.2, 10.4, 11.5, 11.6):
            clock.now = at
            listeners.epoch(epoch(at))
        listeners.failed("oh")
        line.close()

    asyncio.run(happen())
    messages = [record.getMessage() for record in caplog.records]
    assert messages[:8] == [
        "flights: tasks: active 0_0; restoring 0_0; standby 1_1",
        "flights: task 1_0: restoring delays: 0%, 100 records left",
        "flights: task 1_0: restoring delays: 30%, 70 records left",
        "flights: task 1_0: restoring delays: 60%, 40 records left",
        "flights: task 1_0: delays is restored",
        "flights: waiting: no records",
        "flights: going on",
        messages[7],
    ]
    epochs = [message.rpartition(", ")[2] for message in messages if "records  " in message]
    assert epochs == ["1 epoch", "3 epochs", "1 epoch"]
    assert messages[-2] == "flights: oh"


def test_elsewhere_it_is_written_line_by_line() -> None:
    """Nobody has set up logging: it comes out all the same, and not too much of it."""
    file = io.StringIO()
    clock = Clock()
    clock.now = 1_385_000_000.0
    overview = Overview(clock)
    line = ProgressLine("flights", overview, Console(file=file))
    listeners = Listeners([overview, line])
    line.start()
    listeners.waiting("no broker\nanswers")
    listeners.waiting("no broker\nanswers")
    listeners.waiting(None)
    listeners.tasks(tasks(0.0, ["0_0"], ["1_1"], restoring=["0_0"]))
    listeners.restoring(restoring(0.0, 0, 1_000))
    listeners.restoring(restoring(0.0, 400, 1_000))
    for second in range(1, 26):
        clock.now += 1
        listeners.tasks(tasks(0.0, ["0_0"], ["1_1"], restoring=[]))
        listeners.epoch(epoch(clock.now, records=1_000, number=second))
    listeners.failed("a job failed: \x1b[2J")
    listeners.tasks(tasks(0.0, ["0_0"], stopped={"0": "record 5"}))
    listeners.tasks(tasks(0.0, ["0_0", "0_1"], stopped={"0": "record 5"}))
    line.close()
    written = file.getvalue().splitlines()
    at, rest = written[0].split(" ", 1)
    assert (at, rest) == ("2013-11-21T02:13:20Z", "flights: waiting: no broker\\nanswers")
    assert [line.split(": ", 1)[1] for line in written[1:5]] == [
        "going on",
        "tasks: active 0_0; restoring 0_0; standby 1_1",
        "0 records  0/s  lag here 0  tasks 1 active 1 standby, restoring 1 store: 1,000 records left",
        "tasks: active 0_0; standby 1_1",
    ]
    assert [line.rpartition(", ")[2] for line in written if "s  lag here 0  epoch" in line] == ["10 epochs"] * 2 + [
        "5 epochs"
    ]
    assert [line.split(": ", 1)[1] for line in written[7:]] == [
        "a job failed: \\x1b[2J",
        "tasks: active 0_0",
        "subtopology 0 is stopped: record 5",
        "tasks: active 0_0,0_1",
        written[-1].split(": ", 1)[1],
    ]


def test_lines_that_nobody_reads_any_more_do_no_harm() -> None:
    file = io.StringIO()
    line = ProgressLine("flights", Overview(Clock()), Console(file=file))
    file.close()
    line.failed("oh")


def test_the_last_epochs_are_told_though_none_follows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kohort.spark.monitoring.progress_line")
    clock = Clock()
    clock.now = 100.0
    overview = Overview(clock)
    line = ProgressLine("flights", overview, Console(file=io.StringIO()))

    async def happen() -> None:
        line.epoch(epoch(100.0))
        clock.now = 100.99
        line.epoch(epoch(100.99))
        await asyncio.sleep(0.05)

    asyncio.run(happen())
    assert [record.getMessage().rpartition(", ")[2] for record in caplog.records] == ["1 epoch", "1 epoch"]
