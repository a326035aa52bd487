"""Offsets of partitions: ListOffsets by time, earliest, latest."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kohort.client.administration.node_lookup import leaders
from kohort.client.administration.request_router import Deadline, Failure, Node, Outcomes, RequestRouter
from kohort.client.errors import ConfigError, UnsupportedError, kafka_error
from kohort.client.types import OffsetAndTimestamp, TopicPartition, by_topic
from kohort.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

ISOLATION_LEVELS: Final = {"read_uncommitted": 0, "read_committed": 1}

_UNKNOWN_MS: Final = 1000
"""How long an unknown partition is looked for: its topic may be new."""


class OffsetSpec(enum.IntEnum):
    """Offsets to look up, beside those of a time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


_SINCE: Final = {OffsetSpec.MAX_TIMESTAMP: 7, OffsetSpec.EARLIEST_LOCAL: 8, OffsetSpec.LATEST_TIERED: 9}
"""The version of ListOffsets that each needs."""


class Offsets:
    """The first and last offsets of partitions, and those of a time: `Admin.offsets`.

    Errors and `timeout_ms` as in `Topics`.
    """

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def list(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Looks up an offset in each partition.

        Args:
            wanted: an `OffsetSpec`, or ms since 1970: the first record of that time or a later one.
            isolation_level: whether the latest is the high watermark (read_uncommitted) or the last stable offset.
            timeout_ms: as everywhere.

        Returns:
            by partition; the offset is -1 if no record is that late.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, …
            UnsupportedError: the broker is too old for the spec.
        """
        outcomes = await self.look_up(wanted, self._router.deadline(timeout_ms), isolation_level)
        return outcomes.checked()

    async def ends(
        self,
        partitions: Iterable[TopicPartition],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Returns the first offset and the one after the last of each partition."""
        deadline = self._router.deadline(timeout_ms)
        first = (await self.look_up(dict.fromkeys(partitions, OffsetSpec.EARLIEST), deadline)).checked()
        last = (await self.look_up(dict.fromkeys(first, OffsetSpec.LATEST), deadline, isolation_level)).checked()
        return {partition: (first[partition].offset, end.offset) for partition, end in last.items()}

    async def look_up(
        self,
        wanted: Mapping[TopicPartition, int],
        deadline: Deadline,
        isolation_level: str = "read_uncommitted",
        *,
        unknown_ms: int = _UNKNOWN_MS,
    ) -> Outcomes[TopicPartition, OffsetAndTimestamp]:
        """As `list`, but returns errors with the results; unknown topics are looked for during `unknown_ms`."""
        if isolation_level not in ISOLATION_LEVELS:
            raise ConfigError(f"isolation_level={isolation_level!r}: one of {', '.join(ISOLATION_LEVELS)} is wanted")
        needed = max((_SINCE.get(OffsetSpec(spec), 0) for spec in wanted.values() if spec < 0), default=0)

        async def ask(
            node: Node, some: Sequence[TopicPartition]
        ) -> Mapping[TopicPartition, OffsetAndTimestamp | Failure]:
            if node.version(ListOffsetsRequest) < needed:
                raise UnsupportedError(f"{node.broker} is too old to look up such an offset")
            kind = ListOffsetsRequest.Topic
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=ISOLATION_LEVELS[isolation_level],
                topics=[
                    kind(
                        name=topic,
                        partitions=[
                            kind.Partition(partition_index=number, timestamp=int(wanted[TopicPartition(topic, number)]))
                            for number in numbers
                        ],
                    )
                    for topic, numbers in by_topic(some).items()
                ],
                timeout_ms=node.timeout_ms,
            )
            answer = await node.ask(request, ListOffsetsResponse)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    kafka_error(each.error_code)
                    if each.error_code
                    else OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        return await self._router.ask_nodes(wanted, leaders, ask, deadline, unknown_ms=unknown_ms)
