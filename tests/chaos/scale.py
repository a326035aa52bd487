"""One instance, then three, then one again, while flights keep coming: `python -m tests.chaos.scale`.

State is warmed up before a task moves to an instance that comes, so that pauses are short; and a task that stays goes
on while others come and go. Both are read from the journals that the instances keep, and the output is compared with
a batch in the end.
"""

from __future__ import annotations

import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from kohort.spark.monitoring.journal_analysis import JournalAnalysis, read_journals

from .field import APPLICATION, PARTITIONS, Field, kohort_broker
from .instances import Instance
from .judging import Step, all_work
from .moves import Move, decisions, planned_moves

RATE = 400
"""Flights a second."""

PARTS = 2
PATIENCE = 300
"""Seconds for a step, or until all results are there."""

console = Console(highlight=False, soft_wrap=True)


class Scale:
    """The application while it is scaled."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.instances: list[Instance] = []
        self._draw = random.Random(2013)

    def start(self, *names: str) -> None:
        """Start instances, one task of each part is theirs soon."""
        self.instances += [self.field.instance(name, "--standbys", "0") for name in names]

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Send flights until that is so."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > PATIENCE:
                logs = "\n".join(f"{each.name}: {each.tail()}" for each in self.instances)
                raise TimeoutError(f"not within {PATIENCE} s: {what}\n{logs}")
            self.flow(seconds=1)
        console.print(f"  {time.monotonic() - began:5.1f} s until {what}")

    def stop(self, instance: Instance) -> int:
        """End an instance, while flights keep coming; its exit code."""
        with ThreadPoolExecutor(1) as thread:
            ending = thread.submit(instance.stop)
            self.until(ending.done, f"{instance.name} is gone")
            return ending.result()

    def flow(self, seconds: int) -> None:
        """Send flights for some time, so that every task is seen to work."""
        for _ in self.field.send(self._draw.randrange(1 << 32), seconds * RATE, seconds):
            pass

    def journals(self) -> JournalAnalysis:
        """What the instances have written down."""
        return read_journals(*(each.journal for each in self.instances if each.journal.exists()))

    def shares(self) -> dict[str, int]:
        """How many tasks run on each instance, by what it said last; none of those that are still being restored."""
        return {
            instance: counts[-1].active - counts[-1].restoring
            for instance, counts in self.journals().tasks_over_time().items()
            if counts and counts[-1].active
        }

    def balanced(self, number: int) -> bool:
        """Whether so many instances have equal shares of all tasks, but for one, and work on them."""
        shares = self.shares()
        tasks = PARTS * PARTITIONS
        return (
            len(shares) == number
            and sum(shares.values()) == tasks
            and max(shares.values()) - min(shares.values()) <= PARTS
            and all_work(self.journals())
        )


def main() -> int:
    """Scale out and in; 1 if a task that stayed paused, one moved out without a warm-up, or the output is wrong."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind
    with tempfile.TemporaryDirectory(prefix="kohort-scale-") as directory, kohort_broker() as server:
        field = Field(server, Path(directory))
        try:
            return measure(Scale(field))
        finally:
            field.close()


def measure(scale: Scale) -> int:
    """The steps, and what came of them."""
    times: dict[str, tuple[float, float]] = {}
    console.print("one instance begins")
    scale.start("one")
    scale.until(lambda: scale.balanced(1), "it runs all tasks")
    scale.flow(seconds=10)  # its first epochs take long, and aren't what is measured
    began = time.time()
    console.print("two more come")
    scale.start("two", "three")
    scale.until(lambda: scale.balanced(3), "all three have their shares")
    scale.flow(seconds=5)
    times["from one to three"] = (began, time.time())
    began = time.time()
    console.print("two of them go")
    leaving = scale.instances[:2]  # the first has been there all the time
    for instance in leaving:
        if code := scale.stop(instance):
            console.print(f"{instance.name} ended with {code}; {instance.tail()}")
            return 1
    scale.until(lambda: scale.balanced(1), "the last one runs all tasks")
    scale.flow(seconds=5)
    times["from three to one"] = (began, time.time())
    differences = scale.field.settle(PATIENCE)
    journals = scale.journals()
    steps = {name: Step.of(journals, *time) for name, time in times.items()}
    console.print(table(steps))
    decided = decisions(scale.field.server.bootstrap_servers, APPLICATION)
    if moves := planned_moves(journals, decided, *times["from one to three"]):
        console.print(moves_table(moves))
    faults = [f"{name}: {fault}" for name, step in steps.items() for fault in step.faults()]
    # Whoever goes takes its state along: only where instances come, all that moves is warmed up.
    faults += [f"{task} moved without a warm-up" for task in steps["from one to three"].cold()]
    if differences:
        faults.append(f"{len(differences)} results differ, the first: {differences[0]}")
    else:
        console.print(f"stream and batch are equal: {scale.field.summary()}")
    for instance in scale.instances:
        if instance.runs and (code := instance.stop()):
            faults.append(f"{instance.name} ended with {code}; {instance.tail()}")
    for fault in faults:
        console.print(f"WRONG: {fault}", markup=False)
    return 1 if faults else 0


def table(steps: dict[str, Step]) -> Table:
    """What tasks went through, a column a step."""
    shown = Table("", *(Column(name, justify="right") for name in steps))

    def row(title: str, figure: Callable[[Step], str]) -> None:
        shown.add_row(title, *(figure(step) for step in steps.values()))

    row("tasks that moved", lambda step: str(len(step.moved)))
    row("  longest from commit to commit", lambda step: f"{step.longest(moved=True).seconds:.2f} s")
    row("warm-ups that took over", lambda step: str(len(step.warmed)))
    row("  longest", lambda step: f"{max(step.warmed.values(), default=0):.2f} s")
    row("tasks that stayed", lambda step: str(len(step.gaps.keys() - step.moved)))
    row("  longest from commit to commit", lambda step: f"{step.longest(moved=False).seconds:.2f} s")
    row("    of that, nobody worked on it", lambda step: f"{step.longest(moved=False).idle:.2f} s")
    row("  left out of epochs", lambda step: str(step.skipped))
    return shown


def moves_table(moves: Sequence[Move]) -> Table:
    """How long each step of the moves to copies took, in ms."""
    shown = Table(
        f"{len(moves)} moves to a copy that had caught up",
        *(Column(name, justify="right") for name in ("median", "longest")),
    )

    def row(title: str, seconds: Callable[[Move], float]) -> None:
        taken = [1000 * seconds(move) for move in moves]
        shown.add_row(title, f"{statistics.median(taken):,.0f} ms", f"{max(taken):,.0f} ms")

    row("from the decision to the first epoch of the new owner", lambda move: move.began - move.decided)
    row("  until the old owner knows", lambda move: move.told - move.decided)
    row("  until it has ended its epoch", lambda move: move.released - move.told)
    row("  until the new owner knows", lambda move: move.given - move.released)
    row("  until it has restored what was left", lambda move: move.restored - move.given)
    row("  until its epoch begins", lambda move: move.began - move.restored)
    row("until that epoch is committed", lambda move: move.committed - move.began)
    return shown


if __name__ == "__main__":
    sys.exit(main())
