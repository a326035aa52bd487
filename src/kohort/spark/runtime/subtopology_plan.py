"""What a subtopology reads and writes: the compiled program's subtopology as data, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.window_closing import Windows

if TYPE_CHECKING:
    from kohort.spark.program.compiled import CompiledSubtopology, SourceSpec


@dataclass(frozen=True)
class StoreOutput:
    """Rows that are the new state of a store, and go into its changelog.

    Attributes:
        store: its name.
        changelog: the topic.
        windows: of a windowed aggregate.
        outputs: topics that get what has changed, or what is final, without the state.
        on_close: whether outputs get a window's groups when it is closed, and nothing before.
    """

    store: str
    changelog: str
    windows: Windows | None = None
    outputs: tuple[str, ...] = ()
    on_close: bool = False


@dataclass(frozen=True)
class TopicOutput:
    """Rows that go to a topic as they are; `routed`: to the partition that their `route` leads to, not their key."""

    topic: str
    routed: bool = False


@dataclass(frozen=True)
class Unreadable:
    """What becomes of records that can't be read.

    Attributes:
        stop: whether the application stops at the first one.
        dead_letters: the topic they go to, if any. Otherwise they are counted.
    """

    stop: bool = True
    dead_letters: str | None = None


@dataclass(frozen=True)
class SubtopologyPlan:
    """What a subtopology reads and writes.

    Attributes:
        id: the subtopology's.
        inputs: topics.
        branches: what becomes of the rows of each of its branches, by index.
        tables: the store of each of its tables, by the table's name.
        unreadable: by topic.
        latest: topics of which a task with nothing committed begins at the end.
        placed: topics whose records must lie in the partitions that their keys lead to.
    """

    id: str
    inputs: SubtopologyInputs
    branches: Mapping[int, TopicOutput | StoreOutput] = field(default_factory=dict)
    tables: Mapping[str, StoreOutput] = field(default_factory=dict)
    unreadable: Mapping[str, Unreadable] = field(default_factory=dict)
    latest: frozenset[str] = frozenset()
    placed: frozenset[str] = frozenset()

    @property
    def stores(self) -> dict[str, str]:
        """The changelogs of the stores that each of its tasks has, by the stores' names."""
        outputs = [*self.tables.values(), *(each for each in self.branches.values() if isinstance(each, StoreOutput))]
        return {each.store: each.changelog for each in outputs}


def unreadable_of(source: SourceSpec) -> Unreadable:
    """What becomes of a source's records that can't be read."""
    from kohort.spark.program.policies import DeadLetter, Fail

    policy = source.on_error
    letters = policy.topic if isinstance(policy, DeadLetter) else None
    return Unreadable(stop=isinstance(policy, Fail), dead_letters=letters)


def subtopology_plan_of(compiled: CompiledSubtopology) -> SubtopologyPlan:
    """The plan of a compiled subtopology."""
    from kohort.spark.program.compiled import Aggregate, ToPartials, TopicInput, ToRows, ToTopic

    branches: dict[int, TopicOutput | StoreOutput] = {}
    for index, branch in enumerate(compiled.branches):
        match branch.terminal:
            case ToTopic(topic=topic) | ToRows(topic=topic):
                branches[index] = TopicOutput(topic)
            case ToPartials(topic=topic):
                branches[index] = TopicOutput(topic, routed=True)
            case Aggregate(spec=spec, outputs=outputs):
                window = spec.window
                branches[index] = StoreOutput(
                    spec.name,
                    spec.changelog,
                    None if window is None else Windows(window.size_ms, window.grace_ms, window.retention_ms),
                    tuple(each.topic for each in outputs),
                    spec.emit == "close",
                )
    sources = [table.source for table in compiled.tables]
    if isinstance(compiled.input, TopicInput):
        sources.append(compiled.input.source)
    return SubtopologyPlan(
        id=compiled.id,
        inputs=SubtopologyInputs(
            None if compiled.input is None else compiled.input.topic,
            {table.name: table.source.topic for table in compiled.tables},
        ),
        branches=branches,
        tables={table.name: StoreOutput(table.name, table.changelog or "") for table in compiled.tables},
        unreadable={source.topic: unreadable_of(source) for source in sources},
        latest=frozenset(source.topic for source in sources if source.offset_reset == "latest"),
        placed=frozenset(source.topic for source in compiled.placed),
    )
