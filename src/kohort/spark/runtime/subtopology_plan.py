"""What a subtopology reads and writes, as data, without Spark. `planning` makes it of a compiled program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kohort.spark.epoch import OffsetRange
from kohort.spark.jobs.outputs import GroupOutput, WindowEnd
from kohort.spark.program.store_formats import StoreFormats
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.window_closing import Windows


@dataclass(frozen=True)
class CallOutput:
    """Rows that a function of the user's gets, a task's at a time, before the epoch is committed.

    Attributes:
        before: how many branches before it give rows of the same records to the same function, as parts of a union do.
    """

    before: int = 0

    def batch_id(self, read: OffsetRange, now: int) -> str:
        """What tells a batch from all others of the function, and is the same when it is given again.

        Args:
            read: the records that it is of.
            now: the clock (ms), for rows that timers have made: there may be more of them without any record.
        """
        time = "" if read.length else f"@{now}"
        number = f"#{self.before}" if self.before else ""
        return f"{read.topic}-{read.partition}:{read.start}-{read.end}{time}{number}"


@dataclass(frozen=True)
class Unreadable:
    """What becomes of records that can't be read, or rows that can't be written.

    Attributes:
        stop: whether the application stops at the first one.
        dead_letters: the topic they go to, if any. Otherwise they are counted.
    """

    stop: bool = True
    dead_letters: str | None = None


@dataclass(frozen=True)
class WaitingStore:
    """The groups of an aggregate that have changed and are written later.

    Attributes:
        every: how long a group waits since it changed, by stream time (ms).
    """

    store: str
    changelog: str
    every: int


@dataclass(frozen=True)
class StoreOutput:
    """Rows that are the new state of a store, and go into its changelog.

    Attributes:
        windows: of a windowed aggregate.
        outputs: topics that get what has changed, or what is final, without the state: JSON under the store's keys.
        encoded: topics that get the same otherwise.
        end: the column of outputs that has a window's end.
        stream: the repartition topic that gets them, too, where the program goes on with an aggregate's groups.
        deletes: whether that is told of groups that go, too.
        on_close: whether outputs get a window's groups when it is closed, and nothing before.
        waiting: which groups are to be written, where outputs get each only once in a time.
    """

    store: str
    changelog: str
    windows: Windows | None = None
    outputs: tuple[str, ...] = ()
    on_close: bool = False
    encoded: tuple[GroupOutput, ...] = ()
    end: WindowEnd | None = None
    stream: str | None = None
    waiting: WaitingStore | None = None
    deletes: bool = False

    @property
    def has_outputs(self) -> bool:
        """Whether any topic gets what has changed, or what is final."""
        return bool(self.outputs or self.encoded or self.stream)


@dataclass(frozen=True)
class TopicOutput:
    """Rows that go to a topic as they are.

    Attributes:
        repartition: whether it is the application's own, between two subtopologies.
        routed: whether they go to the partition that their `route` leads to, not their key.
        merged_by: the subtopology that reads the topic, if its tasks can merge rows at once.
        unknown: of rows whose topics a column names: what becomes of those to a topic that isn't there. `topic` is "".
    """

    topic: str
    repartition: bool = False
    routed: bool = False
    merged_by: str | None = None
    unknown: Unreadable | None = None


@dataclass(frozen=True)
class SubtopologyPlan:
    """What a subtopology reads and writes.

    Attributes:
        id: the subtopology's.
        inputs: topics.
        branches: what becomes of the rows of each of its branches, by index.
        tables: the store of each of its tables, by the table's name.
        processors: the stores of its processors, by their names.
        unreadable: by topic.
        latest: topics of which a task with nothing committed begins at the end.
        placed: topics whose records must lie in the partitions that their keys lead to.
        formats: of what is made of each topic, which is committed beside its offsets.
        clocks: stores whose keys begin with times of the clock at which the task is to be called.
    """

    id: str
    inputs: SubtopologyInputs
    branches: Mapping[int, TopicOutput | StoreOutput | CallOutput] = field(default_factory=dict)
    tables: Mapping[str, StoreOutput] = field(default_factory=dict)
    processors: Mapping[str, StoreOutput] = field(default_factory=dict)
    unreadable: Mapping[str, Unreadable] = field(default_factory=dict)
    latest: frozenset[str] = frozenset()
    placed: frozenset[str] = frozenset()
    formats: Mapping[str, StoreFormats] = field(default_factory=dict)
    clocks: tuple[str, ...] = ()

    @property
    def calls(self) -> dict[int, CallOutput]:
        """The branches whose rows functions get."""
        return {number: each for number, each in self.branches.items() if isinstance(each, CallOutput)}

    @property
    def stores(self) -> dict[str, str]:
        """The changelogs of the stores that each of its tasks has, by the stores' names."""
        aggregates = (each for each in self.branches.values() if isinstance(each, StoreOutput))
        outputs = (*self.tables.values(), *aggregates, *self.processors.values())
        waiting = (each.waiting for each in outputs if each.waiting is not None)
        return {each.store: each.changelog for each in outputs} | {each.store: each.changelog for each in waiting}
