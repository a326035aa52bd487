"""What an aggregate keeps and gives, with the types of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates.signed import LIVE, SignedCount
from kohort.spark.program.column_checks import check_exchanged, check_types, one_of
from kohort.spark.program.compiled import AggregateSpec, ArrowAggregation, Route
from kohort.spark.program.internal_columns import OFFSET, PARTITION, WINDOW_START
from kohort.spark.program.source_times import to_millis
from kohort.spark.program.sources import parsed_schema
from kohort.spark.program.streams import AggregateDef
from kohort.spark.program.transform_checks import explained
from kohort.spark.program.windows import SessionSpec, WindowSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from kohort.protocol.records.partitioner import Partitioner
    from kohort.spark.program.aggregates import Aggregation


@dataclass(frozen=True)
class Keyed:
    """A stream's key, and what it is needed for.

    Attributes:
        where: how messages call the stream.
        key: its columns; () for unknown.
        key_names: what they are called in the records' keys.
        lost: why it doesn't hold any more; "" if it does, or never did.
        schema: the stream's columns.
        partitioner: how keys become partitions.
    """

    where: str
    key: tuple[str, ...]
    key_names: tuple[str, ...]
    lost: str
    schema: StructType
    partitioner: Partitioner


def aggregate_spec(
    where: str,
    definition: AggregateDef,
    rows: DataFrame,
    changelog: str,
    event_time: str | None,
    route: Mapping[str, str],
    *,
    in_place: bool,
) -> AggregateSpec:
    """The aggregate of these rows.

    Args:
        where: how messages call it.
        definition: what the user said.
        rows: a DataFrame of the rows' schema.
        changelog: its topic.
        event_time: the stream's, if it is there.
        route: the columns that the subtopology's input is keyed by, in order, and what they are called in its keys.
        in_place: whether that is the stream's own input.

    Raises:
        ProgramError: it can't be computed.
    """
    grouped = definition.grouped
    group = group_types(f"{where}: group_by", grouped._columns, rows.schema)
    window = grouped._window
    if window is not None:
        check_window(where, window, grouped._columns, rows.schema)
        check_grace(where, window, event_time)
    time = event_time if window is None else window.column
    arrow = None
    bound: tuple[tuple[str, Aggregation], ...] = ()
    if definition.function is None:
        bound, state, output = _columns(where, definition, rows, event_time or time)
    else:
        arrow = _arrow(where, definition, rows)
        state = output = tuple((each.name, each.dataType) for each in arrow.state.fields)
    return AggregateSpec(
        name=definition.name,
        group=group,
        window=window,
        aggregations=bound,
        emit=definition.emit,
        changelog=changelog,
        event_time=time,
        arrow=arrow,
        state_columns=state,
        output_columns=output,
        route=Route.TEXT if in_place or arrow is not None else Route.JSON,
        routed_by=tuple(route),
        route_names=tuple(route.values()),
        signed=definition.signed,
    )


def check_grace(where: str, window: WindowSpec | SessionSpec, event_time: str | None) -> None:
    """A grace goes by the stream's time, which is that of its records as they are read.

    Raises:
        ProgramError: the window is over another column.
    """
    if window.grace_ms is not None and window.column != event_time:
        raise ProgramError(
            f"{where}: {_called(window)} has a grace, which goes by the stream's event time, and that is "
            f"{'the time of its records' if event_time is None else repr(event_time)}. Say "
            f"event_time={window.column!r} where the stream is made, or window by that, or leave the grace out. "
            f'(Of a number since 1970 it is made there by event_time=F.timestamp_millis("its column").alias('
            f"{window.column!r}); the records' own time is a column if the schema has _timestamp TIMESTAMP)"
        )


def group_types(where: str, columns: tuple[str, ...], schema: StructType) -> tuple[tuple[str, DataType], ...]:
    """Columns that make keys, with their types.

    Raises:
        ProgramError: there is no such column, or one that can't be a key.
    """
    from pyspark.sql.types import BooleanType, DateType, DecimalType, IntegralType, StringType, TimestampType

    found = []
    for name in columns:
        kind = one_of(f"{where}({name!r})", name, schema)
        if not isinstance(kind, (BooleanType, DateType, DecimalType, IntegralType, StringType, TimestampType)):
            raise ProgramError(
                f"{where}({name!r}): {name!r} is {kind.simpleString().upper()}, whose values make no keys. It takes "
                f"texts, whole numbers, decimals, booleans, dates and timestamps; make one of it in a transform"
            )
        found.append((name, kind))
    return tuple(found)


def check_window(where: str, window: WindowSpec | SessionSpec, columns: tuple[str, ...], schema: StructType) -> None:
    """A window is over a TIMESTAMP column, and its start has a name of its own.

    Raises:
        ProgramError: it isn't, or hasn't.
    """
    from pyspark.sql.types import IntegralType, TimestampType

    name = window.column
    found = one_of(f"{where}: {_called(window)}", name, schema)
    if not isinstance(found, TimestampType):
        made = f'or make one in a transform: df.withColumn("{name}", F'
        remedy = f'Say TIMESTAMP in the schema, {made}.to_timestamp("{name}"))'
        if isinstance(found, IntegralType):
            remedy = (
                f'{to_millis(name)}, {made}.timestamp_millis("{name}")). There are timestamp_seconds and '
                f"timestamp_micros, too"
            )
        raise ProgramError(
            f"{where}: {_called(window)} needs a TIMESTAMP column, but {name!r} is "
            f"{found.simpleString().upper()}. {remedy}"
        )
    if window.end in columns:
        raise ProgramError(f"{where}: {window.end!r} is grouped by, so the window's end needs another name")
    if "window" in columns:
        raise ProgramError(f"{where}: with a window no column that is grouped by can be called 'window': rename it")


def _called(window: WindowSpec | SessionSpec) -> str:
    return f"{'session' if isinstance(window, SessionSpec) else 'window'}({window.column!r})"


_Columns = tuple[tuple[str, "DataType"], ...]


def _columns(
    where: str, definition: AggregateDef, rows: DataFrame, event_time: str | None
) -> tuple[tuple[tuple[str, Aggregation], ...], _Columns, _Columns]:
    """The aggregations, bound to their types, the state columns and the output columns."""
    from pyspark.sql.types import StructField, StructType

    bound = []
    for name, given in definition.aggregations.items():
        there = f"{where[:-1]}, {name}=…)"
        with explained(there):
            try:
                one = given.bound(rows, event_time)
                bound.append((name, one.signed(rows) if definition.signed else one))
            except ProgramError as error:
                raise ProgramError(f"{there}: {error}") from None
    if definition.signed:
        bound.append((LIVE, SignedCount()))
    try:
        with explained(where):
            state, output = _kinds(bound, rows)
    except ProgramError:
        for name, aggregation in bound:  # which one is it?
            with explained(f"{where[:-1]}, {name}=…)"):
                _kinds([(name, aggregation)], rows)
        raise
    check_types(where, StructType([StructField(name, kind) for name, kind in state]))
    return tuple(bound), state, output


def with_offset(rows: DataFrame) -> DataFrame:
    """Rows with `_offset`: null where it was lost on the way."""
    from pyspark.sql import functions as F  # noqa: N812

    return rows if OFFSET in rows.columns else rows.withColumn(OFFSET, F.lit(None).cast("bigint"))


def _kinds(bound: list[tuple[str, Aggregation]], rows: DataFrame) -> tuple[_Columns, _Columns]:
    """The names and types of state and output columns, as Spark finds them."""
    rows = with_offset(rows)
    partial = rows.groupBy().agg(
        *[each.alias(state_name) for name, one in bound for state_name, each in one.partial(name)]
    )
    # What is merged may be null where what is kept first isn't, as counts within a struct.
    kinds = {each.name: _nullable(each.dataType) for each in partial.schema.fields}
    merged = partial.groupBy().agg(
        *[each.cast(kinds[state_name]).alias(state_name) for name, one in bound for state_name, each in one.merge(name)]
    )
    result = merged.select([one.finish(name).alias(name) for name, one in bound if name != LIVE])
    return tuple(kinds.items()), tuple((each.name, each.dataType) for each in result.schema.fields)


def _nullable(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    return kind.toNullable() if isinstance(kind, (ArrayType, MapType, StructType)) else kind


def _arrow(where: str, definition: AggregateDef, rows: DataFrame) -> ArrowAggregation:
    from pyspark.sql.types import StructField, StructType, TimestampType

    assert definition.function is not None
    assert definition.state is not None
    state = parsed_schema(f"{where}: state", definition.state)
    columns, window = definition.grouped._columns, definition.grouped._window
    taken = {name.lower() for name in columns} | {"state"}
    if window is not None:
        taken |= {"window", (window.end or "window").lower()}
    if clash := [name for name in state.names if name.lower() in taken]:
        raise ProgramError(f"{where}: a state column can't be called {clash[0]!r}: the key or the store has that name")
    fields = [each for each in rows.schema.fields if each.name not in (PARTITION, WINDOW_START)]
    if window is not None:
        if "window" in rows.columns:
            raise ProgramError(f"{where}: with a window no column can be called 'window': rename it in a transform")
        fields.insert(0, StructField("window", TimestampType(), nullable=False))
    check_exchanged(where, StructType(fields))
    return ArrowAggregation(definition.function, state, StructType(fields))
