"""What an epoch sends and stores, made of the rows of its Spark job: pure, in Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.epoch import DEAD_SCHEMA, HEADERS_SENT, ROWS_SCHEMA, SHOWN, TOPIC_SENT, EpochOutput
from kohort.spark.jobs.group_records import group_records
from kohort.spark.jobs.output_values import output_values, window_starts
from kohort.spark.letter_headers import letter_headers
from kohort.spark.runs import runs_of
from kohort.spark.runtime.named_topics import NamedRows
from kohort.spark.runtime.subtopology_plan import CallOutput, StoreOutput, SubtopologyPlan, TopicOutput, Unreadable
from kohort.spark.runtime.waiting_updates import Lookup, Scan, updates_due
from kohort.spark.runtime.window_closing import Windows, later

_STRICT: Final = Unreadable()
_NOTHING_WRITTEN: Final = ROWS_SCHEMA.empty_table().drop_columns(["route"])
_TAKEN: Final = 2**30
"""Bytes that may be taken at once: Arrow has room for 2 GiB in a column."""


@dataclass
class EpochWrites:
    """What an epoch sends and stores.

    Attributes:
        sent: tables by topic, with columns for `Producer.send_table`; `routed` ones have a column route instead.
        changelogs: the same for stores, by (store, changelog topic, partition).
        repartitioned: how many records of them go to repartition topics.
        named: rows whose topics a column names: it isn't known yet whether these are there.
    """

    sent: list[tuple[str, pa.Table]] = field(default_factory=list)
    routed: list[tuple[str, pa.Table]] = field(default_factory=list)
    changelogs: dict[tuple[str, str, int], pa.Table] = field(default_factory=dict)
    repartitioned: int = 0
    named: list[NamedRows] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many in all."""
        tables = [*(table for _, table in (*self.sent, *self.routed)), *self.changelogs.values()]
        tables += [each.rows for each in self.named]
        return sum(table.num_rows for table in tables)


@dataclass(frozen=True)
class MergedRows:
    """What becomes of rows that were merged at once.

    Attributes:
        store: where they go.
        stream_times: of the tasks that could merge, by partition, before the epoch (ms).
    """

    store: StoreOutput
    stream_times: Mapping[int, int | None]


def _nothing_known(store: str, partition: int, keys: pa.Array) -> pa.Array:
    return pa.nulls(len(keys), pa.binary())


class _Stores(NamedTuple):
    """Stores as they were before the epoch."""

    scan: Scan
    lookup: Lookup


def epoch_writes(
    plan: SubtopologyPlan,
    output: EpochOutput,
    table: str | None,
    stream_times: Mapping[int, int | None],
    scan: Scan,
    merged: Mapping[int, MergedRows] | None = None,
    lookup: Lookup = _nothing_known,
) -> EpochWrites:
    """What an epoch sends and stores.

    Args:
        table: the name of the table that was read; None if it was the stream.
        stream_times: of each partition that was read, before the epoch (ms).
        scan: reads stores as they were before the epoch.
        merged: of branches with mergers (see `ROWS_SCHEMA`).
        lookup: reads keys of stores, likewise.
    """
    reading = _Stores(scan, lookup)
    merged = {} if merged is None else merged
    out = EpochWrites()
    if table is not None:
        for rows in output.rows.values():
            _send_changelogs(out, plan.tables[table], rows, {}, {}, reading)
    else:
        statistics = output.statistics
        after = _after(stream_times, statistics.max_times)
        for index, branch_output in plan.branches.items():
            rows = output.rows.get(index, ROWS_SCHEMA.empty_table())
            if isinstance(branch_output, CallOutput):
                continue
            if isinstance(branch_output, StoreOutput):
                _send_changelogs(out, branch_output, rows, stream_times, after, reading)
            elif index in merged:
                mine, times = merged[index], statistics.merged_times.get(index, {})
                before = {partition: mine.stream_times[partition] for partition in times}
                here = pc.greater_equal(rows["partition"], 0)
                _send_changelogs(out, mine.store, rows.filter(here), before, _after(before, times), reading)
                _send_on(out, branch_output.topic, rows.filter(pc.invert(here)))
            elif rows.num_rows:
                _send(out, branch_output, rows)
        for name, store in plan.processors.items():
            rows = output.writes.get(name, _NOTHING_WRITTEN)
            _send_changelogs(out, store, rows, stream_times, after, reading)
    _send_dead_letters(out, plan, output.statistics.dead)
    return out


def _after(before: Mapping[int, int | None], times: Mapping[int, Any]) -> dict[int, int | None]:
    """Stream times after an epoch with these times."""
    return {partition: later(time, times.get(partition)) for partition, time in before.items()}


def _send_on(out: EpochWrites, topic: str, rows: pa.Table) -> None:
    """Rows for tasks that don't merge them at once."""
    if rows.num_rows:
        out.repartitioned += rows.num_rows
        partitions = pc.cast(pc.subtract(-1, rows["partition"]), pa.int32())
        rows = rows.set_column(rows.schema.get_field_index("partition"), "partition", partitions)
        out.sent.append((topic, _to_send(rows, partitioned=True)))


def _send(out: EpochWrites, branch_output: TopicOutput, rows: pa.Table) -> None:
    out.repartitioned += rows.num_rows if branch_output.repartition else 0
    if branch_output.unknown is not None:
        out.named.append(NamedRows(_to_send(rows, partitioned=False), branch_output.unknown))
    elif branch_output.routed and "route" in rows.schema.names and rows["route"].null_count < rows.num_rows:
        out.routed.append((branch_output.topic, rows.select(["key", "value", "timestamp", "route"])))
    else:
        out.sent.append((branch_output.topic, _to_send(rows, partitioned=rows["partition"].null_count < rows.num_rows)))


def _send_changelogs(
    out: EpochWrites,
    store_output: StoreOutput,
    rows: pa.Table,
    before: Mapping[int, int | None],
    after: Mapping[int, int | None],
    stores: _Stores,
) -> None:
    """What goes into a store and its changelog, and what of it to outputs."""
    waiting = store_output.waiting
    if store_output.has_outputs and waiting is None and (SHOWN in rows.column_names or not store_output.on_close):
        shown = rows.filter(rows[SHOWN]) if SHOWN in rows.column_names else rows
        if shown.num_rows:
            _send_outputs(out, store_output, shown)
    by_partition = _by_partition(rows)
    for partition in sorted({*before, *by_partition}):
        mine = by_partition.get(partition, rows.slice(0, 0))
        times = before.get(partition), after.get(partition)
        if waiting is not None:
            due = updates_due(store_output, waiting, partition, mine, times, *stores)
            if store_output.has_outputs and due.rows.num_rows:
                _send_outputs(out, store_output, due.rows)
            if due.waiting.num_rows:
                out.changelogs[waiting.store, waiting.changelog, partition] = _stamped(due.waiting)
        if store_output.windows is not None:
            mine = _close_windows(out, store_output, store_output.windows, partition, mine, times, stores.scan)
        if mine.num_rows:
            out.changelogs[store_output.store, store_output.changelog, partition] = _to_send(mine, partitioned=False)


def _by_partition(rows: pa.Table) -> dict[int, pa.Table]:
    """The rows of each partition, in their order, and in one piece: each piece costs the producer a batch."""
    if not rows.num_rows:
        return {}
    numbers = rows["partition"].to_numpy()
    if rows.nbytes > _TAKEN:  # not in one piece, which couldn't have more than 2 GiB
        return {each: rows.filter(pc.equal(rows["partition"], each)) for each in np.unique(numbers).tolist()}
    order, runs = runs_of(numbers)
    rows = (rows if len(runs) == 1 else rows.take(pa.array(order))).combine_chunks()
    return {number: rows.slice(start, end - start) for number, start, end in runs}


def _close_windows(
    out: EpochWrites,
    store_output: StoreOutput,
    windows: Windows,
    partition: int,
    rows: pa.Table,
    times: tuple[int | None, int | None],
    scan: Scan,
) -> pa.Table:
    """Publish the groups of windows that close; the rows to keep, with deletions of those that are forgotten."""
    if store_output.on_close and store_output.has_outputs and (closing := windows.closing(*times)) is not None:
        final = _as_of_now(
            scan(store_output.store, partition, *closing), rows.filter(_is_within(rows, closing)), windows.size
        )
        if final.num_rows:
            _send_outputs(out, store_output, final)
    if (expiring := windows.expiring(*times)) is not None:
        stored = scan(store_output.store, partition, *expiring)["key"]
        rows = rows.filter(pc.invert(_is_within(rows, expiring)))
        gone = pa.table(
            {
                "key": pc.cast(stored, pa.binary()),
                "value": pa.nulls(len(stored), pa.binary()),
                "partition": pa.array([partition] * len(stored), pa.int32()),
                "route": pa.nulls(len(stored), pa.binary()),
                "timestamp": pa.nulls(len(stored), pa.int64()),
            },
            schema=ROWS_SCHEMA,
        ).select(rows.schema.names)
        rows = pa.concat_tables([rows.cast(gone.schema), gone])
    return rows


def _as_of_now(stored: pa.Table, fresh: pa.Table, size: int) -> pa.Table:
    """Rows of windows: those that the store has, and over them those that the epoch has made, in order."""
    old = stored.filter(pc.invert(pc.is_in(stored["key"], value_set=_one(fresh["key"]))))
    if not old.num_rows and not fresh.num_rows:
        return ROWS_SCHEMA.empty_table()
    keys = pa.concat_arrays([*old["key"].chunks, *fresh["key"].chunks])
    values = pa.concat_arrays([*old["value"].chunks, *fresh["value"].chunks])
    # A time within the window, as Kafka's clients expect of what is in it.
    stamps = pc.add(window_starts(keys), size - 1)
    table = pa.table({"key": keys, "value": values, "timestamp": stamps})
    return table.take(pc.sort_indices(keys))


def _is_within(rows: pa.Table, bounds: tuple[bytes, bytes]) -> Any:
    keys = rows["key"]
    first, last = (pa.scalar(bound, pa.binary()) for bound in bounds)
    return pc.and_(pc.greater_equal(keys, first), pc.less(keys, last))


def _send_outputs(out: EpochWrites, store_output: StoreOutput, rows: pa.Table) -> None:
    keys, values, times = rows["key"], rows["value"], rows["timestamp"]
    if store_output.outputs or store_output.stream is not None:
        shown = output_values(keys, values, store_output.end)
        table = _stamped(pa.table({"key": keys, "value": shown, "timestamp": times}))
        out.sent += [(topic, table) for topic in store_output.outputs]
        if store_output.stream is not None:
            if not store_output.deletes:  # sessions that are part of others are no rows
                table = table.filter(table["value"].is_valid())
            # In the order of windows' starts, with which keys begin: by it those are late that come after others.
            out.sent.append((store_output.stream, table.take(pc.sort_indices(table["key"]))))
            out.repartitioned += table.num_rows
    for output in store_output.encoded:
        key, value = group_records(output, keys, values)
        out.sent.append((output.topic, _stamped(pa.table({"key": key, "value": value, "timestamp": times}))))


def _send_dead_letters(out: EpochWrites, plan: SubtopologyPlan, dead: pa.Table) -> None:
    """Dead letters: the records as they were, with the reason and the place in headers more (`letter_headers`)."""
    for topic in _topics(dead):
        unreadable = plan.unreadable.get(topic)
        if unreadable is None or unreadable.dead_letters is None:
            continue
        rows = dead.filter(pc.equal(dead["topic"], topic))
        headers = pa.array(
            [
                [
                    *(row["headers"] or ()),
                    *letter_headers(row["error"] or "", row["topic"], row["partition"], row["offset"]),
                ]
                for row in rows.select(["topic", "partition", "offset", "headers", "error"]).to_pylist()
            ],
            DEAD_SCHEMA.field("headers").type,
        )
        table = rows.select(["key", "value", "timestamp"]).append_column("headers", headers)
        out.sent.append((unreadable.dead_letters, table))


def _to_send(rows: pa.Table, *, partitioned: bool) -> pa.Table:
    more = [name for name in (HEADERS_SENT, TOPIC_SENT) if name in rows.column_names]
    return _stamped(rows.select(["key", "value", "timestamp", *(["partition"] if partitioned else []), *more]))


def _stamped(table: pa.Table) -> pa.Table:
    """Without the times if there are none: the producer's clock counts then."""
    if table["timestamp"].null_count == table.num_rows:
        return table.drop_columns(["timestamp"])
    return table


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def first_unreadable(plan: SubtopologyPlan, dead: pa.Table) -> str | None:
    """Where the first record is that the application is to stop at, and why it can't be read."""
    fatal = [topic for topic in _topics(dead) if plan.unreadable.get(topic, _STRICT).stop]
    strict = pc.is_in(dead["topic"], value_set=pa.array(fatal, pa.string()))
    return first_dead(dead.filter(strict))


def first_dead(dead: pa.Table) -> str | None:
    """Where the first of unreadable records (`DEAD_SCHEMA`) is, and why it can't be read; None if there are none."""
    rows: list[dict[str, Any]] = dead.select(["topic", "partition", "offset", "error"]).to_pylist()
    if not rows:
        return None
    row = min(rows, key=lambda each: (each["topic"], each["partition"], each["offset"]))
    return f"{row['topic']}-{row['partition']}, offset {row['offset']}: {row['error']}"


def _topics(dead: pa.Table) -> Iterable[str]:
    return pc.unique(dead["topic"]).to_pylist() if dead.num_rows else ()
