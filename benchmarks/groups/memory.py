"""A member of a share group, by bare requests, that locks all records of many partitions at once, and gives them up."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Callable
from uuid import UUID

from benchmarks.broker.members import NOT_YET, await_coordinator, check
from benchmarks.broker.peers import Peer
from benchmarks.broker.process import resident_mebibytes
from benchmarks.broker.wire import Connection
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kohort.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

PER_PARTITION = 2000
"""Records that a member may lock in a partition, by default."""
ACCEPT, RELEASE = 1, 2
PATIENCE = 120.0
PAUSE = 0.2

Span = tuple[int, int]
Fetched = ShareFetchRequest.Topic
Acknowledged = ShareAcknowledgeRequest.Topic


async def in_flight(peer: Peer, group: str, topic: str, partitions: int) -> dict[str, float]:
    """Resident memory, in MiB: before, with all records of these partitions locked at once, with all of them released,
    and when each second one, locked again, was accepted and the others released: the states' most pieces.

    Raises:
        RuntimeError: the server refuses something.
        TimeoutError: it doesn't give all records in two minutes.
    """
    connection = await Connection.open(peer.server.host, peer.server.port)
    member = _Member(connection, group, topic, partitions)
    found = {"before": resident_mebibytes(peer.pid)}
    async with asyncio.timeout(PATIENCE):
        await member.join()
        spans = await member.acquire()
        found["locked"] = resident_mebibytes(peer.pid)
        await member.acknowledge(spans, lambda _: (RELEASE,))
        found["released"] = resident_mebibytes(peer.pid)
        spans = await member.acquire()
        await member.acknowledge(spans, lambda span: [(ACCEPT, RELEASE)[at % 2] for at in range(span[0], span[1] + 1)])
        found["scattered"] = resident_mebibytes(peer.pid)
    return found


class _Member:
    def __init__(self, connection: Connection, group: str, topic: str, partitions: int) -> None:
        self.connection = connection
        self.group = group
        self.topic = topic
        self.partitions = partitions
        self.member_id = str(uuid.uuid4())
        self.topic_id = UUID(int=0)
        self.requests = 0

    async def join(self) -> None:
        """Until it's given all partitions."""
        await await_coordinator(self.connection, self.group)
        epoch, assigned = 0, 0
        while assigned < self.partitions:
            answer = await self.connection.call(
                ShareGroupHeartbeatRequest(
                    group_id=self.group, member_id=self.member_id, member_epoch=epoch,
                    subscribed_topic_names=(self.topic,),
                ), 1, ShareGroupHeartbeatResponse,
            )  # fmt: skip
            if answer.error_code not in NOT_YET:
                check(answer.error_code, f"heartbeat ({answer.error_message})")
                epoch = answer.member_epoch
                for of in answer.assignment.topic_partitions if answer.assignment else ():
                    self.topic_id, assigned = of.topic_id, len(of.partitions)
            await asyncio.sleep(PAUSE)

    async def acquire(self) -> dict[int, list[Span]]:
        """Locks all records; their ranges by partition."""
        found: defaultdict[int, list[Span]] = defaultdict(list)
        missing = self.partitions * PER_PARTITION
        while missing:
            partitions = [Fetched.Partition(partition_index=index) for index in range(self.partitions)]
            answer = await self.connection.call(
                ShareFetchRequest(
                    group_id=self.group, member_id=self.member_id, share_session_epoch=self.requests, max_wait_ms=500,
                    min_bytes=1, max_records=missing, batch_size=PER_PARTITION,
                    topics=[] if self.requests else [Fetched(topic_id=self.topic_id, partitions=partitions)],
                ), 1, ShareFetchResponse,
            )  # fmt: skip
            check(answer.error_code, f"fetch ({answer.error_message})")
            self.requests += 1
            for topic in answer.responses:
                for partition in topic.partitions:
                    check(partition.error_code, f"fetch of a partition ({partition.error_message})")
                    for acquired in partition.acquired_records:
                        found[partition.partition_index].append((acquired.first_offset, acquired.last_offset))
                        missing -= acquired.last_offset - acquired.first_offset + 1
        return found

    async def acknowledge(
        self, spans: dict[int, list[Span]], types: Callable[[Span], tuple[int, ...] | list[int]]
    ) -> None:
        """Says what became of these ranges, all in one request."""
        Batch = Acknowledged.Partition.AcknowledgementBatch  # noqa: N806
        partitions = [
            Acknowledged.Partition(
                partition_index=index,
                acknowledgement_batches=[
                    Batch(first_offset=first, last_offset=last, acknowledge_types=tuple(types((first, last))))
                    for first, last in sorted(ranges)
                ],
            )
            for index, ranges in spans.items()
        ]
        answer = await self.connection.call(
            ShareAcknowledgeRequest(
                group_id=self.group, member_id=self.member_id, share_session_epoch=self.requests,
                topics=[Acknowledged(topic_id=self.topic_id, partitions=partitions)],
            ), 1, ShareAcknowledgeResponse,
        )  # fmt: skip
        check(answer.error_code, f"acknowledgement ({answer.error_message})")
        self.requests += 1
        for topic in answer.responses:
            for partition in topic.partitions:
                check(partition.error_code, f"acknowledgement of a partition ({partition.error_message})")
