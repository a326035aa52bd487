"""What a user writes a program with: streams, tables and grouped streams.

These classes only record what was written; `compiler` makes a program of it. Mistakes that show without Spark are
raised at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from kohort.spark.errors import ProgramError
from kohort.spark.formats import FORMATS
from kohort.spark.internals import column_text
from kohort.spark.program.aggregates import Aggregation
from kohort.spark.program.column_checks import column_names
from kohort.spark.program.compiled import Emit
from kohort.spark.program.missing_methods import Advised, of_a_dataframe
from kohort.spark.program.settings import check_name
from kohort.spark.program.sources import Schema, SourceDef, TableDef, known_format
from kohort.spark.program.windows import WindowSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "AggregateDef", "Aggregated", "End", "ForEachBatchDef", "GlobalTable", "Graph", "GroupedStream", "JoinDef",
    "OutputDef", "RepartitionDef", "SinkDef", "Stream", "Table", "TransformDef",
]  # fmt: skip


# Definitions -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class TransformDef:
    """A function of the user's."""

    function: Callable[[DataFrame], DataFrame]


@dataclass(eq=False)
class JoinDef:
    """A join with a table."""

    table: TableDef
    on: tuple[str, ...] | None
    how: str


@dataclass(eq=False)
class RepartitionDef:
    """A stream that goes through a repartition topic, by other columns."""

    parent: Stream
    columns: tuple[str, ...]
    name: str | None
    partitions: int


@dataclass(eq=False)
class OutputDef:
    """A topic that is written."""

    topic: str
    key: tuple[str, ...] | None
    format: str
    avro_schema: str | None = None


@dataclass(eq=False)
class SinkDef:
    """A stream's rows go to a topic."""

    stream: Stream
    output: OutputDef


@dataclass(eq=False)
class AggregateDef:
    """A stream is aggregated."""

    grouped: GroupedStream
    name: str
    emit: Emit
    aggregations: dict[str, Aggregation]
    function: Callable[[Any, Any], Any] | None = None
    state: Schema | None = None
    outputs: list[OutputDef] = field(default_factory=list)


@dataclass(eq=False)
class ForEachBatchDef:
    """A stream's rows go to a function."""

    stream: Stream
    function: Callable[[DataFrame, str], object]


End = SinkDef | ForEachBatchDef | AggregateDef


@dataclass(eq=False)
class Graph:
    """All definitions, in the order in which they were written."""

    sources: list[SourceDef | TableDef] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)


# What is written -----------------------------------------------------------------------------------------------------


class Table(Advised):
    """The last record of each key of a topic, kept by the tasks that read the same partitions of a stream.

    Made by `StreamsApp.table`; good for `Stream.join`, and for queries by the table's name.
    """

    instead = (
        "a table is joined to a stream, stream.join(table), and asked for its keys. To transform or group its records, "
        "or to write them elsewhere, read a topic with app.stream"
    )

    def __init__(self, definition: TableDef) -> None:
        self._definition = definition

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._definition.name!r})"


class GlobalTable(Table):
    """The last record of each key of a topic, all of it on every instance. Any stream can be joined to it."""


class Stream(Advised):
    """Records of a topic as rows of a DataFrame: an epoch's at a time.

    Each method gives another stream and leaves this one as it is, so a stream can be used several times.
    """

    instead = "it has transform, join, repartition, group_by, to and for_each_batch"

    def __init__(
        self, graph: Graph, origin: SourceDef | RepartitionDef, steps: tuple[TransformDef | JoinDef, ...] = ()
    ) -> None:
        self._graph = graph
        self._origin = origin
        self._steps = steps

    def transform(self, function: Callable[[DataFrame], DataFrame]) -> Stream:
        """The stream that a function makes of this one: select, where, withColumn, explode, UDFs, …

        The function is called now and then to build a plan, over a DataFrame of no rows or of an epoch's. It must
        give the same plan each time, and treat each row by itself: what goes over several rows (groupBy, distinct,
        orderBy with limit, window functions) would go over those that happen to be in an epoch, and is refused. Keep
        the columns that the stream is keyed by as they are, where you want to group by these or join without a
        repartition topic between; and `_partition`, where rows go through mapInPandas or mapInArrow.

        Raises:
            ProgramError: no function is given.
        """
        if not callable(function):
            raise ProgramError(f"transform takes a function that makes a DataFrame of a DataFrame, not {function!r}")
        return self._with(TransformDef(function))

    def join(
        self, table: Table, on: str | Sequence[str] | None = None, how: Literal["inner", "left"] = "inner"
    ) -> Stream:
        """Each row with the table's columns added, as the table is when the row is processed.

        Of a table a row sees all records that were there when its epoch began. A global table is loaded once before
        any row is joined; afterwards it is followed by itself, and a row sees what the instance has of it by then. A
        change of the table changes no rows that were joined before.

        Args:
            table: a table, whose key the stream must be keyed by, and whose topic needs as many partitions; or a global
                table. A table can be joined to the streams of one topic, a global one to all.
            on: the table's key columns, which the stream must have too; by default these.
            how: what becomes of rows without a match: "inner" drops them, "left" keeps them, with nulls.

        Raises:
            ProgramError: arguments that can't be.
        """
        if isinstance(table, Stream):
            raise ProgramError(
                "a stream can't be joined to a stream: make one of them a table (app.table), which has the last record "
                "of each key"
            )
        if not isinstance(table, Table):
            raise ProgramError(f"join takes a table (app.table, app.global_table), not {table!r}")
        if how not in ("inner", "left"):
            raise ProgramError(f'join(how={how!r}): a stream is joined to a table "inner" or "left"')
        return self._with(JoinDef(table._definition, None if on is None else column_names("on", on), how))

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
        return Stream(self._graph, RepartitionDef(self, column_names("repartition", columns), name, partitions))

    def group_by(self, *by: str | WindowSpec) -> GroupedStream:
        """Group by columns, and by a window of time if there is one: `group_by("origin", window("at", "1 hour"))`.

        Raises:
            ProgramError: something that is neither, no columns, or several windows.
        """
        windows = [each for each in by if isinstance(each, WindowSpec)]
        names = [each for each in by if not isinstance(each, WindowSpec)]
        if strange := [each for each in names if not isinstance(each, str)]:
            raise ProgramError(_not_groupable(strange[0]))
        if len(windows) > 1:
            raise ProgramError("group_by takes one window")
        if not names:
            raise ProgramError(
                "group_by needs a column: all rows in one group would be one task's. "
                'For totals add a constant in a transform, as .withColumn("all", lit(1)), and group by it'
            )
        return GroupedStream(self, column_names("group_by", names), windows[0] if windows else None)

    def to(
        self,
        topic: str,
        *,
        key: str | Sequence[str] | None = None,
        format: str = "json",  # noqa: A002
        schema: str | None = None,
    ) -> Stream:
        """Write the rows to a topic, and go on with this stream.

        Args:
            topic: it must exist.
            key: the columns that make the record's key: of one its text, of several a JSON object. None: no key.
            format: of the value. "json" and "avro" take all columns; "string" and "raw" the column `value`, or the only
                one beside the key.
            schema: for "avro": the plain schema, as JSON, instead of the one that follows from the columns.

        Raises:
            ProgramError: arguments that can't be.
        """
        known_format(f"to({topic!r})", format)
        if schema is not None and format != "avro":
            raise ProgramError(f'to({topic!r}): a schema is for format="avro"; {format} follows from the columns')
        output = OutputDef(check_name("to", topic), None if key is None else column_names("key", key), format, schema)
        self._graph.ends.append(SinkDef(self, output))
        return self

    def for_each_batch(self, function: Callable[[DataFrame, str], object]) -> Stream:
        """Give the rows to a function, a batch at a time, and go on with this stream.

            def write(rows: DataFrame, batch_id: str) -> None: ...

        A batch has the rows of one task from one epoch. The function is called in the driver before the epoch is
        committed, and again if the epoch fails or its instance dies in between: then with the same id, on whichever
        instance, and with rows of the same records. So a sink that keeps the id with the rows, in one transaction, and
        passes over an id that it has, takes each record once. See "Sinks of one's own" in docs/pipeline.md.

        Raises:
            ProgramError: no function is given.
        """
        if not callable(function):
            raise ProgramError(f"for_each_batch takes a function of a DataFrame and an id, not {function!r}")
        self._graph.ends.append(ForEachBatchDef(self, function))
        return self

    def _advice(self, name: str) -> str:
        if name in ("agg", "aggregate", "aggregate_arrow"):
            return "group it first, as .group_by(…).aggregate(…)"
        if name.lower() == "groupby":
            return "say .group_by(…).aggregate(…)"
        if of_a_dataframe(name):
            return f"DataFrames have it, so say .transform(lambda df: df.{name}(…))"
        return super()._advice(name)

    def _with(self, step: TransformDef | JoinDef) -> Stream:
        return Stream(self._graph, self._origin, (*self._steps, step))

    def __repr__(self) -> str:
        origin = self._origin
        what = origin.topic if isinstance(origin, SourceDef) else f"repartitioned by {', '.join(origin.columns)}"
        return f"Stream({what}{', …' if self._steps else ''})"


class GroupedStream(Advised):
    """A stream grouped by columns and perhaps a window. Made by `Stream.group_by`."""

    instead = (
        "what is grouped is aggregated, .aggregate(…) or .aggregate_arrow(…) with aggregates of kohort.spark; "
        "transform and join before .group_by"
    )

    def __init__(self, stream: Stream, columns: tuple[str, ...], window: WindowSpec | None) -> None:
        self._stream = stream
        self._columns = columns
        self._window = window

    def aggregate(self, name: str, /, emit: Emit = "update", **aggregations: Aggregation) -> Aggregated:
        """Keep aggregates of each group in a store.

            by_hour.aggregate("delays", n=count(), mean=avg("dep_delay"))

        Args:
            name: of the store, by which it can be asked; its changelog is `{app}-{name}-changelog`.
            emit: "update": every epoch writes the groups it changed. "close": a group is written once, when its window
                is closed, which needs a window with grace.
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
        return self._add(AggregateDef(self, name, self._emit(name, emit), {}, function, state))

    def _add(self, definition: AggregateDef) -> Aggregated:
        self._stream._graph.ends.append(definition)
        return Aggregated(definition)

    def _check_result(self, name: str, result: str, results: Iterable[str]) -> None:
        # Spark tells columns apart without their case.
        reserved = {"state": "the store keeps its own state under that name", "window": "that is the window's start"}
        if why := reserved.get(result.lower()):
            raise ProgramError(f"aggregate({name!r}): a column can't be called {result!r}: {why}")
        if grouped := [column for column in self._columns if column.lower() == result.lower()]:
            raise ProgramError(f"aggregate({name!r}): {grouped[0]!r} is grouped by; give {result!r} another name")
        if len(alike := [each for each in results if each.lower() == result.lower()]) > 1:
            raise ProgramError(f"aggregate({name!r}): {alike[0]!r} and {alike[1]!r} are one name for Spark")

    def _emit(self, name: str, emit: Emit) -> Emit:
        if emit not in ("update", "close"):
            raise ProgramError(f'aggregate({name!r}, emit={emit!r}): "update" or "close"')
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

    instead = (
        "an aggregate is written, .to(topic), and asked for its groups. To go on with it, read that topic with "
        "app.stream(topic, …)"
    )

    def __init__(self, definition: AggregateDef) -> None:
        self._definition = definition

    def to(self, topic: str, format: str = "json") -> Aggregated:  # noqa: A002
        """Write the groups to a topic as they change, or as they close.

        The record's key is a JSON object of the group's columns, with the window's start first (`window`); the
        value has these and the aggregates.

        Raises:
            ProgramError: the format isn't JSON.
        """
        check_name("to", topic)
        if format != "json":
            known_format(f"to({topic!r})", format)
            others = ", ".join(each for each in FORMATS if each != "json")
            raise ProgramError(
                f"to({topic!r}, format={format!r}): an aggregate is written as JSON. For {others} read that topic with "
                f"app.stream, and write it again"
            )
        self._definition.outputs.append(OutputDef(topic, None, format))
        return self

    def __repr__(self) -> str:
        return f"Aggregated({self._definition.name!r})"


def _not_groupable(given: object) -> str:
    what = f"group_by takes names of columns, and window(…) of kohort.spark, not {given!r}"
    shown = column_text(given)
    if shown.startswith("session_window("):
        return f"{what}: there are no session windows, but tumbling and hopping ones, as window('at', '1 hour')"
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
