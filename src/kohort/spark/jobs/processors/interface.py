"""What a processor is handed, and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from kohort.spark.jobs.processors.states import State


class Rows(NamedTuple):
    """The rows of one task, in the order of its partition.

    Attributes:
        columns: the user's.
        keys: of the group of each, as stores have it (STRING).
        times: event times, in ms; null for unknown.
        stream_times: the stream time at which each was read, its own time included (ms); null before there is any.
        offsets: of their records; null where that was lost.
    """

    columns: pa.Table
    keys: pa.Array
    times: pa.Array
    stream_times: pa.Array
    offsets: pa.Array


@dataclass(frozen=True)
class TaskState:
    """What a task has beside the rows.

    Attributes:
        partition: its number.
        stream_time: the largest of the rows, or of what was read before (ms); None before there is any.
        states: its stores, by the processor's names for them.
        position: where the epoch begins in what the task reads: the offset of the first record that may be in it.
        now: the epoch's time by the clock (ms).
    """

    partition: int
    stream_time: int | None
    states: Mapping[str, State]
    position: int = 0
    now: int = 0


class Made(NamedTuple):
    """Rows that a processor gives.

    Attributes:
        rows: its output columns.
        of: the row whose time, stream time and offset each has; null for none, but the task's stream time.
        late: how many of the rows that it was given came too late.
        times: event times (ms), where they aren't those of the rows in `of`.
        dropped: how many it left out, by reasons of `kohort.spark.jobs.drop_reasons`.
        offsets: where they aren't those of the rows in `of`.
        stream_times: by which windows judge whether rows are late (ms), where they aren't those of the rows in `of`.
    """

    rows: pa.Table
    of: pa.Array
    late: int = 0
    times: pa.Array | None = None
    dropped: tuple[tuple[str, int], ...] = ()
    offsets: pa.Array | None = None
    stream_times: pa.Array | None = None


class Processor(Protocol):
    """A processor at work. It may be called again with the same rows and state, and must write and give the same."""

    def process(self, rows: Rows, task: TaskState) -> Made:
        """The rows that it makes of a task's; state is read from, and written to, the task's states."""
        ...
