"""What a stranger on the port could send: legal requests that are much work, or claim to be."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import uuid4

from kohort.protocol.messages.create_topics import CreateTopicsRequest
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest
from kohort.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kohort.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kohort.protocol.messages.list_offsets import ListOffsetsRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, Compression, read_header, write_header
from kohort.protocol.records.compression import compress
from kohort.protocol.records.rows import encode_records
from kohort.protocol.records.varint import varint
from tests.broker.raw import RawClient
from tests.isolation.frames import frame
from tests.produce_requests import produce_request

PATIENCE = 120.0
"""Seconds for all answers to an attack."""

HOUR_MS = 3_600_000

CLIENT_METRICS = 16
GROUP = 32

SHARERS = "sharers"
SHARED = "shared"


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes:
        frames: makes what is sent, on each of its connections; made before the clock runs.
        connections: how many do it at a time.
        before: makes requests that prepare it, each answered before the next.
        reads: whether the answers are read; else the connections are left with them.
    """

    name: str
    frames: Callable[[], Sequence[bytes]]
    connections: int = 1
    before: Callable[[], Sequence[bytes]] = tuple
    reads: bool = True

    async def prepare(self, port: int) -> Sequence[bytes]:
        """Does what comes before, and returns what is to be sent."""
        for request in self.before():
            await _send(port, [request])
        return self.frames()

    async def run(self, port: int, frames: Sequence[bytes]) -> None:
        """Sends, and reads the answers; a connection that the server closes has its answer."""
        if self.reads:
            await asyncio.gather(*(_send(port, frames) for _ in range(self.connections)))
        else:
            await asyncio.gather(*(_leave(port, frames) for _ in range(self.connections)))


async def _send(port: int, frames: Sequence[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    try:
        async with asyncio.timeout(PATIENCE):
            for data in frames:
                writer.write(data)
            for _ in frames:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                while size > 0:
                    size -= len(await reader.read(min(size, 1 << 20)) or b"x" * size)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # refused
    finally:
        writer.close()


async def _leave(port: int, frames: Sequence[bytes]) -> None:
    """Sends, reads nothing, and stays for two seconds."""
    _reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
    writer.transport.pause_reading()
    for data in frames:
        writer.write(data)
    await asyncio.sleep(2)
    writer.transport.abort()


@dataclass(frozen=True)
class ShareAttack(Attack):
    """A share group that begins in a topic by time: the member's first fetch has the server search for it.

    `before` makes the topic, and sets the group's `share.auto.offset.reset`.
    """

    async def prepare(self, port: int) -> Sequence[bytes]:
        await super().prepare(port)
        member = str(uuid4())
        client = await RawClient.connect(port)
        heartbeat = ShareGroupHeartbeatRequest(
            group_id=SHARERS, member_id=member, member_epoch=0, subscribed_topic_names=(SHARED,)
        )
        async with asyncio.timeout(PATIENCE):
            while True:
                await client.call(FindCoordinatorRequest(key=SHARERS), 3)
                response = await client.call(heartbeat, 1)
                if response.assignment is not None and response.assignment.topic_partitions:
                    break
                await asyncio.sleep(0.1)
        await client.close()
        (assigned,) = response.assignment.topic_partitions
        partitions = [ShareFetchRequest.Topic.Partition(partition_index=0)]
        request = ShareFetchRequest(
            group_id=SHARERS,
            member_id=member,
            max_wait_ms=5000,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=1,
            batch_size=1,
            topics=[ShareFetchRequest.Topic(topic_id=assigned.topic_id, partitions=partitions)],
        )
        return [frame(request, 1)]


def records(
    count: int, *, claimed: int | None = None, key: bytes | None = None, size: int = 0, first_time: int = 1_000
) -> bytes:
    """A small batch that expands to so many records, or claims to; the last is an hour later than the others."""
    packed = _packed(count, key, size)
    data = bytearray(HEADER_SIZE) + packed
    number = claimed or count
    header = read_header(encode_records([(None, None)], 1_000))._replace(
        batch_length=len(data) - LENGTH_END,
        attributes=Compression.ZSTD,
        last_offset_delta=number - 1,
        record_count=number,
        base_timestamp=first_time,
        max_timestamp=first_time + HOUR_MS,
    )
    write_header(data, header)
    return bytes(data)


def _an_hour_and_a_half_ago() -> int:
    return int(time.time() * 1000) - 3 * HOUR_MS // 2


@cache
def _packed(count: int, key: bytes | None, size: int) -> bytes:
    of_key = varint(-1) if key is None else varint(len(key)) + key
    value = varint(size) + b"x" * size
    last = count - 1
    bodies = (
        b"\0" + (varint(HOUR_MS) if index == last else b"\0") + varint(index) + of_key + value + b"\0"
        for index in range(count)
    )
    return bytes(compress(Compression.ZSTD, b"".join(varint(len(body)) + body for body in bodies)))


def headers(count: int) -> bytes:
    """A small batch that expands to one record with so many headers."""
    body = b"\0\0\0\1\1" + varint(count) + b"\0\1" * count
    data = bytearray(HEADER_SIZE) + bytes(compress(Compression.ZSTD, varint(len(body)) + body))
    header = read_header(encode_records([(None, None)], 1_000))
    write_header(data, header._replace(batch_length=len(data) - LENGTH_END, attributes=Compression.ZSTD))
    return bytes(data)


def new_topic(name: str, partitions: int = 1, **configs: str) -> bytes:
    wanted = [
        CreateTopicsRequest.Topic.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()
    ]
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=1, configs=wanted)
    return frame(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)


def no_topic(name: str) -> bytes:
    topics = [DeleteTopicsRequest.Topic(name=name)]
    return frame(DeleteTopicsRequest(topics=topics, timeout_ms=60_000), 6)


def names(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


def commit(count: int) -> bytes:
    partition = OffsetCommitRequest.Topic.Partition
    partitions = [partition(partition_index=index % 1000, committed_offset=index) for index in range(count)]
    topics = [OffsetCommitRequest.Topic(name="wide", partitions=partitions)]
    return frame(OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics), 8)


def fetch_offsets(count: int) -> bytes:
    topics = [OffsetFetchRequest.Group.Topic(name="wide", partition_indexes=tuple(range(count)))]
    return frame(OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=topics)]), 8)


def fetch(count: int, wait_ms: int = 0) -> bytes:
    partition = FetchRequest.Topic.Partition
    partitions = [partition(partition=index % 1000, partition_max_bytes=1) for index in range(count)]
    topics = [FetchRequest.Topic(topic="wide", partitions=partitions)]
    return frame(FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1, session_epoch=0, topics=topics), 12)


def fetch_different(topic: str, count: int, wait_ms: int = 0) -> bytes:
    """Of so many partitions, each once."""
    partitions = [FetchRequest.Topic.Partition(partition=index, partition_max_bytes=1) for index in range(count)]
    topics = [FetchRequest.Topic(topic=topic, partitions=partitions)]
    return frame(FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1, session_epoch=0, topics=topics), 12)


def by_time(topic: str) -> bytes:
    """The last record is looked for."""
    partition = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=1_001)
    return frame(ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name=topic, partitions=[partition])]), 5)


def client_metrics(match: str) -> bytes:
    kind = IncrementalAlterConfigsRequest.Resource
    configs = [kind.Config(name="match", value=match), kind.Config(name="metrics", value="*")]
    resource = kind(resource_type=CLIENT_METRICS, resource_name="evil", configs=configs)
    return frame(IncrementalAlterConfigsRequest(resources=[resource]), 1)


def share_config(**configs: str) -> bytes:
    kind = IncrementalAlterConfigsRequest.Resource
    wanted = [kind.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    resource = kind(resource_type=GROUP, resource_name=SHARERS, configs=wanted)
    return frame(IncrementalAlterConfigsRequest(resources=[resource]), 1)


def described_configs(count: int) -> bytes:
    kind = DescribeConfigsRequest.Resource
    resources = [kind(resource_type=GROUP, resource_name=name) for name in names(count)]
    return frame(DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True), 4)


def attacks(scale: float = 1.0) -> list[Attack]:
    """Those that were measured to hurt once, in their order; with a lower scale, fewer of everything."""

    def n(count: int) -> int:
        return max(1, int(count * scale))

    everything = frame(MetadataRequest(topics=None), 9)
    wide = (new_topic("wide", min(1000, n(1000))),)
    return [
        Attack(
            "a regular expression that takes for ever in others' engines",
            lambda: [frame(GetTelemetrySubscriptionsRequest(), 0, client_id="a" * 60)],
            before=lambda: [client_metrics("client_id=(a+)+b")],
        ),
        Attack(
            "a batch that claims 18.5 million records, and six look-ups by time in it",
            lambda: [frame(produce_request("lies", records(1000, claimed=18_500_000)), 8), *[by_time("lies")] * 6],
            before=lambda: [new_topic("lies")],
        ),
        Attack(
            "six look-ups by time in a batch of very many records",
            lambda: [by_time("many")] * 6,
            before=lambda: [new_topic("many"), frame(produce_request("many", records(n(1_000_000))), 8)],
        ),
        ShareAttack(
            "a share group that begins by time in a batch of very many records",
            tuple,
            before=lambda: [
                new_topic(SHARED),
                frame(produce_request(SHARED, records(n(1_000_000), first_time=_an_hour_and_a_half_ago())), 8),
                share_config(share_auto_offset_reset="by_duration:PT1H"),
            ],
        ),
        Attack(
            "twenty bombs to a compacted topic",
            lambda: [frame(produce_request("compacted", records(n(100_000), key=b"k")), 8)] * 20,
            before=lambda: [new_topic("compacted", cleanup_policy="compact")],
        ),
        Attack(
            "a batch of one record with very many headers",
            lambda: [frame(produce_request("headers", headers(n(10_000_000))), 8)],
            before=lambda: [new_topic("headers")],
        ),
        Attack(
            "a bomb of 127 MiB",
            lambda: [frame(produce_request("bomb", records(n(127), size=1024 * 1024 - 20)), 8)],
            before=lambda: [new_topic("bomb")],
        ),
        *[
            Attack(
                f"{name} of {n(count):,} {what}", lambda make=make, count=count: [make(n(count))], before=lambda: wide
            )
            for name, what, counts, make in (
                ("OffsetCommit", "partitions", (800_000, 100_000), commit),
                ("OffsetFetch", "partitions", (3_500_000, 90_000), fetch_offsets),
                ("Fetch", "partitions", (500_000, 90_000), fetch),
                (
                    "DeleteGroups",
                    "ids",
                    (1_000_000, 90_000),
                    lambda count: frame(DeleteGroupsRequest(groups_names=names(count)), 2),
                ),
                (
                    "DescribeGroups",
                    "ids",
                    (1_000_000, 90_000),
                    lambda count: frame(DescribeGroupsRequest(groups=names(count)), 5),
                ),
            )
            for count in counts
        ],
        Attack(f"a fetch session of {n(90_000):,} partitions", lambda: [fetch_different("wide", n(90_000))]),
        Attack(f"CreateTopics of {n(10_000):,} partitions", lambda: [new_topic("large", n(10_000))]),
        Attack(
            f"Fetch that waits for {n(10_000):,} partitions", lambda: [fetch_different("large", n(10_000), 1000)] * 2
        ),
        Attack(
            f"Metadata of {n(10_000):,} partitions, 100 times, unread by 10 clients",
            lambda: [everything] * 100,
            10,
            reads=False,
        ),
        Attack(f"DeleteTopics of {n(10_000):,} partitions", lambda: [no_topic("large")]),
        Attack(f"DescribeConfigs of {n(10_000):,} groups", lambda: [described_configs(n(10_000))]),
        Attack(f"100 clients that wait with {n(9_000):,} partitions each", lambda: [fetch(n(9_000), 1000)], 100),
    ]
