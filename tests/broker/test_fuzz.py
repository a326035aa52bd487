"""Random requests over sockets: the server and other connections go on."""

from __future__ import annotations

import asyncio
import logging
import random
import struct
import uuid
from typing import Any

import pytest

from kohort.broker.handlers import served_apis
from kohort.broker.server import Server
from kohort.protocol.message import Request
from kohort.protocol.messages import api
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds, TopicInfo
from kohort.protocol.records.rows import encode_records
from kohort.protocol.schema import Field, Scalar
from tests.broker.conftest import Run
from tests.broker.raw import RawClient, frame
from tests.protocol.everything import RandomMessages

REQUESTS = 2500
PATIENCE = 0.02
"""Seconds that a request may take before the next one comes, by another connection: it may well be one that waits."""

NAMES = (
    "there",
    "there",
    "other",
    "1",
    "",
    "kohort",
    "__consumer_offsets",
    "__transaction_state",
    "__cluster_metadata",
)
GROUPS = ("group", "other", "")
PRODUCERS = (0, 1, 2, 1000, 1001, -1)
EPOCHS = (-1, 0, 1)
TOPOLOGY = StreamsGroupHeartbeatRequest.Topology(
    epoch=0,
    subtopologies=[
        StreamsGroupHeartbeatRequest.Topology.Subtopology(
            subtopology_id="0", source_topics=("there",), state_changelog_topics=[TopicInfo(name="store")]
        )
    ],
)
TASKS: tuple[Any, ...] = ([], None, [TaskIds(subtopology_id="0", partitions=(0, 1))])
LIKELY: dict[str, tuple[Any, ...]] = {
    "group_id": GROUPS,
    "transactional_id": ("t", "u", "", None),
    "v3_and_below_transactional_id": ("t", "u", ""),
    "producer_id": PRODUCERS,
    "v3_and_below_producer_id": PRODUCERS,
    "producer_epoch": EPOCHS,
    "v3_and_below_producer_epoch": EPOCHS,
    "transaction_timeout_ms": (1, 1000, 60_000),
    "session_timeout_ms": (6000, 10_000),
    "rebalance_timeout_ms": (1, 1000),
    "generation_id": (-1, 0, 1, 2),
    "generation_id_or_member_epoch": (-1, 0, 1),
    "member_id": ("", "", "m"),
    "group_instance_id": (None, None, "i"),
    "protocol_type": ("consumer", "consumer", ""),
    "protocol_name": ("range", None),
    "acks": (-1, 0, 1, 1, 5),
    "index": (0, 1, 2),
    "partition": (0, 1, 2),
    "partition_index": (0, 1, 2),
    "timestamp": (-7, -6, -5, -4, -3, -2, -1, 0, 1000),
    "max_wait_ms": (0, 0, 1, 100),
    "min_bytes": (0, 1, 100),
    "fetch_offset": (0, 0, 1, 2),
    "session_id": (0,),
    "session_epoch": (-1, 0),
    "current_leader_epoch": (-1, -1, 0, 1),
    "name": (*NAMES, "range", "retention.ms", "cleanup.policy"),
    "topic": NAMES,
    "key_type": (0, 1, 2),
    "num_partitions": (-1, 1, 2),
    "count": (2, 3, 4),
    "replication_factor": (-1, 1),
    "resource_type": (2, 4, 8, 16, 32),
    "assignments": ([],),
    "member_epoch": (-2, -1, 0, 0, 1, 2),
    "instance_id": (None, None, "i"),
    "process_id": ("p", "q", None),
    "topology": (TOPOLOGY, TOPOLOGY, None),
    "active_tasks": TASKS,
    "standby_tasks": TASKS,
    "warmup_tasks": TASKS,
    "client_software_name": ("raw",),
    "client_software_version": ("1",),
}
"""What is worth trying in a field, by its name; a list stands for one that is empty."""


class Hostile(RandomMessages):
    """Random messages that often name what is there, so that they come further than the first check."""

    def __init__(self, seed: int, ids: list[uuid.UUID]) -> None:
        super().__init__(seed, unknown_tags=True)
        self.ids = ids

    def field(self, field: Field, message: Any, version: int) -> Any:
        likely = LIKELY.get(field.attr)
        if likely is not None and self.random.random() < 0.85:
            value = self.random.choice(likely)
            if value is not None or field.nullable_in(version):
                return value
        if message is ProduceRequest and field.attr == "records" and self.random.random() < 0.8:
            return self.records()
        return super().field(field, message, version)

    def records(self) -> bytes:
        draw = self.random
        options: dict[str, Any] = {}
        if draw.random() < 0.6:
            options = {"producer_id": draw.choice(PRODUCERS[:-1]), "producer_epoch": draw.choice(EPOCHS[1:])}
            options["transactional"] = draw.random() < 0.5
        batch = encode_records([(draw.choice((None, b"k")), b"v")] * draw.randrange(1, 4), 1_000, **options)
        if draw.random() < 0.2:
            batch[draw.randrange(len(batch))] ^= 1 << draw.randrange(8)
        return bytes(batch)

    def scalar(self, kind: Scalar) -> Any:
        if kind.name == "uuid" and self.random.random() < 0.7:
            return self.random.choice(self.ids)
        if kind.name == "int32" and self.random.random() < 0.7:
            return self.random.randrange(3)
        return super().scalar(kind)

    def bytes_of(self, request: type[Request], version: int) -> bytes:
        """A request; now and then some bits of it are flipped, or it ends early."""
        sent = bytearray(frame(self.message(request, version), version))
        if self.random.random() < 0.3:
            for _ in range(self.random.randrange(1, 4)):
                place = self.random.randrange(12, len(sent)) if len(sent) > 12 else 11
                sent[place] ^= 1 << self.random.randrange(8)
            if self.random.random() < 0.3:
                del sent[self.random.randrange(8, len(sent)) :]
                sent[:4] = struct.pack(">i", len(sent) - 4)
        return bytes(sent)


async def answered(client: RawClient) -> bool:
    """Whether the connection can be used again: the answer came in time."""
    try:
        async with asyncio.timeout(PATIENCE):
            await client.receive_bytes()
    except (TimeoutError, EOFError, ConnectionError):
        return False
    return True


@pytest.mark.parametrize("seed", range(2))
def test_any_request_leaves_the_server_well(with_server: Run, caplog: pytest.LogCaptureFixture, seed: int) -> None:
    async def test(server: Server) -> None:
        draw = random.Random(seed)
        topics = server.broker.topics
        served = [(key, api.versions) for key, api in served_apis()]
        good = await RawClient.connect(server.port)
        clients = [await RawClient.connect(server.port) for _ in range(40)]
        for number in range(REQUESTS):
            if topics.get("there") is None:
                topics.create("there", 3)
            key, (first, last) = draw.choice(served)
            hostile = Hostile(seed * REQUESTS + number, [topic.id for topic in topics])
            place = draw.randrange(len(clients))
            clients[place].writer.write(hostile.bytes_of(api(key).request, draw.choice(range(first, last + 1))))
            if not await answered(clients[place]):
                clients[place].writer.transport.abort()
                clients[place] = await RawClient.connect(server.port)
            if number % 50 == 0:
                assert (await good.call(HeartbeatRequest(group_id="", member_id="m"))).error_code
        for client in (good, *clients):
            await client.close()

    with_server(test, "group.min.session.timeout.ms=1", "group.streams.initial.rebalance.delay.ms=0")
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not errors, errors[0].exc_text or errors[0].getMessage()
