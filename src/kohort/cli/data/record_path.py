"""How records go between the client and files: as Arrow columns, or as rows where the extra `arrow` isn't installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias

from kohort.cli.data.deliveries import Deliveries
from kohort.cli.data.source import Source
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.cli.data.row_block import RowBlock
    from kohort.client.consumer import Consumer
    from kohort.client.producer import Producer
    from kohort.client.share_consumer import ShareConsumer


class Polled(NamedTuple):
    """Records of one partition, in a sequence that can be sliced, with their offsets."""

    partition: TopicPartition
    offsets: Sequence[int]
    records: Any


Render: TypeAlias = Callable[[Any], bytes | memoryview]
"""Renders polled records, or a slice of them, as lines."""

Template: TypeAlias = Sequence[bytes | str]
"""Literal bytes, and letters of fields."""


class Block(Protocol):
    """Records to send."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice) -> Self: ...

    def size(self) -> int:
        """Bytes of keys and values."""

    def with_nulls(self, marker: bytes) -> Self:
        """Null instead of keys and values that equal `marker`."""

    def with_headers(self, headers: Sequence[tuple[str, bytes]]) -> Self:
        """These headers for every record."""

    async def send(self, producer: Producer, topic: str, partition: int | None, deliveries: Deliveries) -> None:
        """Sends the records, and appends what was sent even if it fails."""


class RecordPath(Protocol):
    """What the modules `column_path` and `row_path` do: the same, byte for byte."""

    async def poll(self, consumer: Consumer | ShareConsumer, timeout_ms: float) -> Polled | None:
        """The next records of a partition; None if there are none in time."""

    def text(self, template: Template, null: bytes) -> Render:
        """Renders records by a template, with `null` for a key, value or header that is null."""

    def render_json(self, records: Any) -> bytes | memoryview:
        """A line for each record: topic, partition, offset, timestamp (ms), key, value and headers.

        Keys and values are strings. Bytes that aren't UTF-8 are in base64, with a field `"key_encoding"` or
        `"value_encoding": "base64"`.
        """

    def read_lines(self, source: Source, key_separator: bytes | None) -> Iterator[Block]:
        """The bytes of each line as a value; or the part before the first separator as the key, the rest as the value.

        Raises:
            DataError: a line has no separator. The lines before it were read.
        """

    def block(self, rows: RowBlock) -> Block:
        """Rows as this path sends them."""
