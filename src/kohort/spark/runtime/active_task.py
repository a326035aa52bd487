"""An active task: its stores, and where it reads on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.errors import ApplicationError
from kohort.spark.program.committed_metadata import Fingerprint, committed_by
from kohort.streams.tasks import TaskId


class TaskStore(Protocol):
    """What a lane needs of a store: `kohort.spark.state.Store`."""

    @property
    def position(self) -> int | None:
        """The changelog's offset after what the store has."""

    def get_many(self, keys: pa.Array) -> pa.Array:
        """Values, null where there is none."""

    def scan(self, start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> pa.Table:
        """Columns key and value, in the order of keys, from `start` to before `end`."""

    def write(self, keys: pa.Array, values: pa.Array, position: int) -> None:
        """Null deletes. All or nothing, together with the position."""


@dataclass
class ActiveTask:
    """A task that a lane runs.

    Attributes:
        id: which.
        stores: by name, restored.
        positions: the next offset of each partition that it reads.
        stream_time: the largest event time in what it has read of its stream (ms); None: nothing yet.
    """

    id: TaskId
    stores: Mapping[str, TaskStore]
    positions: dict[TopicPartition, int]
    stream_time: int | None = None


def stream_time_of(committed: OffsetAndMetadata | None, partition: TopicPartition, program: Fingerprint) -> int | None:
    """The stream time that was committed.

    Raises:
        ApplicationError: another program has committed it.
    """
    said = None if committed is None else committed_by(committed.metadata)
    if said is None:
        return None
    if said.program != program:
        raise ApplicationError(
            f"{partition}: the group's offsets and stores were made by another version of the program, whose state this"
            " one can't read: choose another application id, or delete the group and its internal topics"
        )
    return said.stream_time


def later_of(times: Iterable[int | None]) -> int | None:
    """The latest of some times, where they are known."""
    return max((time for time in times if time is not None), default=None)
