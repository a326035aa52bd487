"""Several streams that go into one aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.spark.errors import ProgramError
from kohort.spark.program.aggregates import Aggregation
from kohort.spark.program.aggregates.filtered import over
from kohort.spark.program.emission import Emit
from kohort.spark.program.missing_methods import Advised
from kohort.spark.program.shortcuts import Shortcut
from kohort.spark.program.streams import Aggregated, GroupedStream, Stream, UnionDef

__all__ = ["CogroupedStreams", "cogroup"]

_OF: Final = "_cogrouped_of"
"""STRING: the column that says which stream a row is of."""


class CogroupedStreams(Advised):
    """Streams that are grouped alike, to be aggregated together. Made by `cogroup`."""

    instead = "several streams are aggregated together, .aggregate(name, orders={…}, payments={…})"

    def __init__(self, streams: Mapping[str, GroupedStream], grouped: GroupedStream) -> None:
        self._names, self._grouped = tuple(streams), grouped

    def aggregate(self, name: str, /, emit: Emit = "update", **aggregations: Mapping[str, Aggregation]) -> Aggregated:
        """Keep aggregates of each group in one store, each of one stream's rows.

        A group is there as soon as one of the streams has a row of it. What the others give is then as of no rows: 0
        for `count`, else null.

        Args:
            name: of the store, as of `GroupedStream.aggregate`.
            emit: as there.
            aggregations: by stream, the columns of the result, as `orders={"n": count(), "owed": sum_("total")}`.

        Raises:
            ProgramError: arguments that can't be.
        """
        results: dict[str, Aggregation] = {}
        for stream, columns in aggregations.items():
            if stream not in self._names:
                raise ProgramError(
                    f"aggregate({name!r}): no stream is called {stream!r}; there are {', '.join(self._names)}"
                )
            if not isinstance(columns, Mapping) or not columns:
                raise ProgramError(
                    f'aggregate({name!r}, {stream}=…): give its columns by name, as {stream}={{"n": count()}}'
                )
            for result, each in columns.items():
                if result in results:
                    raise ProgramError(f"aggregate({name!r}): two streams have a result {result!r}: rename one")
                results[result] = _of_stream(stream, each)
        if missing := [stream for stream in self._names if stream not in aggregations]:
            raise ProgramError(f"aggregate({name!r}) computes nothing of {missing[0]!r}: leave it out of cogroup")
        return self._grouped.aggregate(name, emit, **results)

    def __repr__(self) -> str:
        return f"CogroupedStreams({', '.join(self._names)})"


def cogroup(**streams: GroupedStream) -> CogroupedStreams:
    """Streams that are grouped by the same columns, and perhaps windows, for one aggregate of all of them.

        owed = cogroup(orders=orders.group_by("customer"), payments=paid.group_by("customer"))
        owed.aggregate("owed", orders={"owed": sum_("total")}, payments={"paid": sum_("amount")}).to("owed")

    Each stream's rows are aggregated as far as they go, and meet in one topic, `{app}-{name}-repartition`.

    Args:
        streams: by the names that `aggregate` goes by. Columns of one name must have one type in all of them; other
            columns of theirs have nothing to do with each other. Where there are windows, their event times must have
            one name.

    Raises:
        ProgramError: arguments that can't be.
    """
    if len(streams) < 2:
        raise ProgramError('cogroup takes several streams, as cogroup(orders=orders.group_by("customer"), payments=…)')
    for name, each in streams.items():
        if not isinstance(each, GroupedStream):
            raise ProgramError(f'cogroup({name}=…) takes a grouped stream, as .group_by("customer"), not {each!r}')
        if name == "emit":
            raise ProgramError("cogroup(emit=…): aggregate has an argument of that name: call the stream otherwise")
    first_name, first = next(iter(streams.items()))
    for name, each in streams.items():
        if each._stream._graph is not first._stream._graph:
            raise ProgramError(f"cogroup: {name!r} is a stream of another StreamsApp")
        if (each._columns, each._window) != (first._columns, first._window):
            raise ProgramError(
                f"cogroup: {name!r} is grouped otherwise than {first_name!r}: all need the same columns in the same "
                f"order, and the same window. Rename columns before, as .select('buyer AS customer', …)"
            )
    marked = tuple(each._stream.transform(_mark(name)) for name, each in streams.items())
    united = Stream(first._stream._graph, UnionDef(marked, allow_missing=True, what="cogroup"))
    return CogroupedStreams(streams, GroupedStream(united, first._columns, first._window))


def _mark(name: str) -> Shortcut:
    from pyspark.sql import functions as F  # noqa: N812

    return Shortcut("cogroup", lambda rows: rows.withColumn(_OF, F.lit(name)))


def _of_stream(name: str, given: Aggregation) -> Aggregation:
    """An aggregation over a stream's own rows. What is none is left to be refused where its name is known."""
    from pyspark.sql import functions as F  # noqa: N812

    return over(given, F.col(_OF) == name) if isinstance(given, Aggregation) else given
