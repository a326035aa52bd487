"""Compiles what a user wrote to a `Program`.

Each stream is followed from its source, step by step, over DataFrames of no rows that Spark analyses: a flow is what is
known at a point. Where records have to move to other tasks, the subtopology ends and another begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kohort.spark.errors import ProgramError
from kohort.spark.internals import empty_frame
from kohort.spark.program.aggregate_specs import Keyed, aggregate_spec, check_grace, check_window, group_types
from kohort.spark.program.column_checks import check_exchanged, check_names, check_types, without_partition
from kohort.spark.program.column_propagation import propagated
from kohort.spark.program.compiled import (
    Aggregate,
    AggregateSpec,
    Branch,
    CompiledSubtopology,
    Discard,
    Input,
    InputSide,
    Join,
    PartialsInput,
    Peek,
    Program,
    RowsInput,
    SidesInput,
    SourceSpec,
    Step,
    Store,
    TableStore,
    Terminal,
    ToFunction,
    ToPartials,
    TopicInput,
    ToRows,
    Transform,
    with_deleted,
)
from kohort.spark.program.emission import AtMostEvery
from kohort.spark.program.fingerprint import fingerprint
from kohort.spark.program.foreign_key_joins import foreign_key_join
from kohort.spark.program.function_definitions import FunctionDef
from kohort.spark.program.function_outputs import rows_of
from kohort.spark.program.internal_columns import DELETED, PARTITION, STREAM_TIME
from kohort.spark.program.join_checks import joined, placed
from kohort.spark.program.join_sides import CompiledJoin, JoinSide
from kohort.spark.program.joins_in_place import Laid, may_make_several, uses_of, why_through_topic
from kohort.spark.program.notes import Moved, Note
from kohort.spark.program.operations import TableChanges, UserFunction
from kohort.spark.program.output_checks import group_output, row_output
from kohort.spark.program.processor_specs import Process, StateKind
from kohort.spark.program.processors import processor
from kohort.spark.program.sessions import gap_in_ms, sessions_of, with_last_row
from kohort.spark.program.settings import AppSettings, check_name
from kohort.spark.program.shortcuts import Shortcut
from kohort.spark.program.sliding_windows import SlidingSpec, slide
from kohort.spark.program.sources import SourceDef, TableDef, resolved
from kohort.spark.program.stream_joins import stream_join
from kohort.spark.program.streams import (
    AggregateDef,
    ForEachBatchDef,
    FunctionOutputDef,
    Graph,
    JoinDef,
    Origin,
    OutputDef,
    PeekDef,
    ProcessDef,
    RepartitionDef,
    SinkDef,
    StepDef,
    Stream,
    StreamJoinDef,
    TableJoinDef,
    TransformDef,
    UnionDef,
)
from kohort.spark.program.table_changes import table_changes
from kohort.spark.program.table_joins import (
    JoinColumns,
    JoinedFlow,
    as_of_join,
    join_columns,
    stream_table_join,
    table_join,
)
from kohort.spark.program.tables import (
    ChangesDef,
    GroupsDef,
    TableTransformDef,
    ToStreamDef,
    ToTableDef,
    check_key,
    stream_of,
    table_of,
    upserting,
)
from kohort.spark.program.topology import topology
from kohort.spark.program.transform_checks import called, makes_several, over_several_rows, passed
from kohort.spark.program.unbounded import unbounded_state, unbounded_windows
from kohort.spark.program.unions import united_columns, with_columns_of
from kohort.spark.program.windows import SessionSpec
from kohort.spark.program.written_at import located

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from kohort.protocol.records.partitioner import Partitioner


def compile_program(graph: Graph, settings: AppSettings, spark: SparkSession) -> Program:
    """The program that a user wrote.

    Raises:
        ProgramError: it can't run; says why, and what to write instead.
    """
    return _Compiler(graph, settings, spark).program()


_CUT: Final = (
    "a group of {} has one row for all that an epoch adds to it, so which versions there are depends on how epochs are "
    "cut. Make the table by to_table of a stream with times of its own: of closed windows, or of what a function gives "
    "for each row, .process(…)"
)
_JOINED: Final = (
    "a row of {} has the time of the change that was read last, so which versions there are depends on which side is "
    "read first. Join the stream with one side as of its time, and then with the other"
)
"""Why rows of aggregates without windows, and of joins of tables, aren't versions, and what to do."""


@dataclass(eq=False)
class _Draft:
    """A subtopology that is being put together. One without input is kept only if nothing is joined to its table."""

    input: Input | None
    tables: list[TableStore] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)


@dataclass(frozen=True)
class _Flow:
    """A stream at a point of the program.

    Attributes:
        where: how messages call it.
        rows: a DataFrame of no rows, with `_stream_time` as long as that goes with them.
        key: what its records are keyed by, as far as that still holds; () for unknown.
        key_names: what these columns are called in the records' keys.
        lost: why that doesn't hold any more; "" if it does, or never did.
        retimed: what has changed the event time since the records were read; "" if nothing has.
        table: the columns of a table's key, if these are upserts; rows of a key are all in one partition then.
        partitioner: how its records' keys become partitions.
        no_versions: why its rows' times can't be those from which on versions of a table are valid; "" if they can.
        several: whether transforms may have made several rows of a record.
    """

    where: str
    draft: _Draft
    steps: tuple[Step, ...]
    rows: DataFrame
    key: tuple[str, ...]
    key_names: tuple[str, ...]
    event_time: str | None
    lost: str = ""
    retimed: str = ""
    partitioner: Partitioner = "murmur2"
    table: tuple[str, ...] | None = None
    no_versions: str = ""
    several: bool = False

    @cached_property
    def frame(self) -> DataFrame:
        """The same, as functions of the user's see it."""
        return self.rows.drop(STREAM_TIME)


class _Compiler:
    def __init__(self, graph: Graph, settings: AppSettings, spark: SparkSession) -> None:
        self._graph = graph
        self._settings = settings
        self._spark = spark
        self._tables: dict[TableDef, TableStore] = {}
        self._sources: dict[SourceDef, _Draft] = {}
        self._drafts_of_tables: dict[TableStore, _Draft | None] = {}  # the subtopology that a table is in
        self._drafts: list[_Draft] = []
        self._flows: dict[tuple[object, ...], _Flow] = {}
        self._topics: dict[str, str] = {}  # internal topics, and what for
        self._names: set[str] = set()  # of stores
        self._processors: set[str] = set()
        self._aggregates: dict[AggregateDef, Aggregate] = {}
        self._unions: dict[UnionDef, list[Stream]] = {}
        self._tables_of_groups: dict[AggregateDef, _Flow] = {}
        self._notes: list[Note] = []
        self._uses = uses_of(graph)
        self._partition_lost: dict[str, str] = {}  # topics of rows that have lost `_partition`, and where

    def program(self) -> Program:
        self._read_sources()
        for end in self._graph.ends:
            with located(end):
                if isinstance(end, SinkDef):
                    for stream in self._parts(end.stream):
                        self._sink(self._flow(stream), end.output, self._root(stream))
                elif isinstance(end, ForEachBatchDef):
                    for stream in self._parts(end.stream):
                        self._for_each_batch(self._flow(stream), end)
                else:
                    self._aggregate(self._flows_of(end.grouped._stream), end)
        self._discard()
        subtopologies = self._subtopologies()
        if not subtopologies:
            raise ProgramError("the program does nothing: it has no stream that ends anywhere, and no table")
        return Program(
            application_id=self._settings.application_id,
            subtopologies=subtopologies,
            globals=tuple(table for table in self._tables.values() if table.is_global),
            topology=topology(subtopologies, self._settings),
            fingerprint=fingerprint(subtopologies),
            notes=tuple(self._notes),
        )

    # Sources ---------------------------------------------------------------------------------------------------------

    def _read_sources(self) -> None:
        streams = [end.grouped._stream if isinstance(end, AggregateDef) else end.stream for end in self._graph.ends]
        ended = {source for stream in (*streams, *self._graph.processed) for source in self._roots(stream)}
        names = self._names
        for each in self._graph.sources:
            with located(each):
                self._read_source(each, ended)
        for end in self._graph.ends:
            if isinstance(end, AggregateDef):
                with located(end):
                    self._take_name(end.name, names)

    def _read_source(self, each: SourceDef | TableDef, ended: set[SourceDef]) -> None:
        names = self._names
        if isinstance(each, TableDef) and each.source in ended:
            draft = _Draft(TopicInput(resolved(each.source, "table"), upserts=True))
            self._sources[each.source] = draft
            self._drafts.append(draft)
        elif isinstance(each, TableDef):
            self._take_name(each.name, names)
            source = resolved(each.source, "global_table" if each.is_global else "table")
            changelog = None if each.is_global else self._internal(f"{each.name}-changelog", f"table {each.name!r}")
            table = TableStore(each.name, source, changelog)
            self._tables[each] = table
            if not each.is_global:
                self._drafts_of_tables[table] = None
                self._drafts.append(_Draft(None, [table]))
        else:
            what = "table" if each.table_key else "stream"
            if each not in ended:
                remedy = "end it with .to(…), or with .group_by(…).aggregate(…)"
                if each.table_key:
                    remedy = f"with key_format= no store has it to ask: {remedy}, or join a stream with it"
                raise ProgramError(f"{what} {each.topic!r} goes nowhere: {remedy}")
            draft = _Draft(TopicInput(resolved(each, what)))
            self._sources[each] = draft
            self._drafts.append(draft)

    def _take_name(self, name: str, names: set[str]) -> None:
        if name in names:
            raise ProgramError(
                f"two stores are called {name!r}: tables and aggregates need names of their own, since queries and "
                f"topics go by them. Give one another name (app.table(…, name=…), aggregate(…))"
            )
        names.add(name)

    def _root(self, stream: Stream) -> SourceDef:
        origin = stream._origin
        return _source(origin) or self._root(_parents(origin)[0])

    def _roots(self, stream: Stream) -> set[SourceDef]:
        """All topics that rows of a stream come from."""
        others = [step.other for step in stream._steps if isinstance(step, (StreamJoinDef, TableJoinDef))]
        origin = stream._origin
        source = _source(origin)
        parents = _parents(origin) if source is None else ()
        own = set() if source is None else {source}
        return own.union(*map(self._roots, (*parents, *others)))

    def _internal(self, name: str, what: str) -> str:
        topic = check_name(f"the topic of {what}", f"{self._settings.application_id}-{name}")
        if topic in self._topics:
            raise ProgramError(
                f"{what} and {self._topics[topic]} would have the same topic, {topic}: give one another name"
            )
        self._topics[topic] = what
        return topic

    def _subtopologies(self) -> tuple[CompiledSubtopology, ...]:
        self._mark_by_stream_time()
        drafts = [draft for draft in self._drafts if draft.input or not self._drafts_of_tables[draft.tables[0]]]
        return tuple(
            CompiledSubtopology(str(number), draft.input, tuple(draft.tables), tuple(draft.branches))
            for number, draft in enumerate(drafts)
        )

    def _mark_by_stream_time(self) -> None:
        """Note which rows are read for windows with a grace, directly or when they have moved again.

        Raises:
            ProgramError: they have lost what their order goes by.
        """
        read: set[str] = set()
        for draft in reversed(self._drafts):  # each comes after those that it reads from
            for number, branch in enumerate(draft.branches):
                end = branch.terminal
                if isinstance(end, ToRows) and end.topic in read:
                    if end.topic in self._partition_lost:
                        raise ProgramError(
                            f"{self._partition_lost[end.topic]}: a window with a grace, a join or a function with "
                            f"state follows, so rows have to go in order, and a transform loses the column "
                            f"{PARTITION}, by which they do. It goes along through select, where, explode, joins and "
                            f"UDFs; keep it in mapInPandas and mapInArrow"
                        )
                    draft.branches[number] = replace(branch, terminal=replace(end, by_stream_time=True))
            if isinstance(draft.input, RowsInput) and any(branch.by_stream_time for branch in draft.branches):
                read.add(draft.input.topic)

    # Streams ---------------------------------------------------------------------------------------------------------

    def _flow(self, stream: Stream) -> _Flow:
        """What is known of a stream. Those with a common beginning share its steps, which are compiled once."""
        steps = stream._steps
        path: tuple[object, ...] = (stream._origin,)
        if isinstance(stream._origin, UnionDef):
            first = next(number for number, step in enumerate(steps) if not _goes_by_row(step))
            united, step, steps = Stream(self._graph, stream._origin, steps[:first]), steps[first], steps[first + 1 :]
            path = (*path, *united._steps, step)
            with located(step):
                flow = self._flows.get(path) or self._step(self._flows_of(united), step, stream)
        else:
            with located(stream._origin):
                flow = self._flows.get(path) or self._begin(stream._origin)
        self._flows[path] = flow
        for step in steps:
            path = (*path, step)
            if path not in self._flows:
                with located(step):
                    self._flows[path] = self._step([flow], step, stream)
            flow = self._flows[path]
        return flow

    def _parts(self, stream: Stream) -> list[Stream]:
        """The streams that a union is made of, each with what is done to all; a stream that is none by itself."""
        origin, steps = stream._origin, stream._steps
        if not isinstance(origin, UnionDef) or not all(map(_goes_by_row, steps)):
            return [stream]
        if origin not in self._unions:
            parts = [part for each in origin.streams for part in self._parts(each)]
            flows = [self._flow(part) for part in parts]
            schemas = [flow.frame.schema for flow in flows]
            with located(origin):
                columns = united_columns(origin, [flow.where for flow in flows], schemas)
            self._unions[origin] = [
                part._with(TransformDef(with_columns_of(columns, {*flow.key, flow.event_time or ""})))
                for part, flow in zip(parts, flows, strict=True)
            ]
        return [Stream(self._graph, part._origin, (*part._steps, *steps)) for part in self._unions[origin]]

    def _flows_of(self, stream: Stream) -> list[_Flow]:
        """What is known of a stream, or of each that a union is made of."""
        return [self._flow(part) for part in self._parts(stream)]

    def _groups(self, definition: AggregateDef) -> _Flow:
        """An aggregate's groups, as they are written."""
        aggregate = self._aggregates[definition]
        assert aggregate.stream is not None
        spec, where = aggregate.spec, f"aggregate {definition.name!r}"
        schema = spec.shown_columns
        event_time = None if spec.window is None else "window"
        key = (*(() if spec.window is None else ("window",)), *spec.group_names)
        if aggregate.deletes:
            schema = with_deleted(schema)
        draft = _Draft(
            RowsInput(aggregate.stream, schema, (), event_time, encoded=False, upserts=key if aggregate.deletes else ())
        )
        self._drafts.append(draft)
        cut = "" if event_time is not None else _CUT.format(where)
        flow = _Flow(where, draft, (), self._rows(schema), (), (), event_time, no_versions=cut)
        if not aggregate.deletes:
            return flow
        self._tables_of_groups[definition] = replace(flow, table=key)
        return self._transform(flow, TransformDef(stream_of(ToStreamDef(None))))

    def _step(self, flows: list[_Flow], step: StepDef, stream: Stream) -> _Flow:
        """A stream after a step. Of a union there are several flows up to the first step that isn't done to each."""
        flow = flows[0]
        match step:
            case TransformDef():
                return self._transform(flow, step)
            case JoinDef():
                return self._join(flows, step, self._root(stream).topic)
            case PeekDef(function=function):
                check_types(f"{flow.where}: peek", without_partition(flow.frame.schema))
                return replace(flow, steps=(*flow.steps, Peek(function)))
            case StreamJoinDef():
                return self._join_stream(flows, step, self._root(stream).topic)
            case TableJoinDef():
                return self._join_table(flows, step, self._root(stream).topic)
            case ProcessDef():
                return self._process(flows, step)
            case FunctionOutputDef():
                return self._output(flow, step.name)
            case GroupsDef():
                assert isinstance(stream._origin, AggregateDef)
                return self._tables_of_groups[stream._origin]
            case ChangesDef():
                return self._changes(flow, step, self._root(stream).topic)
            case TableTransformDef():
                return self._transform_table(flow, step)
            case ToTableDef():
                return self._to_table(flows, step, self._root(stream).topic)
            case ToStreamDef():
                return self._transform(replace(flow, table=None), TransformDef(stream_of(step)))

    def _begin(self, origin: Origin) -> _Flow:
        if isinstance(origin, RepartitionDef):
            return self._repartition(origin)
        if isinstance(origin, AggregateDef):
            return self._groups(origin)
        assert not isinstance(origin, UnionDef)
        definition = origin.source if isinstance(origin, TableDef) else origin
        draft = self._sources[definition]
        assert isinstance(draft.input, TopicInput)
        source: SourceSpec = draft.input.source
        rows, key = self._rows(draft.input.schema), source.key
        where, table, lost = f"{'table' if definition.table_key else 'stream'} {definition.topic!r}", None, ""
        if isinstance(origin, TableDef):
            where, table = f"table {origin.name!r}", key
        if source.key_read is not None and not source.key:
            lost = f"its records' keys are {source.key_read.format}, and lie where their bytes lead to, not their text"
        return _Flow(
            where, draft, (), rows, key, key, source.event_time, lost, partitioner=source.partitioner, table=table
        )

    def _transform_table(self, flow: _Flow, step: TableTransformDef) -> _Flow:
        assert flow.table is not None
        shortcut = upserting(step, _kept(flow.table, flow.event_time))
        return self._transform(flow, TransformDef(shortcut))

    def _to_table(self, flows: Sequence[_Flow], step: ToTableDef, topic: str) -> _Flow:
        flow = flows[0]
        where = f"{flow.where}: to_table({', '.join(map(repr, step.key))})"
        schema = without_partition(flow.frame.schema)
        group_types(where, step.key, schema)
        if len(flows) > 1 or not flow.key or not set(flow.key) <= set(step.key):
            name = step.name or _readable(f"{topic}-table-{'-'.join(step.key)}")
            flow = self._move(flows, self._internal(f"{name}-repartition", where), step.key, schema)
        no_versions = flow.no_versions if flow.event_time is None else ""
        flow = replace(flow, where=where, table=step.key, no_versions=no_versions)
        return self._transform(flow, TransformDef(table_of(step, _kept(step.key, flow.event_time))))

    def _transform(self, flow: _Flow, step: TransformDef) -> _Flow:
        where = f"{flow.where}: {_label(step.function)}"
        made = called(where, step.function, flow.frame)
        if flow.table is not None and makes_several(made):
            raise ProgramError(
                f"{_label(step.function)} makes several rows of one, but a table has one row for each key: "
                f"say .as_stream() first"
            )
        if several := over_several_rows(made, flow.frame):
            raise ProgramError(f"{where}: {several}; a transform treats each row by itself")
        own = {PARTITION, *([] if flow.table is None else [DELETED])}
        check_names(where, [name for name in made.columns if name not in own])
        made = propagated(made, flow.rows, [PARTITION, STREAM_TIME])
        there = passed(made, flow.rows)
        gone = [name for name in flow.key if name not in there]
        gone += [] if PARTITION in there.get(PARTITION, ()) else [PARTITION]
        schema = made.schema
        event_time = flow.event_time
        lost, retimed = flow.lost, flow.retimed
        if event_time is not None:
            names = there.get(event_time, ())
            if event_time in _times(schema):
                retimed = retimed if event_time in names else where
            else:
                event_time = names[0] if names else None
        if flow.key and gone:
            lost = f"{where} doesn't pass {' and '.join(gone)} through unchanged"
        key = () if gone else tuple(there[name][0] for name in flow.key)
        table = None if flow.table is None else check_key(where, flow.table, there)
        rows = empty_frame(self._spark, schema)  # the next step needn't analyse this one again
        return replace(
            flow, steps=(*flow.steps, Transform(step.function)), rows=rows, key=key, event_time=event_time, lost=lost,
            retimed=retimed, table=table, several=flow.several or may_make_several(made),
        )  # fmt: skip

    def _join(self, flows: Sequence[_Flow], step: JoinDef, topic: str) -> _Flow:
        flow = flows[0]
        table = self._tables.get(step.table)
        if table is None and step.table.source in self._sources:
            raise ProgramError(
                f"{flow.where}: table {step.table.name!r} is used as a value as well, so its topic's records go on "
                f"from step to step, and no store has them that a stream could be joined to. Leave one of both to "
                f"another application"
            )
        if table is None:
            raise ProgramError(f"{flow.where}: the table {step.table.name!r} is of another StreamsApp")
        key, why = placed(_keyed(flow), table, step)
        if len(flows) > 1:
            why = "several streams are united, and the table is one topic's"
        if why:
            flow = self._move_to_table(flows, table, step, topic, key, why)
        on, columns, schema = joined(_keyed(flow), table, step)
        check_exchanged(f"{flow.where}: join({table.name!r})", schema)
        if not table.is_global:
            self._assign_table(flow, table)
        compiled = Join(table, on, step.how, table.is_global, columns)
        own = [field for field in flow.rows.schema.fields if field.name == STREAM_TIME]
        return replace(flow, steps=(*flow.steps, compiled), rows=empty_frame(self._spark, _with(schema, own)))

    def _move_to_table(
        self, flows: Sequence[_Flow], table: TableStore, step: JoinDef, topic: str, key: tuple[str, ...], why: str
    ) -> _Flow:
        """Sends rows through a topic by the columns of the table's key, so that they lie where its rows do."""
        flow = flows[0]
        if self._drafts_of_tables[table] is not None:
            raise ProgramError(
                f"{flow.where}: table {table.name!r} is joined to another stream already, and its store is with that "
                f"one's tasks. Make it an app.global_table, which every stream can be joined to; or, of several "
                f"branches of a stream, say .repartition(…) by the table's key once, before they part"
            )
        if table.source.partitioner != "murmur2":
            raise ProgramError(
                f"{flow.where}: join({table.name!r}): {why}, so its rows go through a topic, partitioned by "
                f"murmur2, and the table is by {table.source.partitioner}, so a row's task may not have its part of "
                f"the table. Make the table an app.global_table, which every instance has all of"
            )
        moved = replace(_keyed(flow), key=key, key_names=key, partitioner="murmur2")
        joined(moved, table, step)  # raises where rows can't be joined wherever they lie
        name = step.name or _readable(f"{topic}-join-{table.name}")
        to = self._internal(f"{name}-repartition", f"join {name!r}")
        by = ", ".join(map(repr, key))
        self._notes.append(Moved(to, f"{flow.where} is joined by {by} to table {table.name!r}, and {why}", step.at))
        return self._move(flows, to, key, without_partition(flow.frame.schema))

    def _process(self, flows: Sequence[_Flow], step: ProcessDef) -> _Flow:
        flow = flows[0]
        what, group = step.operation.what, step.grouped._columns
        root = self._root(step.grouped._stream)
        name = step.name or _readable(f"{root.topic}-{what.removesuffix('_by')}-{'-'.join(group)}")
        where = f"{flow.where}: {what}({name!r})"
        self._take_name(name, self._processors)
        if (
            len(flows) > 1
            or not flow.key
            or not set(flow.key) <= set(group)
            or (_keeps_lists(step) and _reads_several_topics(flow))
        ):
            topic = self._internal(f"{name}-repartition", f"{what} {name!r}")
            group_types(f"{where}: group_by", group, flow.frame.schema)
            flow = self._move(flows, topic, group, without_partition(flow.frame.schema))
        self._check_order(where, flow)
        schema = without_partition(flow.frame.schema)
        compiled = processor(where, name, step, schema, flow.key, flow.event_time, self._changelog)
        compiled = replace(compiled, route_names=flow.key_names)
        self._notes.extend(unbounded_state(step, compiled))
        timed = isinstance(step.operation, FunctionDef) and "event" in step.operation.timers
        if compiled.operation.by_stream_time:
            self._check_stream_time(where, flow, f"{what} goes")
        if compiled.operation.by_stream_time or timed:
            self._check_event_time(where, flow, "timers go" if timed else f"{what} goes")
        output = compiled.output
        event_time = flow.event_time if flow.event_time in _times(output) else None
        done = replace(flow, where=where, steps=(*flow.steps, compiled), rows=self._rows(output), event_time=event_time)
        if compiled.operation.passes_rows:
            return done
        lost = f"{where} may give rows of other groups"
        return replace(done, key=(), key_names=(), lost=lost, retimed=where)

    def _output(self, flow: _Flow, name: str) -> _Flow:
        """One of several outputs of the function before."""
        process = flow.steps[-1]
        assert isinstance(process, Process) and isinstance(process.operation, UserFunction)
        names = [each for each, _ in process.operation.outputs]
        schema = process.operation.outputs[names.index(name)][1]
        event_time = process.event_time if process.event_time in _times(schema) else None
        steps = (*flow.steps, Transform(rows_of(names.index(name), schema)))
        where = f"{flow.where}, output {name!r}"
        return replace(flow, where=where, steps=steps, rows=self._rows(schema), event_time=event_time)

    def _changes(self, flow: _Flow, step: ChangesDef, topic: str) -> _Flow:
        key, schema = flow.table, without_partition(flow.frame.schema)
        assert key is not None
        name = step.name or _readable(f"{topic}-changes-{'-'.join(key)}")
        where = f"{flow.where}: changes({name!r})" if step.pairs else flow.where
        self._take_name(name, self._processors)
        self._check_order(where, flow)
        compiled = table_changes(
            where, name, TableChanges(step.pairs), key, schema, flow.key, flow.event_time, self._changelog
        )
        compiled = replace(compiled, route_names=flow.key_names)
        steps, rows = (*flow.steps, compiled), self._rows(compiled.output)
        event_time = flow.event_time if flow.event_time in compiled.output.names else None
        return replace(flow, where=where, steps=steps, rows=rows, event_time=event_time, table=None)

    def _join_stream(self, left: list[_Flow], step: StreamJoinDef, topic: str) -> _Flow:
        right = self._flows_of(step.other)
        flow, other = left[0], right[0]
        name = step.name or _readable(f"{topic}-{self._root(step.other).topic}")
        where = f"{flow.where}: join_stream({other.where})"
        self._take_name(name, self._processors)
        for each in (*left, *right):
            self._check_order(where, each)
        schemas = (flow.frame.schema, other.frame.schema)
        times = (_one_time(where, left), _one_time(where, right))
        compiled = stream_join(where, step, name, schemas, times, self._changelog)
        rows = self._rows(compiled.step.output)
        why = why_through_topic(_laid(left), _laid(right), step, self._uses)
        if not step.repartition:
            if why:
                raise ProgramError(
                    f"{where}: the sides can't be read where they lie, as repartition=False says: {why}. Change that, "
                    f"or leave repartition=False out: both go through a topic then"
                )
            draft, joined_by = self._sides_in_place(flow, other, compiled, how=step.how)
            if step.how == "inner":
                return _Flow(
                    where, draft, (joined_by,), rows, flow.key, flow.key_names, None, partitioner=flow.partitioner
                )
            lost = f"{where} gives rows without a key, too, which lie anywhere"
            return _Flow(where, draft, (joined_by,), rows, (), (), None, lost)
        spared = "" if why else "; both lie alike, so join_stream(…, repartition=False) would spare it"
        draft = self._join_sides((left, right), compiled, step.at, spared)
        on = tuple(step.on)
        return _Flow(where, draft, (compiled.step,), rows, on, on, None)

    def _sides_in_place(self, left: _Flow, right: _Flow, compiled: CompiledJoin, *, how: str) -> tuple[_Draft, Process]:
        """A subtopology that reads both sides where they lie, instead of those that would read them; its first step."""
        sides = []
        for flow, side in zip((left, right), compiled.sides, strict=True):
            assert isinstance(flow.draft.input, TopicInput)
            end = ToRows("", left.key, compiled.schema, side.event_time)
            sides.append(InputSide(flow.draft.input.source, Branch((*flow.steps, Transform(side.rows)), end)))
            self._drafts.remove(flow.draft)
        draft = _Draft(SidesInput((sides[0], sides[1]), compiled.schema, left.key, null_keys=how != "inner"))
        self._drafts.append(draft)
        return draft, replace(compiled.step, routed_by=left.key, route_names=left.key_names, in_place=True)

    def _join_table(self, left: list[_Flow], step: TableJoinDef, topic: str) -> _Flow:
        flow, other = left[0], self._flow(step.other)
        what = "join" if step.versions is None else "join_as_of"
        name = step.name or _readable(f"{topic}-{what.replace('_', '-')}-{self._root(step.other).topic}")
        where = f"{flow.where}: {what}({other.where})"
        self._take_name(name, self._processors)
        for each in (*left, other):
            self._check_order(where, each)
        flow = replace(flow, event_time=_one_time(where, left))
        sides = _joined(flow), _joined(other)
        columns = join_columns(where, step, *sides)
        if flow.table is not None and set(columns.on) != set(flow.table):
            return self._join_by_foreign_key(where, name, step, columns, (flow, other))
        if step.versions is not None:
            _check_versions(where, other)
            for each in (*left, other):
                self._check_event_time(where, each, f"{what} goes")
            compiled = as_of_join(where, step, name, columns, sides, self._changelog)
        elif flow.table is None:
            compiled = stream_table_join(where, step.how, name, columns, sides[0], self._changelog)
        else:
            compiled = table_join(where, step.how, name, columns, sides, self._changelog)
        draft, rows = self._join_sides((left, [other]), compiled, step.at), self._rows(compiled.step.output)
        event_time, table = (flow.event_time, None) if flow.table is None else (None, columns.on)
        on = columns.on
        no_versions = flow.no_versions if flow.table is None else _JOINED.format(where)
        return _Flow(where, draft, (compiled.step,), rows, on, on, event_time, table=table, no_versions=no_versions)

    def _join_by_foreign_key(
        self, where: str, name: str, step: TableJoinDef, columns: JoinColumns, flows: tuple[_Flow, _Flow]
    ) -> _Flow:
        left, right = flows
        how = step.how
        key = left.table
        assert key is not None
        if how == "outer":
            raise ProgramError(
                f'{where}: how="outer" is for joins of keys. By a foreign key, rows of the other table that no row '
                f'refers to have no key in the result: say "left", or group this table by {", ".join(columns.on)} first'
            )
        if not left.key or not set(left.key) <= set(key):
            topic = self._internal(f"{name}-left-repartition", f"join {name!r}")
            why = f"{left.where} is joined by a foreign key, and isn't known to be keyed by {', '.join(map(repr, key))}"
            self._notes.append(Moved(topic, why, step.at))
            left = replace(self._move([left], topic, key, without_partition(left.frame.schema)), table=key)
        sides = _joined(left), _joined(right)
        compiled = foreign_key_join(where, how, name, columns, sides, left.key, self._changelog)
        for each in (compiled.subscriptions, compiled.answers, compiled.results):
            self._take_name(each.name, self._processors)
        began = replace(left, steps=(*left.steps, replace(compiled.subscriptions, route_names=left.key_names)))
        asked = self._internal(f"{name}-subscriptions-repartition", f"join {name!r}")
        answering = self._gathered(asked, columns.key, compiled.asked, ([began], [right]), compiled.to_answers)
        answered = self._internal(f"{name}-answers-repartition", f"join {name!r}")
        by = (
            f"{left.where} asks {right.where} there, by {', '.join(map(repr, columns.on))}",
            "answers come back there",
        )
        self._notes.extend(Moved(topic, why, step.at) for topic, why in zip((asked, answered), by, strict=True))
        answers = replace(right, draft=answering, steps=(compiled.answers,))
        draft = self._gathered(answered, key, compiled.answered, ([began], [answers]), compiled.to_results)
        rows = self._rows(compiled.results.output)
        return _Flow(
            where, draft, (compiled.results,), rows, key, key, None, table=key, no_versions=_JOINED.format(where)
        )

    def _join_sides(
        self, sides: Sequence[Sequence[_Flow]], compiled: CompiledJoin, at: str, spared: str = ""
    ) -> _Draft:
        """Sends both sides into a topic; what reads that."""
        name, key = compiled.step.name, compiled.step.group_names
        topic = self._internal(f"{name}-repartition", f"join {name!r}")
        left, right = (" and ".join(flow.where for flow in side) for side in sides)
        self._notes.append(Moved(topic, f"{left} and {right} meet there, by {', '.join(map(repr, key))}", at, spared))
        return self._gathered(topic, key, compiled.schema, sides, compiled.sides)

    def _gathered(
        self,
        topic: str,
        key: tuple[str, ...],
        schema: StructType,
        flows: Sequence[Sequence[_Flow]],
        sides: Sequence[JoinSide],
    ) -> _Draft:
        """Sends rows of several flows into one topic, those of each side in its way; what reads that."""
        for some, side in zip(flows, sides, strict=True):
            terminal = ToRows(topic, key, schema, side.event_time, since=side.since)
            for each in some:
                each.draft.branches.append(Branch((*each.steps, Transform(side.rows)), terminal))
        draft = _Draft(RowsInput(topic, schema, key))
        self._drafts.append(draft)
        return draft

    def _changelog(self, name: str, what: str) -> str:
        self._take_name(name, self._names)
        return self._internal(f"{name}-changelog", what)

    def _assign_table(self, flow: _Flow, table: TableStore) -> None:
        draft = self._drafts_of_tables[table]
        if draft is None:
            self._drafts_of_tables[table] = flow.draft
            flow.draft.tables.append(table)
        elif draft is not flow.draft:
            raise ProgramError(
                f"{flow.where}: table {table.name!r} is joined to another topic's stream already, and its store is "
                f"with that one's tasks. Make it an app.global_table, which every stream can be joined to"
            )

    def _repartition(self, step: RepartitionDef) -> _Flow:
        parents = self._flows_of(step.parent)
        parent = parents[0]
        schema = without_partition(parent.frame.schema)
        group_types(f"{parent.where}: repartition", step.columns, schema)
        name = step.name or _readable(f"{self._root(step.parent).topic}-by-{'-'.join(step.columns)}")
        topic = self._internal(f"{name}-repartition", f"repartition({', '.join(map(repr, step.columns))})")
        return self._move(parents, topic, step.columns, schema, step.partitions)

    def _move(
        self, parents: Sequence[_Flow], topic: str, key: tuple[str, ...], schema: StructType, partitions: int = 0
    ) -> _Flow:
        for parent in parents:
            check_types(f"{parent.where}, to a repartition topic", schema)
            terminal = ToRows(topic, key, schema, parent.event_time)
            parent.draft.branches.append(Branch(parent.steps, terminal))
            if PARTITION not in parent.frame.columns:
                self._partition_lost[topic] = f"{parent.where}, to be repartitioned by {', '.join(key)}"
        event_time = _same_time(parents)
        draft = _Draft(RowsInput(topic, schema, key, event_time, partitions))
        self._drafts.append(draft)
        where = f"{' and '.join(parent.where for parent in parents)}, repartitioned by {', '.join(key)}"
        no_versions = "" if event_time else next((each.no_versions for each in parents if each.no_versions), "")
        return _Flow(where, draft, (), self._rows(schema), key, key, event_time, no_versions=no_versions)

    def _rows(self, schema: StructType) -> DataFrame:
        from pyspark.sql.types import IntegerType, LongType, StructField

        own = [StructField(PARTITION, IntegerType()), StructField(STREAM_TIME, LongType())]
        return empty_frame(self._spark, _with(schema, own))

    # Ends ------------------------------------------------------------------------------------------------------------

    def _sink(self, flow: _Flow, output: OutputDef, source: SourceDef) -> None:
        schema = without_partition(flow.frame.schema)
        if flow.table is not None:
            output = replace(output, key=flow.table, tombstone=DELETED)
        end = row_output(flow.where, output, schema, flow.frame, source.on_error)
        read = _input_time(flow.draft.input)
        self._end(flow, replace(end, event_time=None if flow.event_time == read else flow.event_time))

    def _for_each_batch(self, flow: _Flow, end: ForEachBatchDef) -> None:
        where = f"{flow.where}: for_each_batch"
        schema = without_partition(flow.frame.schema)
        if not schema.names:
            raise ProgramError(f"{where}: there is no column left to give")
        if PARTITION not in flow.frame.columns:
            raise ProgramError(
                f"{where}: a transform before it loses the column {PARTITION}, which says whose batch a row is in: it "
                f"goes with rows through select, where, explode, joins and UDFs, but not through mapInPandas, "
                f"mapInArrow or a union. Say .repartition(…) after it"
            )
        check_exchanged(where, schema)
        self._end(flow, ToFunction(end.function, schema))

    def _aggregate(self, flows: list[_Flow], end: AggregateDef) -> None:
        flow = flows[0]
        where = f"{flow.where}: aggregate({end.name!r})"
        group = end.grouped._columns
        changelog = self._internal(f"{end.name}-changelog", f"aggregate {end.name!r}")
        if isinstance(end.grouped._window, SlidingSpec):
            flow = self._slide(where, flows, end, end.grouped._window)
            flows = [flow]
        in_place = len(flows) == 1 and bool(flow.key) and set(flow.key) == set(group)
        if isinstance(end.grouped._window, SessionSpec):
            self._aggregate_sessions(where, flows, end, changelog, in_place=in_place)
            return
        event_time = _one_time(where, flows)
        route = dict(zip(flow.key, flow.key_names, strict=True)) if in_place else {name: name for name in group}
        spec = aggregate_spec(where, end, flow.frame, changelog, event_time, route, in_place=in_place)
        aggregate = self._written(where, end, spec, event_time)
        moved = spec.arrow is not None and not in_place
        if spec.window is not None and spec.window.grace_ms is not None and not moved:
            for each in flows:
                self._check_stream_time(where, each)
        if in_place:
            self._end(flow, aggregate)
            return
        topic = self._internal(f"{end.name}-repartition", f"aggregate {end.name!r}")
        if moved:
            there = self._move(flows, topic, group, without_partition(flow.frame.schema))
            self._end(there, aggregate)
            return
        for each in flows:
            self._end(each, ToPartials(topic, spec))
        self._drafts.append(_Draft(PartialsInput(topic, spec), branches=[Branch((), aggregate)]))

    def _slide(self, where: str, flows: Sequence[_Flow], end: AggregateDef, window: SlidingSpec) -> _Flow:
        """Each row with the windows that it changes, where its group is."""
        flow = flows[0]
        columns, schema = end.grouped._columns, without_partition(flow.frame.schema)
        group = group_types(f"{where}: group_by", columns, schema)
        check_window(where, window, columns, schema)
        check_grace(where, window, _one_time(where, flows))
        self._take_name(end.name, self._processors)
        if len(flows) > 1 or set(flow.key) != set(columns) or _reads_several_topics(flow):
            topic = self._internal(f"{end.name}-repartition", f"aggregate {end.name!r}")
            flow = self._move(flows, topic, columns, schema)
        self._check_order(where, flow)
        self._check_stream_time(where, flow)
        step = slide(where, end.name, window, group, schema, flow.key, self._changelog)
        return replace(flow, steps=(*flow.steps, step), rows=self._rows(step.output))

    def _aggregate_sessions(
        self, where: str, flows: Sequence[_Flow], end: AggregateDef, changelog: str, *, in_place: bool
    ) -> None:
        window = end.grouped._window
        assert isinstance(window, SessionSpec)
        if gap := gap_in_ms(where, window, flows[0].frame.schema):
            flows = [self._transform(each, TransformDef(gap, at=end.at)) for each in flows]
        flow = flows[0]
        if not in_place:
            topic = self._internal(f"{end.name}-repartition", f"aggregate {end.name!r}")
            flow = self._move(flows, topic, end.grouped._columns, without_partition(flow.frame.schema))
        self._check_order(where, flow)
        schema = without_partition(flow.frame.schema)
        step = sessions_of(where, end, schema, flow.key, flow.event_time, self._changelog)
        self._take_name(step.name, self._processors)
        if step.operation.by_stream_time:
            self._check_stream_time(where, flow, "the session has a grace, which goes")
        route = dict(zip(flow.key, flow.key_names, strict=True))
        spec = aggregate_spec(where, with_last_row(end), flow.frame, changelog, flow.event_time, route, in_place=True)
        self._end(replace(flow, steps=(*flow.steps, step)), self._written(where, end, spec, flow.event_time))

    def _written(self, where: str, end: AggregateDef, spec: AggregateSpec, event_time: str | None) -> Aggregate:
        """An aggregate with what is written of it."""
        self._notes.extend(unbounded_windows(end, event_time))
        outputs = tuple(group_output(where, output, spec, self._spark) for output in end.outputs)
        stream = None
        if end.streamed:
            stream = self._internal(f"{end.name}-stream-repartition", f"the stream of aggregate {end.name!r}")
        waiting = None
        if isinstance(end.emit, AtMostEvery):
            store = f"{end.name}-waiting"
            waiting = Store(store, self._changelog(store, f"what waits of aggregate {end.name!r}"))
        aggregate = self._aggregates[end] = Aggregate(spec, outputs, stream, waiting, end.as_table or end.signed)
        return aggregate

    def _discard(self) -> None:
        """Ends streams of processors that keep state, and whose rows go nowhere."""
        for stream in self._graph.processed:
            flow = self._flow(stream)
            step = flow.steps[-1]
            if not any(step is each for branch in flow.draft.branches for each in branch.steps):
                self._end(flow, Discard())

    @staticmethod
    def _check_order(where: str, flow: _Flow) -> None:
        """State is kept in the order in which rows are read, which goes with them as columns."""
        if STREAM_TIME not in flow.rows.columns or PARTITION not in flow.frame.columns:
            raise ProgramError(
                f"{where}: state is kept in the order of the stream's records, and a transform before it loses that: "
                f"it goes with rows through select, where, explode, joins and UDFs, but not through mapInPandas, "
                f"mapInArrow, unpivot or a union. Say .repartition(…) after it"
            )

    @staticmethod
    def _check_stream_time(where: str, flow: _Flow, what: str = "the window has a grace, which goes") -> None:
        """Rows that are aggregated where they are read are late by the stream time there, which they have to keep."""
        if flow.retimed:
            raise ProgramError(
                f"{where}: {what} by {flow.event_time!r} as it was read, and {flow.retimed} changes it: make a column "
                f"of another name there, or say .repartition(…) after it, which reads the new time"
            )
        if STREAM_TIME not in flow.rows.columns:
            raise ProgramError(
                f"{where}: {what} by the stream time at which a row was read, and a transform before it loses that: "
                f"it goes with rows through select, where, explode, joins and UDFs, but not through mapInPandas, "
                f"mapInArrow, unpivot or a union. Say .repartition(…) after it"
            )

    @staticmethod
    def _check_event_time(where: str, flow: _Flow, what: str) -> None:
        """What is compared with stream time has to be in the rows, as it was read."""
        read = _input_time(flow.draft.input)
        if flow.event_time is None and read is not None:
            raise ProgramError(
                f"{where}: {what} by the event time, {read!r}, and a transform before it loses that: keep it, "
                f"or say .repartition(…) after it, which goes by the time of the records"
            )

    @staticmethod
    def _end(flow: _Flow, terminal: Terminal) -> None:
        flow.draft.branches.append(Branch(flow.steps, terminal))


def _check_versions(where: str, table: _Flow) -> None:
    """Refuses tables whose rows would be other versions if the same records were read otherwise."""
    if table.no_versions:
        raise ProgramError(f"{where}: {table.no_versions}, or join it as it is now, .join(…)")


def _source(origin: Origin) -> SourceDef | None:
    """The topic that is read, if rows don't come out of the program itself."""
    match origin:
        case SourceDef():
            return origin
        case TableDef(source=source):
            return source
    return None


def _parents(origin: Origin) -> tuple[Stream, ...]:
    """What rows are made of that come out of the program itself."""
    match origin:
        case UnionDef():
            return origin.streams
        case RepartitionDef():
            return (origin.parent,)
        case AggregateDef():
            return (origin.grouped._stream,)
    return ()


def _goes_by_row(step: StepDef) -> bool:
    """Whether a step can be done to each stream of a union by itself."""
    return isinstance(step, (TransformDef, PeekDef)) or (isinstance(step, JoinDef) and step.table.is_global)


def _keeps_lists(step: ProcessDef) -> bool:
    definition = step.operation
    return isinstance(definition, FunctionDef) and any(
        each.kind is StateKind.LIST for each in definition.states.values()
    )


def _reads_several_topics(flow: _Flow) -> bool:
    """Whether rows come from several topics: what is kept in lists has places by offsets, which are of one topic."""
    read = flow.draft.input
    return isinstance(read, TopicInput) and (read.source.pattern or len(read.topics) > 1)


def _one_time(where: str, flows: Sequence[_Flow]) -> str | None:
    """The event time of streams whose rows meet where each has it in a column of its own.

    Raises:
        ProgramError: it is in columns of several names.
    """
    if len({flow.event_time for flow in flows}) == 1:
        return flows[0].event_time
    said = ", ".join(f"{flow.event_time or 'their records'} of {flow.where}" for flow in flows)
    raise ProgramError(
        f"{where}: the event time of what is united is in several columns ({said}): give it one name in all, or say "
        f".repartition(…) before, after which each row has its own as its record's time"
    )


def _same_time(flows: Sequence[_Flow]) -> str | None:
    """The column that has the event time of all rows, if there is one: else it is their records' in a common topic."""
    times = {flow.event_time for flow in flows}
    return times.pop() if len(times) == 1 else None


def _kept(key: tuple[str, ...], event_time: str | None) -> tuple[str, ...]:
    """The columns that deletions have, too."""
    return key if event_time is None else (*key, event_time)


def _keyed(flow: _Flow) -> Keyed:
    return Keyed(flow.where, flow.key, flow.key_names, flow.lost, flow.frame.schema, flow.partitioner)


def _laid(flows: Sequence[_Flow]) -> Laid:
    flow = flows[0]
    return Laid(
        flow.where, len(flows), flow.draft.input, flow.steps, flow.several, flow.key, flow.key_names,
        flow.partitioner, flow.lost, flow.frame.schema,
    )  # fmt: skip


def _joined(flow: _Flow) -> JoinedFlow:
    return JoinedFlow(flow.frame.schema, flow.table, flow.event_time)


def _input_time(read: Input | None) -> str | None:
    """The event time of what a subtopology reads; None for that of its records."""
    match read:
        case TopicInput(source):
            return source.event_time
        case RowsInput():
            return read.event_time
    return None


def _label(function: Callable[[DataFrame], DataFrame]) -> str:
    if isinstance(function, Shortcut):
        return function.label
    name = getattr(function, "__name__", type(function).__name__)
    return f"transform({'lambda' if name == '<lambda>' else name})"


def _times(schema: StructType) -> set[str]:
    from pyspark.sql.types import TimestampType

    return {each.name for each in schema.fields if isinstance(each.dataType, TimestampType)}


def _with(schema: StructType, own: list[StructField]) -> StructType:
    from pyspark.sql.types import StructType

    return StructType([*schema.fields, *own])


def _readable(name: str) -> str:
    return "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in name)
