"""Which joins of streams can read both sides where they lie, and why the others' sides go through a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.spark.internals import NodeName, PlanNode, analyzed
from kohort.spark.program.compiled import Input, Step, TopicInput, Transform
from kohort.spark.program.sources import SourceDef, TableDef
from kohort.spark.program.streams import (
    AggregateDef,
    ForEachBatchDef,
    Graph,
    RepartitionDef,
    Stream,
    StreamJoinDef,
    TableJoinDef,
    UnionDef,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from kohort.protocol.records.partitioner import Partitioner


@dataclass(frozen=True)
class Laid:
    """A side of a join, and where its rows lie.

    Attributes:
        where: how messages call it.
        streams: of how many streams it is united.
        read: what its subtopology reads.
        steps: what becomes of the rows before the join.
        several: whether these make several rows of one.
        key, key_names, partitioner: by which its records are partitioned, as of a flow.
        lost: why a key doesn't hold any more.
        schema: its columns.
    """

    where: str
    streams: int
    read: Input | None
    steps: tuple[Step, ...]
    several: bool
    key: tuple[str, ...]
    key_names: tuple[str, ...]
    partitioner: Partitioner
    lost: str
    schema: StructType


def why_through_topic(left: Laid, right: Laid, join: StreamJoinDef, uses: Uses) -> str:
    """Why rows of a join have to meet in a topic; "" if they lie together already."""
    for side, on in ((left, tuple(join.on)), (right, tuple(join.on.values()))):
        if why := _not_in_place(side, on):
            return why
    assert isinstance(left.read, TopicInput) and isinstance(right.read, TopicInput)
    if left.read.source.topic == right.read.source.topic:
        return "a stream that is joined with itself goes through its topic"
    if tuple(join.on[name] for name in left.key) != right.key:
        return f"{left.where} is keyed by {_listed(left.key)}, and {right.where} by {_listed(right.key)}"
    if len(left.key) > 1 and left.key_names != right.key_names:
        names = f"{_listed(left.key_names)} and {_listed(right.key_names)}"
        return f"keys of several columns have their names in them, which are {names}"
    if left.partitioner != right.partitioner:
        return f"{left.where} is partitioned by {left.partitioner}, and {right.where} by {right.partitioner}"
    if name := _ambiguous(left):
        return f"{name!r} may have several texts, so equal values may lie in several partitions"
    for side, read in ((left, left.read), (right, right.read)):
        if not uses.alone(read.source.topic, join):
            return f"{side.where} isn't read for this join alone"
    if join in uses.called:
        return "a function gets batches of what comes of it, which are a topic's records"
    return ""


def _not_in_place(side: Laid, on: tuple[str, ...]) -> str:
    if side.streams > 1:
        return "several streams are united"
    if not isinstance(side.read, TopicInput):
        return f"{side.where} comes out of the program itself"
    if side.read.upserts or side.read.source.pattern or len(side.read.topics) > 1:
        return f"{side.where} isn't a stream of one topic"
    if side.lost:
        return f"{side.where} isn't known to be keyed by {_listed(on)}, since {side.lost}"
    if not side.key:
        return f"{side.where} isn't known to be keyed by {_listed(on)}"
    if not set(side.key) <= set(on):
        return f"{side.where} is keyed by {_listed(side.key)}"
    if not all(isinstance(step, Transform) for step in side.steps):
        return f"{side.where} goes through more than transforms before it"
    if side.several:
        return f"{side.where} has several rows of one record"
    return ""


def _ambiguous(side: Laid) -> str | None:
    """The column of the key whose text isn't always the same, if there is one."""
    from pyspark.sql.types import BinaryType, DoubleType, FloatType

    kinds = (BinaryType, DoubleType, FloatType)
    return next((name for name in side.key if isinstance(side.schema[name].dataType, kinds)), None)


def may_make_several(frame: DataFrame) -> bool:
    """Whether a plan of transforms may make several rows of one: by explode, a join or a union."""

    def walk(node: PlanNode) -> bool:
        return node.name == NodeName.GENERATE or len(node.children) > 1 or any(map(walk, node.children))

    return walk(analyzed(frame))


@dataclass(frozen=True)
class Uses:
    """What a program does with what it reads.

    Attributes:
        ways: by topic, what its rows go through, each way once, up to the first join of streams; and that, or None.
        called: the joins whose rows come to functions that get batches.
    """

    ways: Mapping[str, frozenset[tuple[tuple[object, ...], StreamJoinDef | None]]]
    called: frozenset[StreamJoinDef]

    def alone(self, topic: str, join: StreamJoinDef) -> bool:
        """Whether a topic's rows go into a join, and nowhere else."""
        return {into for _, into in self.ways.get(topic, frozenset())} == {join}


def uses_of(graph: Graph) -> Uses:
    """What a program does with what it reads."""
    ways: dict[str, set[tuple[tuple[object, ...], StreamJoinDef | None]]] = {}
    called: set[StreamJoinDef] = set()
    for end in graph.ends:
        stream = end.grouped._stream if isinstance(end, AggregateDef) else end.stream
        found = list(_ways(stream, None))
        for topic, steps, join in found:
            ways.setdefault(topic, set()).add((steps, join))
        if isinstance(end, ForEachBatchDef):
            called.update(join for _, _, join in found if join is not None)
    for stream in graph.processed:
        for topic, steps, join in _ways(stream, None):
            ways.setdefault(topic, set()).add((steps, join))
    return Uses({topic: frozenset(each) for topic, each in ways.items()}, frozenset(called))


def _ways(stream: Stream, into: StreamJoinDef | None) -> Iterator[tuple[str, tuple[object, ...], StreamJoinDef | None]]:
    """The ways of all topics that a stream is made of. `into`: what all of the stream goes into next."""
    origin, steps = stream._origin, stream._steps
    join = next((step for step in steps if isinstance(step, StreamJoinDef)), None)
    before = steps if join is None else steps[: steps.index(join)]
    match origin:
        case UnionDef():
            for each in origin.streams:
                yield from _ways(each, None)
        case RepartitionDef():
            yield from _ways(origin.parent, None)
        case AggregateDef():
            yield from _ways(origin.grouped._stream, None)
        case TableDef(source=source) | (SourceDef() as source):
            yield source.topic, before, into if join is None else join
    for step in steps:
        if isinstance(step, StreamJoinDef):
            yield from _ways(step.other, step)
        elif isinstance(step, TableJoinDef):
            yield from _ways(step.other, None)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
