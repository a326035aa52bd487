"""What a lane has to do with the rows that a part's Spark jobs make: as data, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.window_closing import Windows

if TYPE_CHECKING:
    from kohort.spark.program.compiled import CompiledSubtopology


@dataclass(frozen=True)
class StoreOutput:
    """Rows that are the new state of a store, and go into its changelog.

    Attributes:
        store: its name.
        changelog: the topic.
        windows: of a windowed aggregate.
        outputs: topics that what has changed, or what is final, goes to, without the state.
        on_close: whether outputs get a window's groups when it is closed, and nothing before.
    """

    store: str
    changelog: str
    windows: Windows | None = None
    outputs: tuple[str, ...] = ()
    on_close: bool = False


@dataclass(frozen=True)
class TopicOutput:
    """Rows that go to a topic as they are.

    Attributes:
        topic: its name.
        routed: whether `route` says which partition a row goes to, instead of its key.
    """

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
    """What a part reads and writes.

    Attributes:
        part: the subtopology's id.
        inputs: topics.
        branches: what to do with the rows of each of the part's branches, by index.
        tables: the store of each of its tables, by the table's name.
        unreadable: by topic.
        latest: topics of which a task with nothing committed begins at the end.
        placed: topics whose records must lie in the partitions that their keys lead to.
    """

    part: str
    inputs: SubtopologyInputs
    branches: Mapping[int, TopicOutput | StoreOutput] = field(default_factory=dict)
    tables: Mapping[str, StoreOutput] = field(default_factory=dict)
    unreadable: Mapping[str, Unreadable] = field(default_factory=dict)
    latest: frozenset[str] = frozenset()
    placed: frozenset[str] = frozenset()

    @property
    def stores(self) -> dict[str, str]:
        """The changelogs of the stores that each of its tasks has, by the stores' names."""
        kept = [*self.tables.values(), *(each for each in self.branches.values() if isinstance(each, StoreOutput))]
        return {each.store: each.changelog for each in kept}


def subtopology_plan_of(part: CompiledSubtopology) -> SubtopologyPlan:
    """What a compiled part has a lane do."""
    from kohort.spark.program.compiled import Aggregate, ToPartials, TopicInput, ToRows, ToTopic
    from kohort.spark.program.error_policies import DeadLetter, Fail

    branches: dict[int, TopicOutput | StoreOutput] = {}
    for index, branch in enumerate(part.branches):
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
    sources = [table.source for table in part.tables]
    if isinstance(part.input, TopicInput):
        sources.append(part.input.source)
    unreadable = {}
    for source in sources:
        policy = source.on_error
        letters = policy.topic if isinstance(policy, DeadLetter) else None
        unreadable[source.topic] = Unreadable(stop=isinstance(policy, Fail), dead_letters=letters)
    return SubtopologyPlan(
        part=part.id,
        inputs=SubtopologyInputs(
            None if part.input is None else part.input.topic,
            {table.name: table.source.topic for table in part.tables},
        ),
        branches=branches,
        tables={table.name: StoreOutput(table.name, table.changelog or "") for table in part.tables},
        unreadable=unreadable,
        latest=frozenset(source.topic for source in sources if source.offset_reset == "latest"),
        placed=frozenset(source.topic for source in part.partition_checked),
    )
