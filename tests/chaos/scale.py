"""One instance, then three, then one again, while flights keep coming: `python -m tests.chaos.scale`.

State is warmed up before a task moves, so that pauses are short; and a task that stays is in every epoch of its part
while others come and go. Both are read from the journals that the instances keep, and the output is compared with a
batch in the end.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kohort.spark.serving.journals import Journals, read_journals

from .field import PARTITIONS, Field, kohort_broker
from .flights import made_up
from .instances import Instance

RATE = 400
"""Flights a second."""

PARTS = 2
PATIENCE = 150

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

    def flow(self, seconds: int) -> None:
        """Send flights for some time, so that every task is seen to work."""
        for _ in self.field.send(made_up(self._draw.randrange(1 << 32), seconds * RATE), seconds):
            pass

    def journals(self) -> Journals:
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
        """Whether so many instances have equal shares of all tasks, but for one."""
        shares = self.shares()
        tasks = PARTS * PARTITIONS
        return (
            len(shares) == number
            and sum(shares.values()) == tasks
            and max(shares.values()) - min(shares.values()) <= PARTS
        )


def main() -> int:
    """Scale out and in; 1 if a task that stayed paused, or the output is wrong."""
    with tempfile.TemporaryDirectory(prefix="kohort-scale-") as directory, kohort_broker() as server:
        field = Field(server, Path(directory))
        try:
            return run(Scale(field))
        finally:
            field.close()


def run(scale: Scale) -> int:
    """The steps, and what came of them."""
    steps: dict[str, tuple[float, float]] = {}
    console.print("one instance begins")
    scale.start("one")
    scale.until(lambda: scale.balanced(1), "it runs all tasks")
    began = time.time()
    console.print("two more come")
    scale.start("two", "three")
    scale.until(lambda: scale.balanced(3), "all three have their shares")
    scale.flow(seconds=5)
    steps["from one to three"] = (began, time.time())
    began = time.time()
    console.print("two of them go")
    leaving = scale.instances[:2]  # the first has been there all the time
    for instance in leaving:
        if code := instance.stop():
            console.print(f"{instance.name} ended with {code}; {instance.tail()}")
            return 1
    scale.until(lambda: scale.balanced(1), "the last one runs all tasks")
    scale.flow(seconds=5)
    steps["from three to one"] = (began, time.time())
    differences = scale.field.settle(patience=60)
    wrong = show(scale.journals(), steps)
    if differences:
        console.print(f"WRONG: {len(differences)} groups differ, the first: {differences[0]}")
    else:
        console.print(f"stream and batch are equal: {len(scale.field.results.groups)} groups compared")
    for instance in scale.instances:
        if instance.runs and instance.stop():
            wrong = True
    return 1 if wrong or differences else 0


def show(journals: Journals, steps: dict[str, tuple[float, float]]) -> bool:
    """Print the pauses of both steps; whether a task that stayed paused."""
    table = Table(title="Pauses (from commit to commit)")
    for column in ("", "tasks that moved", "longest pause", "tasks that stayed", "longest", "left out of epochs"):
        table.add_column(column, justify="left" if not column else "right")
    wrong = False
    for name, (since, until) in steps.items():
        moved = journals.moved_tasks(since=since, until=until)
        longest = journals.longest_pauses(since=since, until=until)
        of_moved = [pause.seconds for task, pause in longest.items() if task in moved]
        of_stayed = [pause.seconds for task, pause in longest.items() if task not in moved]
        skipped = left_out(journals, set(longest) - moved, since, until)
        wrong |= skipped > 0
        table.add_row(
            name, str(len(of_moved)), f"{max(of_moved, default=0):.2f} s",
            str(len(of_stayed)), f"{max(of_stayed, default=0):.2f} s", str(skipped),
        )  # fmt: skip
    console.print(table)
    return wrong


def left_out(journals: Journals, stayed: set[str], since: float, until: float) -> int:
    """How often an epoch of the instance that has a task, and of its part, went without it while it had records.

    A task without new records isn't in an epoch, and that is no pause: one that is missing in two epochs running is.
    Only tasks of the first part count: to each of them flights come all the time.
    """
    stayed = {task for task in stayed if task.startswith("0_")}
    missing: dict[str, int] = dict.fromkeys(stayed, 0)
    owner: dict[str, str] = {}
    count = 0
    for instance, done in journals.epochs():
        owner.update(dict.fromkeys(done.tasks, instance))
        if not since <= done.at <= until or done.input != "stream":
            continue
        for task in stayed:
            if owner.get(task) == instance and task.startswith(f"{done.part}_"):
                missing[task] = 0 if task in done.tasks else missing[task] + 1
                count += missing[task] > 1
    return count


if __name__ == "__main__":
    sys.exit(main())
