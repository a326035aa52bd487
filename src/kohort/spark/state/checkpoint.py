"""The checkpoint of a store: which changelog it is a copy of, and up to where."""

from __future__ import annotations

from typing import Final, Self

import msgspec

from kohort.spark.state.errors import StoreCorruptError

_FORMAT: Final = 1


class Checkpoint(msgspec.Struct, frozen=True, rename={"topic_id": "origin"}):
    """A record in the store.

    Attributes:
        topic_id: the id of the changelog's topic; "" if it was never set.
        positions: by partition, the offset after the last record that the store has.
    """

    format: int
    topic_id: str
    positions: dict[int, int]

    @classmethod
    def decode(cls, stored: bytes, partition: int | None) -> Self:
        """The checkpoint of these bytes.

        Args:
            partition: the only one that the store is a copy of; None if it is a copy of all.

        Raises:
            StoreCorruptError: it can't be read, or is another store's.
        """
        try:
            checkpoint = msgspec.json.decode(stored, type=cls)
        except msgspec.MsgspecError as error:
            raise StoreCorruptError(f"its checkpoint can't be read: {error}") from error
        if checkpoint.format != _FORMAT:
            raise StoreCorruptError(f"it is of format {checkpoint.format}, not {_FORMAT}")
        if partition is not None and checkpoint.positions.keys() - {partition}:
            raise StoreCorruptError(f"it is a copy of partition {min(checkpoint.positions)}, not {partition}")
        return checkpoint

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    def at(self, partition: int, position: int) -> Checkpoint:
        """The same with another position in a partition."""
        return Checkpoint(_FORMAT, self.topic_id, {**self.positions, partition: position})

    def of_topic(self, topic_id: str) -> Checkpoint:
        """The same of another topic."""
        return Checkpoint(_FORMAT, topic_id, dict(self.positions))


EMPTY: Final = Checkpoint(_FORMAT, "", {})
