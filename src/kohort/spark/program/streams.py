"""What a user writes a program with: streams, tables and grouped streams.

These classes only record what was written; `compiler` makes a program of it. Mistakes that show without Spark are
raised at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from kohort.spark.errors import ProgramError
from kohort.spark.internals import column_text
from kohort.spark.program.aggregated_columns import check_columns
from kohort.spark.program.aggregates import Aggregation
from kohort.spark.program.column_checks import column_names
from kohort.spark.program.emission import AtMostEvery, Emit
from kohort.spark.program.function_definitions import FunctionDef, Timers, function_def
from kohort.spark.program.join_arguments import Side, added_columns, check_matched, matched_columns
from kohort.spark.program.known_columns import check_name as check_column
from kohort.spark.program.known_columns import check_text, declared
from kohort.spark.program.missing_methods import Advised, of_a_dataframe
from kohort.spark.program.operations import Dedupe, Latest, Top
from kohort.spark.program.registries import output_registry, used_registry
from kohort.spark.program.settings import check_name
from kohort.spark.program.shortcuts import Expression, Shortcut, Shortcuts, check_expression
from kohort.spark.program.sliding_windows import SlidingSpec
from kohort.spark.program.sources import Schema, SourceDef, TableDef, known_format
from kohort.spark.program.state_definitions import StateDef
from kohort.spark.program.tables import (
    ChangesDef,
    GroupsDef,
    TableShortcuts,
    TableTransformDef,
    ToStreamDef,
    ToTableDef,
)
from kohort.spark.program.windows import FOREVER, Duration, SessionSpec, WindowSpec, duration_ms, kept_ms
from kohort.spark.program.written_at import Written
from kohort.spark.program.wrong_turns import OF_GROUPS, OF_STREAMS, instead_of

if TYPE_CHECKING:
    from typing import Self

    from pyspark.sql import Column, DataFrame

    from kohort.schema_registry.registry import SchemaRegistry

__all__ = [
    "AggregateDef", "Aggregated", "DerivedTable", "End", "ForEachBatchDef", "FunctionOutputDef", "GlobalTable", "Graph",
    "GroupedStream", "JoinDef", "Origin", "OutputDef", "PeekDef", "ProcessDef", "RepartitionDef", "SinkDef",
    "StepDef", "Stream", "StreamJoinDef", "Table", "TableJoinDef", "TableValue", "TransformDef", "UnionDef",
    "VersionsDef",
]  # fmt: skip

_MOST_RANKS: Final = 100_000


# Definitions -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class TransformDef(Written):
    """A function of the user's."""

    function: Callable[[DataFrame], DataFrame]


@dataclass(eq=False)
class PeekDef(Written):
    """A function of the user's that sees rows go by."""

    function: Callable[[Any], object]


@dataclass(eq=False)
class JoinDef(Written):
    """A join with a table.

    Attributes:
        on: the table's key columns by the stream's; None where both are called alike.
        columns: what the table's columns are called that are added; None: all but the key's, as they are.
        prefix: goes before the names of those that are added.
        name: of the topic that rows go through, if they don't lie where the table's do; None: follows from the sources.
    """

    table: TableDef
    on: dict[str, str] | None
    how: str
    columns: dict[str, str] | None = None
    prefix: str = ""
    name: str | None = None


@dataclass(eq=False)
class StreamJoinDef(Written):
    """A join with another stream. `on`: the other's columns, by those of the stream; lengths in ms. `repartition`:
    whether both go through a topic.
    """

    other: Stream
    on: dict[str, str]
    how: str
    before_ms: int
    after_ms: int
    grace_ms: int
    name: str | None
    repartition: bool = True


@dataclass(frozen=True)
class VersionsDef:
    """How long (ms) versions of a table are kept, and how long rows wait for those that come late."""

    history_ms: int
    grace_ms: int


@dataclass(eq=False)
class TableJoinDef(Written):
    """A join of a stream, or a table, with a table that goes from step to step.

    Attributes:
        other: the table's upserts.
        on: its key columns by the other side's; None: see `kohort.spark.program.table_joins`.
        columns, prefix: as of `JoinDef`.
        name: of the join; None for one that follows from the sources.
        versions: for a stream that is joined as of its rows' times.
    """

    other: Stream
    on: dict[str, str] | None
    how: str
    columns: dict[str, str] | None
    prefix: str
    name: str | None
    versions: VersionsDef | None = None


@dataclass(eq=False)
class ProcessDef(Written):
    """A step that keeps state for each group.

    Attributes:
        name: of the processor; None for one that follows from the source and the operation.
    """

    grouped: GroupedStream
    name: str | None
    operation: FunctionDef | Dedupe | Latest | Top


@dataclass(eq=False)
class FunctionOutputDef(Written):
    """One of several outputs of a function, by its name."""

    name: str


@dataclass(eq=False)
class RepartitionDef(Written):
    """A stream that goes through a repartition topic, by other columns."""

    parent: Stream
    columns: tuple[str, ...]
    name: str | None
    partitions: int


@dataclass(eq=False)
class UnionDef(Written):
    """Rows of several streams.

    Attributes:
        allow_missing: whether columns that some don't have are null there.
        what: the method that made it.
    """

    streams: tuple[Stream, ...]
    allow_missing: bool
    what: str = "union"


@dataclass(eq=False)
class OutputDef:
    """A topic that is written."""

    topic: str
    key: tuple[str, ...] | None
    format: str
    avro_schema: str | None = None
    headers: str | None = None
    topic_column: str | None = None
    tombstone: str | Column | None = None
    registry: SchemaRegistry | None = None
    subject: str | None = None
    auto_register: bool = True
    delimiter: str = ","
    key_format: str | None = None
    key_schema: str | None = None
    key_subject: str | None = None
    key_registry: SchemaRegistry | None = None


def output_of(
    topic: str,
    key: str | Sequence[str] | None,
    format: str,  # noqa: A002
    schema: str | None,
    column: str | None = None,
) -> OutputDef:
    """A topic that is written, or the topics that a column names.

    Raises:
        ProgramError: arguments that can't be.
    """
    where = _to(topic, column)
    known_format(where, format)
    if schema is not None and format in ("json", "csv", "string", "raw"):
        raise ProgramError(f'{where}: a schema is for format="avro"; {format} follows from the columns')
    if column is None:
        check_name("to", topic)
    columns = None if key is None else column_names("key", key)
    return OutputDef(topic, columns, format, schema, topic_column=column)


def _to(topic: str | None, column: str | None) -> str:
    return f"to({topic!r})" if column is None else f"to(column={column!r})"


@dataclass(eq=False)
class SinkDef(Written):
    """A stream's rows go to a topic."""

    stream: Stream
    output: OutputDef


@dataclass(eq=False)
class AggregateDef(Written):
    """A stream is aggregated, or a table, whose rows leave, too (`signed`).

    Attributes:
        streamed: whether the program goes on with its groups.
        as_table: whether it does so as a table.
    """

    grouped: GroupedStream
    name: str
    emit: Emit
    aggregations: dict[str, Aggregation]
    function: Callable[[Any, Any], Any] | None = None
    state: Schema | None = None
    outputs: list[OutputDef] = field(default_factory=list)
    streamed: bool = False
    signed: bool = False
    as_table: bool = False


@dataclass(eq=False)
class ForEachBatchDef(Written):
    """A stream's rows go to a function."""

    stream: Stream
    function: Callable[[DataFrame, str], object]


Origin = SourceDef | TableDef | RepartitionDef | AggregateDef | UnionDef
StepDef = (
    TransformDef | PeekDef | JoinDef | StreamJoinDef | TableJoinDef | ProcessDef | FunctionOutputDef
    | TableTransformDef | ToTableDef | ToStreamDef | ChangesDef | GroupsDef
)  # fmt: skip
End = SinkDef | ForEachBatchDef | AggregateDef


@dataclass(eq=False)
class Graph:
    """All definitions, in the order in which they were written.

    Attributes:
        processed: streams whose last step keeps state: that is done whether or not anything becomes of their rows.
    """

    sources: list[SourceDef | TableDef] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    processed: list[Stream] = field(default_factory=list)
    registry: SchemaRegistry | None = None


# What is written -----------------------------------------------------------------------------------------------------


class TableValue(TableShortcuts["DerivedTable"]):
    """A table as a value: one row for each key, which is set, changed and taken out."""

    instead = "a table has where, select, with_columns and to; .as_stream() gives its rows as a stream, with transform"

    @abstractmethod
    def _upserts(self) -> Stream:
        """Its upserts: a stream that only tables' steps follow."""

    def to(
        self,
        topic: str,
        *,
        format: str = "json",  # noqa: A002
        schema: str | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        auto_register: bool = True,
        delimiter: str = ",",
    ) -> Self:
        """Write the table to a topic, under its key, with tombstones for rows that are deleted; and go on with it.

        The key is the text of one column, or a JSON object of several. So compaction keeps what the table has, and
        `app.table(topic, key=…)` reads it. A tombstone may come for a key that was never there.

        Args:
            topic: it must exist.
            format, schema, schema_registry, subject, auto_register, delimiter: as of `Stream.to`.

        Raises:
            ProgramError: arguments that can't be.
        """
        self._upserts().to(
            topic, format=format, schema=schema, schema_registry=schema_registry, subject=subject,
            auto_register=auto_register, delimiter=delimiter,
        )  # fmt: skip
        return self

    def as_stream(self, *, deleted: str | None = None) -> Stream:
        """The table's rows as a stream: each each time that it is set.

        Args:
            deleted: the column, BOOLEAN, that says of which rows the key has gone: these have the key's columns alone.
                Without, they are left out.

        Raises:
            ProgramError: it is no column's name.
        """
        if deleted is not None:
            column_names("as_stream: deleted", deleted)
        return self._upserts()._with(ToStreamDef(deleted))

    def changes(self, *, name: str | None = None) -> Stream:
        """The table's changes as a stream: rows with its key, `change`, `before` and `after`.

            customers.changes().where("change = 'update' AND before.city <> after.city").to("moved")

        `change` is "insert", "update" or "delete"; `before` and `after` are STRUCTs of the columns beside the key, null
        where there is no such row. What sets a row to what it is already is no change. The last row of each key is kept
        for that, as long as the table has it.

        Args:
            name: of the store; by default `{topic}-changes-{key}`.

        Raises:
            ProgramError: the name can't be.
        """
        if name is not None:
            check_name("changes(name)", name)
        stream = self._upserts()._with(ChangesDef(name, pairs=True))
        stream._graph.processed.append(stream)
        return stream

    def group_by(self, *columns: str) -> GroupedTable:
        """Group the table's rows by columns, to aggregate them: what changes leaves its group, and comes into another.

        Raises:
            ProgramError: there are none, or one isn't a name.
        """
        given: tuple[object, ...] = columns
        if windows := [each for each in given if isinstance(each, WindowSpec)]:
            raise ProgramError(
                f"group_by(window({windows[0].column!r}, …)): a table's rows are grouped by columns: make one of the "
                f"time, as .with_columns(hour=\"date_trunc('hour', {windows[0].column})\")"
            )
        return GroupedTable(self._upserts(), column_names("group_by", columns))

    def join(
        self,
        other: TableValue,
        on: str | Sequence[str] | Mapping[str, str] | None = None,
        how: Literal["inner", "left", "outer"] = "inner",
        *,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        prefix: str = "",
        name: str | None = None,
    ) -> DerivedTable:
        """The table of this one's rows with another one's columns added, which changes whenever a row of either does.

            people.join(addresses, how="left")
            orders.join(customers, on={"customer": "id"}, columns={"name": "customer_name"})

        Rows with the same key belong together, or with `on` those whose columns are the other one's key (a foreign
        key). Both sides go through a topic of the join's own, so they needn't be partitioned alike. Both are kept
        whole, in stores of the join. By a foreign key a change of the other table's row changes all rows that refer to
        it; those of one epoch show its last state.

        Args:
            on: this table's columns, by which the other one's key is found: `{"customer": "id"}`. Without, both keys,
                by name if these are the same, else in their order.
            how: "inner" has rows that are on both sides, "left" all of this table, "outer" those of either. By a
                foreign key "inner" and "left".
            columns: which of the other one's columns are added, as of `Stream.join`.
            prefix: goes before the names of the columns that are added.
            name: of the join, with which its topics and stores begin; by default both sources'.

        Raises:
            ProgramError: arguments that can't be.
        """
        if how not in ("inner", "left", "outer"):
            raise ProgramError(f'join(how={how!r}): tables are joined "inner", "left" or "outer"')
        step = _table_join(self._upserts(), other, on, how, columns, prefix, name)
        return DerivedTable(self._upserts()._with(step))

    def _derived(self, step: TableTransformDef) -> DerivedTable:
        return DerivedTable(self._upserts()._with(step))


class DerivedTable(TableValue):
    """A table that is made of another, of a stream, or of an aggregate. Nothing keeps it but what it is written to."""

    def __init__(self, upserts: Stream) -> None:
        self._stream = upserts

    def _upserts(self) -> Stream:
        return self._stream

    def __repr__(self) -> str:
        return f"DerivedTable({self._stream!r})"


class Table(TableValue):
    """The last record of each key of a topic. Made by `StreamsApp.table`.

    Joined to a stream, or used for queries alone, it is kept in a store by the tasks that read the same partitions.
    Used as a value it goes on to what is made of it, and isn't kept. One table is either of both.
    """

    def __init__(self, graph: Graph, definition: TableDef) -> None:
        self._graph = graph
        self._definition = definition

    def _upserts(self) -> Stream:
        return Stream(self._graph, self._definition)

    def _advice(self, name: str) -> str:
        return f"a table is joined to a stream, stream.join(table), and asked for its keys; {super()._advice(name)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._definition.name!r})"


class GlobalTable(Table):
    """The last record of each key of a topic, all of it on every instance. Any stream can be joined to it."""

    def _upserts(self) -> Stream:
        raise ProgramError(
            f"global_table {self._definition.name!r} is read by each instance for itself, outside of epochs, so "
            f"nothing can be made of it but joins of streams: read the topic by app.table"
        )


class Stream(Shortcuts):
    """Records of a topic as rows of a DataFrame: an epoch's at a time.

    Each method gives another stream and leaves this one as it is, so a stream can be used several times.
    """

    instead = (
        "it has transform, where, select, with_columns, branch, peek, join, join_as_of, join_stream, union, "
        "repartition, dedupe, group_by, to and for_each_batch"
    )

    def __init__(self, graph: Graph, origin: Origin, steps: tuple[StepDef, ...] = ()) -> None:
        self._graph = graph
        self._origin = origin
        self._steps = steps

    def transform(self, function: Callable[[DataFrame], DataFrame]) -> Stream:
        """The stream that a function makes of this one: select, where, withColumn, explode, UDFs, …

        The function is called now and then to build a plan, over a DataFrame of no rows or of an epoch's. It must
        give the same plan each time (a time or a list that it asks for in Python may stay for all epochs), and treat
        each row by itself: what goes over several rows (groupBy, distinct,
        orderBy with limit, window functions) would go over those that happen to be in an epoch, and is refused. Keep
        the columns that the stream is keyed by as they are, where you want to group by these or join without a
        repartition topic between; and `_partition`, where rows go through mapInPandas or mapInArrow.

        Raises:
            ProgramError: no function is given.
        """
        if not callable(function):
            raise ProgramError(f"transform takes a function that makes a DataFrame of a DataFrame, not {function!r}")
        return self._with(TransformDef(function))

    def peek(self, function: Callable[[Any], object]) -> Stream:
        """The same stream, whose rows a function sees as they go by, for logs and while a program is being written.

            flights.peek(print)

        Args:
            function: gets a `pyarrow.Table` of some rows of a task, as often as it takes to see all. It runs on
                executors, so it must be one that can be pickled, and what it prints comes there. What it returns is
                dropped. Rows of an epoch that is run again, or that several branches need, come several times.

        Raises:
            ProgramError: no function is given.
        """
        if not callable(function):
            raise ProgramError(f"peek takes a function over a pyarrow.Table, not {function!r}")
        return self._with(PeekDef(function))

    def join(
        self,
        table: TableValue,
        on: str | Sequence[str] | Mapping[str, str] | None = None,
        how: Literal["inner", "left"] = "inner",
        *,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        prefix: str = "",
        name: str | None = None,
    ) -> Stream:
        """Each row with the table's columns added, as the table is when the row is processed.

        Of a table a row sees all records that were there when its epoch began. A global table is loaded once before
        any row is joined; afterwards it is followed by itself, and a row sees what the instance has of it by then. A
        change of the table changes no rows that were joined before.

        A table that is made of something (filtered, joined, of a stream) goes through one topic with the stream,
        `{app}-{name}-repartition`, and in its order a row meets what came before it; so neither has to be keyed or
        partitioned in some way. The table's times don't count there, only the stream's.

        Args:
            table: a table; or a global table; or one that is made of something. A stream that isn't keyed by a table's
                key goes through a topic first, `{app}-{name}-repartition`; one that is needs as many partitions as the
                table. A table can be joined to the streams of one topic, the others to all.
            on: the table's key columns, which the stream must have too; by default these. Where the stream calls them
                otherwise: its column, and the table's, as {"auction": "id"}.
            how: what becomes of rows without a match: "inner" drops them, "left" keeps them, with nulls.
            columns: which of the table's columns are added, as ["name", "city"], or with what they are called then, as
                {"name": "seller_name"}. By default all but those of its key.
            prefix: goes before the names of the columns that are added, so that they differ from the stream's.
            name: of the join, with which its topic's and its store's names begin, if it has such; by default both
                sources'.

        Raises:
            ProgramError: arguments that can't be.
        """
        if isinstance(table, Stream):
            raise ProgramError(
                'streams are joined by time, too: stream.join_stream(other, on=…, within="10 minutes", grace=…). Or '
                "make one of them a table (app.table), which has the last record of each key"
            )
        if not isinstance(table, TableValue):
            raise ProgramError(f"join takes a table (app.table, app.global_table), not {table!r}{instead_of(table)}")
        if how not in ("inner", "left"):
            raise ProgramError(f'join(how={how!r}): a stream is joined to a table "inner" or "left"')
        if not isinstance(table, Table):
            return self._with(_table_join(self, table, on, how, columns, prefix, name))
        if name is not None:
            check_name("join(name)", name)
        matched = matched_columns(on)
        check_matched("join(on)", matched, self._side(), _table_side(table._definition))
        return self._with(JoinDef(table._definition, matched, how, *added_columns(columns, prefix), name))

    def join_as_of(
        self,
        table: TableValue,
        on: str | Sequence[str] | Mapping[str, str] | None = None,
        how: Literal["inner", "left"] = "inner",
        *,
        history: Duration,
        grace: Duration = "0 seconds",
        columns: Sequence[str] | Mapping[str, str] | None = None,
        prefix: str = "",
        name: str | None = None,
    ) -> Stream:
        """Each row with the table's columns added, as the table was at the row's event time.

            orders.join_as_of(rates, "currency", history="1 day", grace="1 minute").to("orders-in-euros", key="id")

        A row of the table is valid from its event time on, until the next one's of its key. For a table of `app.table`
        that is the time of its record; `stream.to_table(…)` has the stream's. What comes late is put where it belongs;
        rows that were joined before stay as they are.

        Both go through one topic, `{app}-{name}-repartition`, and in its order a row meets what came before it; so
        neither has to be keyed or partitioned in some way. The table's times don't count for windows that follow.

        Args:
            table: any but a global one, an aggregate's without windows, or a join of tables. Groups of windows are
                valid from the window's start on.
            on, columns, prefix, name: as of `join` with a table that is made of something.
            how: what becomes of rows for which there was nothing: "inner" drops them, "left" keeps them, with nulls.
            history: how far versions go back from what both sides have reached, the lesser of their greatest event
                times, task by task. A row of the table that is older is left out and counted as late. A row of the
                stream that is older meets the last version of its key if that was valid by then; else there is nothing
                for it, and it is counted, too.
            grace: how long rows wait for versions that come late, by the stream's own times: until a row has come
                whose time is so much greater. At most the history. A window that follows needs as much grace.

        Raises:
            ProgramError: arguments that can't be.
        """
        if not isinstance(table, TableValue):
            hint = "make a table of it, .to_table(…)" if isinstance(table, Stream) else "as app.table(…)"
            raise ProgramError(f"join_as_of takes a table, not {table!r}: {hint}{instead_of(table)}")
        if isinstance(table, GlobalTable):
            raise ProgramError(
                f"join_as_of takes a table of app.table, or one that is made of something: every instance has all of "
                f"{table!r} as it is now, and no versions of it"
            )
        if how not in ("inner", "left"):
            raise ProgramError(f'join_as_of(how={how!r}): a stream is joined to a table "inner" or "left"')
        versions = VersionsDef(duration_ms("history", history), duration_ms("grace", grace, least=0))
        if versions.grace_ms > versions.history_ms:
            raise ProgramError(
                f"join_as_of(history={history!r}, grace={grace!r}): versions would be gone before the rows that wait "
                f"for them are joined. Say a history that is at least the grace"
            )
        return self._with(_table_join(self, table, on, how, columns, prefix, name, versions))

    def join_stream(
        self,
        other: Stream,
        on: str | Sequence[str] | Mapping[str, str],
        *,
        within: Duration | None = None,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration,
        how: Literal["inner", "left", "outer"] = "inner",
        name: str | None = None,
        repartition: bool = True,
    ) -> Stream:
        """Each row with each row of another stream, or of this one, that has the same key and a time near to its own.

            orders.join_stream(payments, on="order_id", within="1 hour", grace="10 minutes", how="left").to("paid")

        A pair is given once, when the second of its rows is read. The result has the columns that are joined on, then
        this stream's others, then the other's; its event time is the later one of both. Both sides go through a
        topic, `{app}-{name}-repartition`, so they needn't be keyed or partitioned alike; with `repartition=False`
        none is between, and both topics are keyed by columns that are joined on and have equally many partitions.

        How far time has come is what both streams have reached, the lesser of their largest event times. With "left"
        and "outer" a row without a match is given, with nulls, when time has passed it by `after` (a right one by
        `before`) and the grace; if one stream stops, that is never.

        Args:
            on: columns that both have, or this stream's by the other's: `{"seller": "id"}`.
            within: how far apart the times of a pair may be, whichever is first.
            before, after: instead of `within`: how much earlier, and later, the other stream's row may be.
            grace: how long, after nothing can match it any more, a row is still taken that comes late, and those are
                kept that it may match. What comes later is dropped and counted.
            how: "inner" gives pairs; "left" rows of this stream without a match too, "outer" those of both.
            name: of the join, with which the names of its stores begin; by default both topics'.
            repartition: False reads both sides where they lie. `StreamsApp.describe` says where that can be.

        Raises:
            ProgramError: arguments that can't be; later, when the program is compiled, sides that can't be read where
                they lie.
        """
        if not isinstance(other, Stream):
            raise ProgramError(
                f"join_stream takes a stream, not {other!r}{instead_of(other) or '; tables are joined by .join(table)'}"
            )
        if how not in ("inner", "left", "outer"):
            raise ProgramError(f'join_stream(how={how!r}): "inner", "left" or "outer"')
        if (within is None) == (before is None and after is None):
            raise ProgramError(
                'join_stream needs how far apart times may be: within="10 minutes", or before=… and after=…; without, '
                "all rows would have to be kept for ever"
            )
        lengths = {"before": before, "after": after} if within is None else {"before": within, "after": within}
        before_ms, after_ms = (0 if each is None else duration_ms(key, each, least=0) for key, each in lengths.items())
        columns = dict(on) if isinstance(on, Mapping) else {each: each for each in column_names("join_stream: on", on)}
        column_names("join_stream: on", tuple(columns))
        column_names("join_stream: on", tuple(columns.values()))
        check_matched("join_stream: on", columns, self._side(), other._side())
        if name is not None:
            check_name("join_stream(name)", name)
        return self._with(
            StreamJoinDef(
                other, columns, how, before_ms, after_ms, duration_ms("grace", grace, least=0), name, repartition
            )
        )

    def union(self, *others: Stream, allow_missing_columns: bool = False) -> Stream:
        """The rows of this stream and of others, with columns by name: `orders_eu.union(orders_us).to("orders")`.

        What comes then is done with each of them, as long as it goes row by row. Where state begins (a function,
        repetitions, last rows, ranks, joins of streams, `repartition`) all go through one topic; an aggregate's rows
        meet in its own. Rows of one key keep their order within each stream, and have none between them.

        Args:
            others: streams of the same application.
            allow_missing_columns: whether columns that some of them don't have are null there.

        Raises:
            ProgramError: there are none, or something else than streams.
        """
        if not others:
            raise ProgramError("union takes other streams, as orders_eu.union(orders_us)")
        for each in others:
            if not isinstance(each, Stream):
                raise ProgramError(f"union takes streams, not {each!r}{instead_of(each)}")
            if each._graph is not self._graph:
                raise ProgramError("union: a stream of another StreamsApp can't be read here")
        return Stream(self._graph, UnionDef((self, *others), bool(allow_missing_columns)))

    def to_table(self, *key: str, deleted: Expression | None = None, name: str | None = None) -> DerivedTable:
        """The table of the last row of each key.

            orders.to_table("order_id", deleted="status = 'cancelled'").to("orders-now")

        The last is the one that comes last; by a column: `group_by("id").latest_by("at").to_table("id")`. Rows whose
        key has a null are left out.

        Args:
            key: the columns that are the key.
            deleted: a condition, as text or Column: rows of which it is true take their key out.
            name: of the topic that rows go through, `{app}-{name}-repartition`, if they aren't keyed by these columns;
                by default the source's and the columns'.

        Raises:
            ProgramError: arguments that can't be.
        """
        columns = column_names("to_table", key)
        if deleted is not None:
            check_expression("to_table: deleted", deleted)
        if name is not None:
            check_name("to_table(name)", name)
        return DerivedTable(self._with(ToTableDef(columns, deleted, name)))

    def repartition(self, *columns: str, name: str | None = None, partitions: int = 0) -> Stream:
        """The same rows, spread over tasks by these columns: through a topic of its own, `{app}-{name}-repartition`.

        Args:
            columns: what to spread by.
            name: of the topic; by default the source's and the columns'.
            partitions: of the topic; 0 leaves them to the group's coordinator, which takes those of the tables that are
                joined, or else those of the source.

        Raises:
            ProgramError: arguments that can't be.
        """
        if not columns:
            raise ProgramError('repartition needs the columns to spread by, as .repartition("carrier")')
        if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 0:
            raise ProgramError(f"repartition(partitions={partitions!r}): a whole number, or 0 to leave it open")
        if name is not None:
            check_name("repartition(name)", name)
        names = column_names("repartition", columns)
        self._check_names("repartition", names)
        return Stream(self._graph, RepartitionDef(self, names, name, partitions))

    def group_by(self, *by: str | WindowSpec | SessionSpec) -> GroupedStream:
        """Group by columns, and by a window of time if there is one: `group_by("origin", window("at", "1 hour"))`, or
        `group_by("user", session("at", "30 minutes"))`.

        Raises:
            ProgramError: something that is neither, no columns, or several windows.
        """
        windows = [each for each in by if isinstance(each, (WindowSpec, SessionSpec))]
        names = [each for each in by if not isinstance(each, (WindowSpec, SessionSpec))]
        if strange := [each for each in names if not isinstance(each, str)]:
            raise ProgramError(_not_groupable(strange[0]))
        if len(windows) > 1:
            raise ProgramError("group_by takes one window")
        if not names:
            raise ProgramError(
                "group_by needs a column: all rows in one group would be one task's. "
                'For totals add a constant in a transform, as .withColumn("all", lit(1)), and group by it'
            )
        columns = column_names("group_by", names)
        self._check_names("group_by", columns)
        for each in windows:
            what = "session" if isinstance(each, SessionSpec) else "window"
            self._check_names(f"group_by: {what} over", [each.column])
            if isinstance(each, SessionSpec) and each.gap_column is not None:
                self._check_names(f"group_by: {what} with gap_column", [each.gap_column])
        return GroupedStream(self, columns, windows[0] if windows else None)

    def dedupe(self, *columns: str, within: Duration | None = None, name: str | None = None) -> Stream:
        """The stream without rows that are there already, by these columns: the first row of each key passes.

            orders.dedupe("order_id", within="10 minutes")

        Args:
            columns: the key. Nulls are equal.
            within: how far apart in event time rows of a key are at most that count as the same: a later one passes
                again, and is what those after it are compared with. A row that is so far, or further, behind stream
                time is late: it is left out and counted. Without, a key passes once, and is kept for ever, of which a
                start warns; "forever" says that it shall.
            name: of the store; by default `{topic}-dedupe-{columns}`.

        Raises:
            ProgramError: arguments that can't be.
        """
        by = column_names("dedupe", columns)
        self._check_names("dedupe", by)
        return GroupedStream(self, by, None)._kept(Dedupe(kept_ms("within", within), within == FOREVER), name)

    def to(
        self,
        topic: str | None = None,
        *,
        column: str | None = None,
        key: str | Sequence[str] | None = None,
        format: str = "json",  # noqa: A002
        schema: str | None = None,
        headers: str | None = None,
        tombstone: str | Column | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        auto_register: bool = True,
        delimiter: str = ",",
        key_format: str | None = None,
        key_schema: str | None = None,
        key_subject: str | None = None,
    ) -> Stream:
        """Write the rows to a topic, and go on with this stream.

        Args:
            topic: it must exist.
            column: instead of a topic, the column that names each row's, which is left out of the value. Rows to a
                topic that isn't there, and to null, go where the stream's `on_error` says: by default the instance
                stops.
            key: the columns that make the record's key: of one its text, of several a JSON object. None: no key.
            format: of the value. "string" and "raw" take the column `value`, or the only one beside the key, and the
                others all columns. "json_schema" and "protobuf" need a registry.
            schema: for "avro" and formats of a registry: the schema, instead of the one that follows from the columns.
            schema_registry: where the schema is registered, whose id each value begins with; by default the
                application's. False for plain Avro beside it.
            subject: the schema's; by default `{topic}-value`.
            auto_register: whether the schema is registered when the application starts. Otherwise it has to be there
                already; without `schema` it is the subject's newest.
            delimiter: between the fields of CSV.
            key_format: of the key, instead of the above: any but CSV. Of "json" it is an object, of "avro" one column's
                own type, as serializers of a number write it, and of several columns a record. A row whose only key
                column is null has no key. Of formats with a registry, keys have the id of their schema.
            key_schema: for Avro keys: the schema, as JSON, instead of the one that follows from the columns.
            key_subject: the keys' schema's; by default `{topic}-key`.
            headers: the column that makes the record's headers, which is left out of the value: a MAP of STRING to
                BINARY or STRING, or an ARRAY of STRUCTs with `key` and `value` of these types, as `_headers` is.
            tombstone: a condition, as text or Column, under which the record has no value: it deletes its key's then.

        Raises:
            ProgramError: arguments that can't be.
        """
        if (topic is None) == (column is None):
            raise ProgramError('to takes a topic, to("late"), or the column that names it, to(column="topic")')
        if topic is not None and not isinstance(topic, str):
            raise ProgramError(f'to({topic!r}): a topic is a text; where a column names it, say to(column="its name")')
        output = output_of(topic or "", key, format, schema, column)
        self._check_names(f"{_to(topic, column)}: key", output.key or ())
        if tombstone is not None and key is None:
            raise ProgramError(f"{_to(topic, column)}: a tombstone deletes its key's value, so say key=, too")
        where = _to(topic, column)
        registry = output_registry(
            where, format, schema_registry, self._graph.registry, subject, auto_register=auto_register
        )
        if registry is not None and column is not None and subject is None:
            raise ProgramError(f"{where}: rows go to several topics, so say whose schema it is: subject=…")
        if key_format is None and (key_schema is not None or key_subject is not None):
            raise ProgramError(f'{where}: say in which format the key is, as key_format="avro"')
        keys = None
        if key_format is not None:
            known_format(f"{where}: key_format", key_format)
            if key is None or key_format == "csv":
                raise ProgramError(f"{where}: key_format={key_format!r}: say key=, and any format but csv")
            others = None if schema_registry is False else schema_registry or self._graph.registry
            keys = used_registry(f"{where}: key_format", key_format, None, others)
            if keys is not None and column is not None and key_subject is None:
                raise ProgramError(f"{where}: rows go to several topics, so say whose schema it is: key_subject=…")
        output = replace(
            output, headers=headers, tombstone=tombstone, registry=registry, subject=subject,
            auto_register=auto_register, delimiter=delimiter, key_format=key_format, key_schema=key_schema,
            key_subject=key_subject, key_registry=keys,
        )  # fmt: skip
        self._graph.ends.append(SinkDef(self, output))
        return self

    def for_each_batch(self, function: Callable[[DataFrame, str], object]) -> Stream:
        """Give the rows to a function, a batch at a time, and go on with this stream.

            def write(rows: DataFrame, batch_id: str) -> None: ...

        A batch has the rows of one task from one epoch. The function is called in the driver before the epoch is
        committed, and again if the epoch fails or its instance dies in between: then with the same id, on whichever
        instance, and with rows of the same records. So a sink that keeps the id with the rows, in one transaction, and
        passes over an id that it has, takes each record once. See "Sinks of one's own" in docs/guarantees.md.

        Raises:
            ProgramError: no function is given.
        """
        if not callable(function):
            raise ProgramError(f"for_each_batch takes a function of a DataFrame and an id, not {function!r}")
        self._graph.ends.append(ForEachBatchDef(self, function))
        return self

    if not TYPE_CHECKING:
        __iter__ = None  # or by __getitem__ it would be a sequence

        def __getitem__(self, name: object) -> None:
            raise TypeError(f"a stream has no [{name!r}]: {_naming(str(name))}")

    def _source(self) -> str:
        """What it is made of, as messages begin."""
        origin = self._origin
        while isinstance(origin, RepartitionDef):
            origin = origin.parent._origin
        if isinstance(origin, TableDef):
            return _table_side(origin).where
        return f"stream {origin.topic!r}" if isinstance(origin, SourceDef) else repr(self)

    def _known(self, *, left_out: bool = False) -> tuple[str, ...] | None:
        """The columns that the program's text shows; None if it doesn't show all.

        Args:
            left_out: with those that a `select` has left out: Spark's filters after it find them all the same.
        """
        match self._origin:
            case SourceDef() as source:
                known = declared(source)
            case TableDef() as table:
                known = declared(table.source)
            case RepartitionDef(parent=parent):
                known = parent._known()
            case _:
                known = None
        for step in self._steps:
            if isinstance(step, TransformDef) and isinstance(step.function, Shortcut):
                before, known = known, None if known is None else step.function.columns(known)
                if left_out and before is not None and known is not None:
                    known = tuple(dict.fromkeys((*before, *known)))
            elif not isinstance(step, PeekDef) and not (
                isinstance(step, ProcessDef) and isinstance(step.operation, Dedupe)
            ):
                return None
        return known

    def _check(self, what: str, given: Iterable[Expression], more: Iterable[str] = ()) -> None:
        if (known := self._known(left_out=what in ("where", "branch"))) is not None:
            columns = tuple(dict.fromkeys((*known, *(each for each in more if each))))
            for each in given:
                if isinstance(each, str):
                    check_text(what, each, columns, self._source())

    def _check_names(self, what: str, names: Iterable[str]) -> None:
        if (known := self._known()) is not None:
            for each in names:
                check_column(f"{what} {each!r}", each, known, self._source())

    def _side(self) -> Side:
        return Side(self._source(), self._known())

    def _advice(self, name: str) -> str:
        if name in (self._known() or ()):
            return _naming(name)
        if name in ("agg", "aggregate", "aggregate_arrow"):
            return "group it first, as .group_by(…).aggregate(…)"
        if name.lower() == "groupby":
            return "say .group_by(…).aggregate(…)"
        if name in ("filter", "withColumn", "withColumns"):
            return f"say .{'where' if name == 'filter' else 'with_columns'}(…)"
        if name in OF_STREAMS:
            return OF_STREAMS[name]
        if of_a_dataframe(name):
            return f"DataFrames have it, so say .transform(lambda df: df.{name}(…))"
        return super()._advice(name)

    def _with(self, step: StepDef) -> Stream:
        return Stream(self._graph, self._origin, (*self._steps, step))

    def __repr__(self) -> str:
        origin = self._origin
        match origin:
            case SourceDef(topic=topic):
                what = topic
            case RepartitionDef(columns=columns):
                what = f"repartitioned by {', '.join(columns)}"
            case AggregateDef(name=name):
                what = f"aggregate {name}"
            case UnionDef(streams=streams):
                what = f"union of {len(streams)}"
            case TableDef(name=name):
                what = f"table {name}"
        return f"Stream({what}{', …' if self._steps else ''})"


class GroupedTable(Advised):
    """A table's rows grouped by columns. Made by `group_by` of a table."""

    instead = "a table that is grouped is aggregated, .aggregate(…) with aggregates of kohort.spark"

    def __init__(self, upserts: Stream, columns: tuple[str, ...]) -> None:
        self._stream = upserts
        self._columns = columns

    def aggregate(self, name: str, /, emit: Emit = "update", **aggregations: Aggregation) -> Aggregated:
        """Aggregate the rows that the table has: a row that changes or goes is subtracted where it was.

            items.group_by("kind").aggregate("kinds", n=count(), total=sum_("price")).to("kinds")

        A group without rows is deleted: outputs get a tombstone. There are count, count_if, count_distinct, sum_, avg,
        variance, stddev, min_, max_ and collect. Of `min_`, `max_`, `collect` and `count_distinct` all different values
        of a group are kept, without a limit. DOUBLEs are added and subtracted as they are, so what has left may have
        changed the last digits, and NaN and infinities stay; decimals and whole numbers are exact.

        Args:
            name: of the store, as of a stream's aggregate. The table's last rows are kept in `{name}-rows`.
            emit: "update": every epoch writes the groups it changed. `at_most_every("10 seconds")`: a group is written
                once in a time, with what came and left until then; one without rows as a tombstone. Never "close".
            aggregations: by the name of the column that they make.

        Raises:
            ProgramError: arguments that can't be.
        """
        check_name("aggregate", name)
        if emit == "close":
            raise ProgramError(
                f'aggregate({name!r}, emit="close"): a table\'s rows change at any time, so its groups are never '
                f'complete: say "update" or at_most_every("10 seconds")'
            )
        rows = self._stream._with(ChangesDef(f"{name}-rows", pairs=False))
        aggregated = GroupedStream(rows, self._columns, None).aggregate(name, emit, **aggregations)
        aggregated._definition.signed = True
        return aggregated


class GroupedStream(Advised):
    """A stream grouped by columns and perhaps a window. Made by `Stream.group_by`."""

    instead = (
        "what is grouped is aggregated, .aggregate(…) or .aggregate_arrow(…) with aggregates of kohort.spark; "
        "transform and join before .group_by"
    )

    def __init__(self, stream: Stream, columns: tuple[str, ...], window: WindowSpec | SessionSpec | None) -> None:
        self._stream = stream
        self._columns = columns
        self._window = window

    def _advice(self, name: str) -> str:
        return OF_GROUPS.get(name) or super()._advice(name)

    def aggregate(self, name: str, /, emit: Emit = "update", **aggregations: Aggregation) -> Aggregated:
        """Keep aggregates of each group in a store.

            by_hour.aggregate("delays", n=count(), mean=avg("dep_delay"))

        Args:
            name: of the store, by which it can be asked; its changelog is `{app}-{name}-changelog`.
            emit: "update": every epoch writes the groups it changed. "close": a group is written once, when its window
                is closed, which needs a window with grace. `at_most_every("10 seconds")`: once in a time.
            aggregations: columns of the result. They are of kohort.spark, since Spark's own don't merge.

        Raises:
            ProgramError: arguments that can't be.
        """
        check_name("aggregate", name)
        if not aggregations:
            raise ProgramError(f"aggregate({name!r}) computes nothing: give it columns, as n=count()")
        for result, each in aggregations.items():
            if not isinstance(each, Aggregation):
                raise ProgramError(_not_mergeable(name, result, each))
            self._check_result(name, result, aggregations)
            if (known := self._stream._known()) is not None:
                check_columns(f"aggregate({name!r}, {result}=…)", each, known, self._stream._source())
        return self._add(AggregateDef(self, name, self._emit(name, emit), dict(aggregations)))

    def aggregate_arrow(
        self, name: str, /, function: Callable[[Any, Any], Any], *, state: Schema, emit: Emit = "update"
    ) -> Aggregated:
        """Keep a state of your own for each group, by a function over Arrow tables of many groups at once.

        The function is called as `function(rows, prior)`, once for each task of an epoch. `rows` has the stream's
        columns (with a window, its start as `window` before them), in the order of the task's partition unless a
        transform shuffles. `prior` has the group's columns and the state's, of those groups in `rows` that have a
        state. It gives a table of the group's columns and the state's, with one row for each group in `rows`.

            def smoothed(rows: pa.Table, prior: pa.Table) -> pa.Table:
                levels = dict(zip(prior["origin"].to_pylist(), prior["level"].to_pylist()))
                for origin, delay in zip(rows["origin"].to_pylist(), rows["dep_delay"].to_pylist()):
                    before = levels.get(origin, delay)
                    levels[origin] = before + 0.1 * (delay - before)
                return pa.table({"origin": list(levels), "level": list(levels.values())})

            delays.group_by("origin").aggregate_arrow("levels", smoothed, state="level DOUBLE")

        Args:
            name: of the store, as in `aggregate`.
            function: runs on executors, so it must be one that can be pickled.
            state: the state's columns, as DDL ("n BIGINT, total DOUBLE") or StructType. They are the output, too.
            emit: as in `aggregate`.

        Raises:
            ProgramError: arguments that can't be.
        """
        check_name("aggregate_arrow", name)
        if not callable(function):
            raise ProgramError(f"aggregate_arrow({name!r}) takes a function over (rows, prior), not {function!r}")
        if isinstance(self._window, SessionSpec):
            raise ProgramError(
                f"aggregate_arrow({name!r}): sessions become one, and a function over (rows, prior) can't say what "
                f"their states make together: say .aggregate(…), with aggregation(update=…, merge=…) of your own"
            )
        return self._add(AggregateDef(self, name, self._emit(name, emit), {}, function, state))

    @overload
    def process(
        self,
        name: str,
        /,
        function: Callable[[Any, Any], Any],
        *,
        output: Schema,
        states: Mapping[str, StateDef] | None = None,
        timers: Timers = False,
    ) -> Stream: ...

    @overload
    def process(
        self,
        name: str,
        /,
        function: Callable[[Any, Any], Any],
        *,
        outputs: Mapping[str, Schema],
        states: Mapping[str, StateDef] | None = None,
        timers: Timers = False,
    ) -> dict[str, Stream]: ...

    def process(
        self,
        name: str,
        /,
        function: Callable[[Any, Any], Any],
        *,
        output: Schema | None = None,
        outputs: Mapping[str, Schema] | None = None,
        states: Mapping[str, StateDef] | None = None,
        timers: Timers = False,
    ) -> Stream | dict[str, Stream]:
        """A stream of what a function of your own makes of the rows, with state that it keeps for each group.

        The function is called as `function(rows, state)`, once for each task of an epoch, with an Arrow table of all
        rows of many groups, in the order of the task's partition. It gives a table of the `output` columns, or None.

            def changed(rows: pa.Table, state) -> pa.Table:
                levels = {row["sensor"]: row["level"] for row in state["levels"].get().to_pylist()}
                changes = []
                for row in rows.select(["sensor", "level"]).to_pylist():
                    before = levels.get(row["sensor"])
                    changes.append({"sensor": row["sensor"], "before": before, "after": row["level"]})
                    levels[row["sensor"]] = row["level"]
                state["levels"].put(pa.table({"sensor": list(levels), "level": list(levels.values())}))
                return pa.Table.from_pylist(changes)

            readings.group_by("sensor").process(
                "changes", changed, output="sensor STRING, before INT, after INT",
                states={"levels": value_state("level INT")},
            ).to("changes")

        `state["a name"]` has `get`, `put`, `append`, `entries`, `delete`, `clear`, as its kind is; all take and give
        tables that begin with the group's columns. What is written is read from the next call on.
        `state.groups` are the groups in this call, `state.stream_time` how far the task is (ms since 1970).
        `state.timers` calls a group again when stream time has reached a time: `timers.set(table)` with the group's
        columns and `at`; those that are due are in `timers.due`, beside rows of the groups, if there are any.
        `state.clock_timers` does so when the clock has reached it: `state.now` (ms), the same for all rows of an epoch.

        Args:
            name: of the processor; its stores are `{name}-{state}`, their changelogs `{app}-{name}-{state}-changelog`.
            function: runs on executors, so it must be one that can be pickled. It may be called again with the same
                rows, when something fails, and must do the same then.
            output: the columns that it gives, as DDL or StructType. The stream's event time goes on if they have it.
            outputs: instead, of several streams that it gives: the columns of each, by its name. The function gives a
                dict of tables then, of which any may be left out, and this a dict of streams.
            states: what is kept: `value_state`, `list_state` or `map_state`, by name.
            timers: whether it sets timers: by event time (True or "event"), by the clock ("processing": an idle task is
                called, too, when their time has come), or by both: ("event", "processing").

        Raises:
            ProgramError: arguments that can't be.
        """
        check_name("process", name)
        if self._window is not None:
            raise ProgramError(
                f"process({name!r}): a function keeps state by columns, not by windows: leave window(…) out of "
                f"group_by, and keep times in the state"
            )
        definition = function_def(name, function, output, outputs, states, timers=timers)
        stream = self._stream._with(ProcessDef(self, name, definition))
        self._stream._graph.processed.append(stream)
        if outputs is None:
            return stream
        return {each: stream._with(FunctionOutputDef(each)) for each in definition.outputs}

    def latest_by(self, column: str, *, name: str | None = None) -> Stream:
        """A stream of the rows that are the last ones of their group so far, by a column.

            bids.group_by("bidder", "auction").latest_by("date_time").to("last-bids", key=("bidder", "auction"))

        Of rows with the same value the one that comes later is the last. Those with a null are left out and counted.

        Args:
            column: of numbers, texts, booleans, dates or timestamps.
            name: of the store; by default `{topic}-latest-{columns of the group}`.

        Raises:
            ProgramError: arguments that can't be.
        """
        return self._extreme(column, name, earliest=False)

    def earliest_by(self, column: str, *, name: str | None = None) -> Stream:
        """A stream of the rows that are the first ones of their group so far, by a column; else as `latest_by`.

        Of rows with the same value the one that comes earlier is the first.
        """
        return self._extreme(column, name, earliest=True)

    def top(
        self,
        n: int,
        by: str,
        *,
        descending: bool = True,
        ties: Literal["first", "all"] = "first",
        name: str | None = None,
    ) -> Stream:
        """The first rows of each group by a column, as a stream of ranks that change.

            bids.group_by("auction").top(10, by="price").to("best-bids", key=("auction", "rank"))

        Each epoch gives the ranks whose row has changed: the row with the column `rank`, from 1. Written by group and
        rank, that makes a table. With a window, each window has ranks of its own, and rows its start as `window`: they
        are forgotten when the window is closed (`grace`), or after its `retention`. Rows with a null are left out and
        counted.

        Args:
            n: how many ranks there are.
            by: a column of numbers, texts, booleans, dates or timestamps.
            descending: whether the greatest is first.
            ties: "first": of rows with the same value the one that came earlier ranks first, as of SQL's row_number, so
                there are never more than n. "all": they have the same rank, as of SQL's rank, and all are kept whose
                rank is n or less, however many. No two have the same `place`, a column beside `rank`. A place that has
                no row any more comes once with nulls for all but the group and the place, so that it can be deleted:
                `.to("best", key=("auction", "place"), tombstone="rank IS NULL")`.
            name: of the store; by default `{topic}-top-{columns of the group}`.

        Raises:
            ProgramError: arguments that can't be.
        """
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST_RANKS:
            raise ProgramError(f"top({n!r}): takes how many rows of each group to rank, from 1 to {_MOST_RANKS:,}")
        if not isinstance(by, str):
            raise ProgramError(f"top(by={by!r}): takes a column's name; compute the column in a transform")
        if isinstance(self._window, SlidingSpec):
            raise ProgramError("top: ranks are of tumbling and hopping windows, not of sliding ones: say window(…)")
        if isinstance(self._window, SessionSpec):
            raise ProgramError(
                f"top({n!r}): ranks are of windows, and sessions become one: say window(…), or aggregate the session "
                f"with max_ or collect"
            )
        if ties not in ("first", "all"):
            raise ProgramError(f'top(ties={ties!r}): "first" keeps {n} rows, "all" those, too, that tie with the last')
        return self._kept(Top(n, by, descending, self._window, ties == "all"), name)

    def _extreme(self, column: str, name: str | None, *, earliest: bool) -> Stream:
        operation = Latest(column, earliest)
        if not isinstance(column, str):
            raise ProgramError(
                f"{operation.what}({column!r}): takes a column's name; compute the column in a transform"
            )
        if self._window is not None:
            raise ProgramError(
                f"{operation.what}({column!r}) goes by columns, not by windows: leave window(…) out of group_by, or "
                f'say .top(1, by="{column}"), which has a first row for each window'
            )
        return self._kept(operation, name)

    def _kept(self, operation: Dedupe | Latest | Top, name: str | None) -> Stream:
        if name is not None:
            check_name(f"{operation.what}(name)", name)
        return self._stream._with(ProcessDef(self, name, operation))

    def _add(self, definition: AggregateDef) -> Aggregated:
        self._stream._graph.ends.append(definition)
        return Aggregated(definition)

    def _check_result(self, name: str, result: str, results: Iterable[str]) -> None:
        # Spark tells columns apart without their case.
        reserved = {"state": "the store keeps its own state under that name", "window": "that is the window's start"}
        if why := reserved.get(result.lower()):
            raise ProgramError(f"aggregate({name!r}): a column can't be called {result!r}: {why}")
        window = self._window
        if window is not None and window.end is not None and window.end.lower() == result.lower():
            raise ProgramError(f"aggregate({name!r}): {result!r} is the window's end; give one another name")
        if grouped := [column for column in self._columns if column.lower() == result.lower()]:
            raise ProgramError(f"aggregate({name!r}): {grouped[0]!r} is grouped by; give {result!r} another name")
        if len(alike := [each for each in results if each.lower() == result.lower()]) > 1:
            raise ProgramError(f"aggregate({name!r}): {alike[0]!r} and {alike[1]!r} are one name for Spark")

    def _emit(self, name: str, emit: Emit) -> Emit:
        if not isinstance(emit, AtMostEvery) and emit not in ("update", "close"):
            raise ProgramError(f'aggregate({name!r}, emit={emit!r}): "update", "close" or at_most_every("10 seconds")')
        if isinstance(emit, AtMostEvery) and isinstance(self._window, SessionSpec):
            raise ProgramError(
                f"aggregate({name!r}, emit=at_most_every(…)): what waits is by group and window, and sessions become "
                f'one: say "update" or "close"'
            )
        if emit == "close" and (self._window is None or self._window.grace_ms is None):
            what = "a window" if self._window is None else "a grace"
            column = "a_time" if self._window is None else self._window.column
            raise ProgramError(
                f'aggregate({name!r}, emit="close") needs {what}, or a group would never be complete: '
                f'group_by(…, window("{column}", …, grace="10 minutes"))'
            )
        return emit


class Aggregated(Advised):
    """An aggregate, as it is kept in its store. Made by `GroupedStream.aggregate`."""

    instead = "an aggregate is written, .to(topic), and asked for its groups. To go on with its rows, say .as_stream()"

    def __init__(self, definition: AggregateDef) -> None:
        self._definition = definition

    def to(
        self,
        topic: str,
        format: str = "json",  # noqa: A002
        *,
        key: str | Sequence[str] | None = None,
        schema: str | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        auto_register: bool = True,
        delimiter: str = ",",
    ) -> Aggregated:
        """Write the groups to a topic as they change, or as they close.

        The value has the group's columns, with the window's start first (`window`), then its end where the window has
        a name for that, and the aggregates.

        Args:
            topic: it must exist.
            format: of the value, as of `Stream.to`.
            key: columns of the group, `window` or the window's end: of one its text, of several a JSON object. By
                default the store's key: a JSON object of all the group's columns, with the window's start first.
            schema, schema_registry, subject, auto_register, delimiter: of the value, as of `Stream.to`.

        Raises:
            ProgramError: arguments that can't be.
        """
        output = output_of(topic, key, format, schema)
        others = self._definition.grouped._stream._graph.registry
        registry = output_registry(
            f"to({topic!r})", format, schema_registry, others, subject, auto_register=auto_register
        )
        self._definition.outputs.append(
            replace(output, registry=registry, subject=subject, auto_register=auto_register, delimiter=delimiter)
        )
        return self

    def as_stream(self) -> Stream:
        """The groups as a stream, as they change, or as they close: to aggregate aggregates, say.

            by_auction = bids.group_by("auction", window("at", "10 seconds", grace="2 seconds"))
            counts = by_auction.aggregate("counts", emit="close", n=count())
            counts.as_stream().group_by("window").aggregate("largest", n=max_("n")).to("largest")

        Its rows have the columns that `to` writes: the window's start (`window`), the group's, the aggregates. Event
        time is the window's start, or without windows the record's. With `emit="update"` a group comes each time that
        it changes, so what is aggregated further should be closed, or a table: `as_table`. They go through a topic,
        `{app}-{name}-stream-repartition`.
        """
        self._definition.streamed = True
        return Stream(self._definition.grouped._stream._graph, self._definition)

    def as_table(self) -> DerivedTable:
        """The groups as a table, whose key is what is grouped by, with the window's start (`window`).

            by_auction.aggregate("final", price=max_("price")).as_table().group_by("category").aggregate(
                "categories", mean=avg("price")
            )

        A group that changes leaves what it was in, so `emit="update"` counts nothing twice. Groups of windows that are
        forgotten (`retention`) stay in the table. They go through the topic of `as_stream`.
        """
        self._definition.streamed = self._definition.as_table = True
        return DerivedTable(Stream(self._definition.grouped._stream._graph, self._definition, (GroupsDef(),)))

    def __repr__(self) -> str:
        return f"Aggregated({self._definition.name!r})"


def _table_join(
    stream: Stream,
    other: object,
    on: str | Sequence[str] | Mapping[str, str] | None,
    how: str,
    columns: Sequence[str] | Mapping[str, str] | None,
    prefix: str,
    name: str | None,
    versions: VersionsDef | None = None,
) -> TableJoinDef:
    if not isinstance(other, TableValue):
        hint = "make a table of the stream, .to_table(…)" if isinstance(other, Stream) else "as app.table(…).where(…)"
        raise ProgramError(f"join takes a table, not {other!r}: {hint}{instead_of(other)}")
    upserts = other._upserts()
    if upserts._graph is not stream._graph:
        raise ProgramError(f"join: {other!r} is of another StreamsApp")
    if name is not None:
        check_name("join(name)", name)
    matched = matched_columns(on)
    check_matched("join(on)", matched, stream._side(), upserts._side())
    return TableJoinDef(upserts, matched, how, *added_columns(columns, prefix), name, versions)


def _table_side(table: TableDef) -> Side:
    return Side(f"{'global_table' if table.is_global else 'table'} {table.name!r}", declared(table.source))


def _naming(column: str) -> str:
    """How a column is named."""
    return f'columns are named in text, as .where("{column} IS NOT NULL"), or by Spark\'s F.col({column!r})'


def _not_groupable(given: object) -> str:
    what = f"group_by takes names of columns, and window(…) or sliding(…) of kohort.spark, not {given!r}"
    shown = column_text(given)
    if shown.startswith("session_window("):
        return f"{what}, which is Spark's: say session('at', '30 minutes') of kohort.spark"
    if shown.startswith("window("):
        return (
            f"{what}, which is Spark's: say window('at', '1 hour', slide='10 minutes') of kohort.spark, which has a "
            f"grace and a retention, too"
        )
    return f"{what}: compute the column in a transform, and give its name"


def _not_mergeable(name: str, result: str, given: object) -> str:
    from pyspark.sql import Column

    where = f"aggregate({name!r}, {result}=…)"
    if isinstance(given, Column):
        return (
            f"{where}: {column_text(given)} is a Spark Column, whose partial results can't be merged from epoch to "
            f"epoch. Use an aggregate of kohort.spark (count, sum_, min_, max_, avg, variance, first, last, collect, "
            f"approx_distinct, approx_percentile), or make one with aggregation(update=…, merge=…)"
        )
    if callable(given):
        return f"{where}: {getattr(given, '__name__', given)} is a function; call it, as in {result}=count()"
    return f'{where}: {given!r} is no aggregate of kohort.spark, such as count() or avg("dep_delay")'
