"""Offsets looked up at the partitions' leaders: ListOffsets (ends of logs, times) and OffsetForLeaderEpoch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from kohort.client.cluster import Cluster
from kohort.client.connection import Connection
from kohort.client.errors import ClientError, RequestTimeoutError, is_retriable, kafka_error
from kohort.client.time_limit import time_limit_at
from kohort.client.types import OffsetAndTimestamp, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kohort.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

READ_COMMITTED: Final = 1
_CONSUMER: Final = -1

T = TypeVar("T")
Found = tuple[dict[TopicPartition, T], dict[TopicPartition, KafkaError | ClientError]]


class EpochEnd(NamedTuple):
    """Where a leader epoch ends in a log: the largest epoch there is up to the one asked for, and the offset after it.

    Both are -1 if the log has none.
    """

    leader_epoch: int
    end_offset: int


class LogOffsets:
    """Looks offsets up at the leaders of partitions.

    Args:
        committed: whether the end of a log is the last stable offset instead of the high watermark.
    """

    def __init__(self, cluster: Cluster, *, committed: bool = False) -> None:
        self._cluster = cluster
        self._committed = committed

    async def find(
        self, times: Mapping[TopicPartition, int], *, timeout_ms: float, committed: bool | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Returns the first offset at or after a time, for each partition; None if there's no such record.

        Args:
            times: ms since 1970; -1 is the log's end, -2 its beginning, the others are those of ListOffsets.
            timeout_ms: how long retriable errors are retried.
            committed: overrides the class's.

        Raises:
            KafkaError, ClientError: the error of the first partition that failed.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        backoff = self._cluster.backoff()
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        missing = dict(times)
        self._cluster.follow({at.topic for at in missing})
        while True:
            try:
                async with time_limit_at(deadline):
                    results, failed = await self.find_once(missing, committed=committed)
            except TimeoutError:
                names = ", ".join(map(str, sorted(missing)))
                raise RequestTimeoutError(f"no offsets within {timeout_ms:g} ms: {names}") from None
            found |= results
            missing = {at: times[at] for at in failed}
            if not missing:
                return {at: found[at] for at in times}
            for error in failed.values():
                if not is_retriable(error) or loop.time() > deadline:
                    raise error
            await self._cluster.wait_for_change(backoff.next())

    async def find_once(
        self, times: Mapping[TopicPartition, int], *, committed: bool | None = None
    ) -> Found[OffsetAndTimestamp | None]:
        """As `find`, without retries: returns what was found, and the errors."""
        isolation = READ_COMMITTED if (self._committed if committed is None else committed) else 0

        async def ask(connection: Connection, partitions: list[TopicPartition]) -> Found[OffsetAndTimestamp | None]:
            request = ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=isolation,
                topics=[
                    ListOffsetsRequest.Topic(
                        name=topic,
                        partitions=[
                            ListOffsetsRequest.Topic.Partition(
                                partition_index=at.partition,
                                current_leader_epoch=self._cluster.info.leader_epoch(at),
                                timestamp=times[at],
                            )
                            for at in members
                        ],
                    )
                    for topic, members in _by_topic(partitions)
                ],
                timeout_ms=self._cluster.config.request_timeout_ms,
            )
            answer = await connection.ask(request, ListOffsetsResponse)
            found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
            failed: dict[TopicPartition, KafkaError | ClientError] = {}
            for topic in answer.topics:
                for each in topic.partitions:
                    at = TopicPartition(topic.name, each.partition_index)
                    if each.error_code:
                        failed[at] = kafka_error(each.error_code, str(at))
                    elif each.offset < 0:
                        found[at] = None
                    else:
                        found[at] = OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
            return found, failed

        return await self._ask_leaders(times, ask)

    async def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> Found[EpochEnd]:
        """Returns where leader epochs end in the logs of the current leaders (KIP-320), without retries."""

        async def ask(connection: Connection, partitions: list[TopicPartition]) -> Found[EpochEnd]:
            request = OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER,
                topics=[
                    OffsetForLeaderEpochRequest.Topic(
                        topic=topic,
                        partitions=[
                            OffsetForLeaderEpochRequest.Topic.Partition(
                                partition=at.partition,
                                current_leader_epoch=self._cluster.info.leader_epoch(at),
                                leader_epoch=epochs[at],
                            )
                            for at in members
                        ],
                    )
                    for topic, members in _by_topic(partitions)
                ],
            )
            answer = await connection.ask(request, OffsetForLeaderEpochResponse)
            found: dict[TopicPartition, EpochEnd] = {}
            failed: dict[TopicPartition, KafkaError | ClientError] = {}
            for topic in answer.topics:
                for each in topic.partitions:
                    at = TopicPartition(topic.topic, each.partition)
                    if each.error_code:
                        failed[at] = kafka_error(each.error_code, str(at))
                    else:
                        found[at] = EpochEnd(each.leader_epoch, each.end_offset)
            return found, failed

        return await self._ask_leaders(epochs, ask)

    async def _ask_leaders(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[Connection, list[TopicPartition]], Awaitable[Found[T]]],
    ) -> Found[T]:
        """Asks all leaders at once, each for its partitions."""
        by_leader: dict[int, list[TopicPartition]] = {}
        found: dict[TopicPartition, T] = {}
        failed: dict[TopicPartition, KafkaError | ClientError] = {}
        for at in partitions:
            leader = self._cluster.info.leader(at)
            if leader is not None:
                by_leader.setdefault(leader.node_id, []).append(at)
            else:
                error = self._cluster.info.errors.get(at.topic, ErrorCode.LEADER_NOT_AVAILABLE)
                failed[at] = KafkaError(error, str(at))

        async def one(node_id: int, members: list[TopicPartition]) -> None:
            try:
                connection = await self._cluster.connection(node_id)
                good, bad = await ask(connection, members)
            except ClientError as error:
                good, bad = {}, dict.fromkeys(members, error)
            found.update(good)
            failed.update(bad)
            # Partitions that the response leaves out count as failed, or they would be waited for in vain.
            for at in set(members) - good.keys() - bad.keys():
                failed[at] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{at}: the answer leaves it out")

        async with asyncio.TaskGroup() as group:
            for node_id, members in by_leader.items():
                group.create_task(one(node_id, members))
        if failed:
            self._cluster.request_refresh()
        return found, failed


def _by_topic(partitions: Iterable[TopicPartition]) -> Iterable[tuple[str, list[TopicPartition]]]:
    topics: dict[str, list[TopicPartition]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at)
    return topics.items()
