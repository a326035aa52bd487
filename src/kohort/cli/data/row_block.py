"""Records to send, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from kohort.client.errors import ClientError, NotDeliveredError
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.cli.data.deliveries import Deliveries
    from kohort.client.producer import Producer
    from kohort.client.producing.delivery import Delivery
    from kohort.protocol.records.rows import Headers


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The columns of records, as lists; None for a column that no record has a value in."""

    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    timestamps: list[int | None] | None = None
    headers: Sequence[Headers] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> RowBlock:
        keys, timestamps, headers = self.keys, self.timestamps, self.headers
        return RowBlock(
            self.values[rows], keys and keys[rows], timestamps and timestamps[rows], headers and headers[rows]
        )

    def size(self) -> int:
        return sum(map(len, filter(None, chain(self.values, self.keys or ()))))

    def with_nulls(self, marker: bytes) -> RowBlock:
        def cleared(column: list[bytes | None]) -> list[bytes | None]:
            return [None if value == marker else value for value in column]

        return replace(self, values=cleared(self.values), keys=self.keys and cleared(self.keys))

    def with_headers(self, headers: Sequence[tuple[str, bytes]]) -> RowBlock:
        return replace(self, headers=[headers] * len(self))

    async def send(self, producer: Producer, topic: str, partition: int | None, deliveries: Deliveries) -> None:
        taken: list[Delivery] = []
        columns = self.values, self.keys or repeat(None), self.timestamps or repeat(None), self.headers or repeat(())
        try:
            for value, key, time, headers in zip(*columns, strict=False):
                taken.append(
                    await producer.send(topic, value, key=key, partition=partition, timestamp_ms=time, headers=headers)
                )
        finally:
            deliveries.append((RowsDelivery(topic, taken), len(taken)))


class RowsDelivery:
    """What was sent of a block: awaited, it raises NotDeliveredError if some weren't delivered."""

    def __init__(self, topic: str, deliveries: Sequence[Delivery]) -> None:
        self._topic = topic
        self._deliveries = deliveries

    def done(self) -> bool:
        return all(each.done() for each in self._deliveries)

    def __await__(self) -> Generator[Any, None, None]:
        return self._outcome().__await__()

    async def _outcome(self) -> None:
        lost: Counter[str] = Counter()
        cause: Exception | None = None
        for each in self._deliveries:
            try:
                await each
            except (ClientError, KafkaError) as error:
                lost[self._topic] += 1
                cause = cause or error
        if cause is not None:
            raise NotDeliveredError(lost, cause) from cause
