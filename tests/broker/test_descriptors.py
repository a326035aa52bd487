"""A server that is short of file descriptors: new connections are refused first, and logs go on."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import descriptors as connections
from kohort.log.descriptors import Descriptors
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.create_topics import CreateTopicsRequest
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.records.rows import encode_records
from kohort.testing.process import BrokerProcess
from tests.broker.conftest import serving
from tests.broker.handlers.conftest import append_records
from tests.broker.raw import RawClient
from tests.waiting import until

LIMIT = 96
PARTITIONS = 60
"""Each has three files."""


class Starved(BrokerProcess):
    """A broker that may open few files."""

    def _command(self) -> list[str]:
        return ["sh", "-c", f'ulimit -n {LIMIT} && exec "$@"', "sh", *super()._command()]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def create(client: RawClient, name: str, partitions: int) -> int:
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=1)
    response = await client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
    code: int = response.topics[0].error_code
    return code


async def delete(client: RawClient, name: str) -> int:
    response = await client.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
    code: int = response.responses[0].error_code
    return code


async def produce(client: RawClient, name: str, *indexes: int) -> set[int]:
    """The error codes."""
    data = bytes(encode_records([(b"k", b"v" * 100)], 1_000))
    parts = [ProduceRequest.TopicData.PartitionData(index=index, records=data) for index in indexes]
    topic = ProduceRequest.TopicData(name=name, partition_data=parts)
    response = await client.call(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic]), 9)
    return {part.error_code for part in response.responses[0].partition_responses}


async def fetched(client: RawClient, name: str, *indexes: int) -> set[tuple[int, int]]:
    """Error codes and ends of partitions."""
    parts = [FetchRequest.Topic.Partition(partition=index, partition_max_bytes=1 << 20) for index in indexes]
    request = FetchRequest(max_bytes=1 << 24, topics=[FetchRequest.Topic(topic=name, partitions=parts)])
    response = await client.call(request, 11)
    return {(part.error_code, part.high_watermark) for part in response.responses[0].partitions}


async def refused(port: int) -> bool:
    """Whether a new connection is closed at once."""
    try:
        client = await RawClient.connect(port)
    except ConnectionError:
        return True
    try:
        return await hung_up(client)
    finally:
        await client.close()


async def hung_up(client: RawClient) -> bool:
    """Whether the server has closed a connection, or closes it, instead of answering. A slow answer is one, too."""
    try:
        await client.call(MetadataRequest(topics=[]), 9)
    except (ConnectionError, asyncio.IncompleteReadError):
        return True
    return False


def test_more_partitions_than_descriptors(tmp_path: Path) -> None:
    """All of them take and give records, also after a restart, and can be deleted."""
    every = range(PARTITIONS)

    async def fill(port: int) -> None:
        client = await RawClient.connect(port)
        assert await create(client, "t", PARTITIONS) == ErrorCode.NONE
        for _ in range(2):
            assert await produce(client, "t", *every) == {ErrorCode.NONE}
        await client.close()

    async def look(port: int) -> None:
        client = await RawClient.connect(port)
        assert await fetched(client, "t", *every) == {(ErrorCode.NONE, 2)}
        assert await produce(client, "t", *every) == {ErrorCode.NONE}
        assert await delete(client, "t") == ErrorCode.NONE
        await client.close()

    with Starved(data_dir=tmp_path) as broker:
        asyncio.run(fill(broker.port))
        broker.kill()
        broker.start()
        asyncio.run(look(broker.port))
        assert "offline" not in broker.log()
    assert not list(tmp_path.glob("t-*"))


def test_connections_are_refused_first(tmp_path: Path) -> None:
    async def test(port: int) -> None:
        established = await RawClient.connect(port)
        assert await create(established, "before", 3) == ErrorCode.NONE
        crowd = [await RawClient.connect(port) for _ in range(2 * LIMIT)]
        # A busy server accepts many at once, and holds them for a moment: it has closed those whose client knows that.
        assert any([await hung_up(client) for client in crowd])
        assert await refused(port)
        # Who is connected goes on, with all that needs files.
        assert await produce(established, "before", 0, 1, 2) == {ErrorCode.NONE}
        assert await create(established, "meanwhile", PARTITIONS) == ErrorCode.NONE
        assert await produce(established, "meanwhile", *range(PARTITIONS)) == {ErrorCode.NONE}
        assert await fetched(established, "meanwhile", *range(PARTITIONS)) == {(ErrorCode.NONE, 1)}
        assert await delete(established, "meanwhile") == ErrorCode.NONE
        for client in crowd:
            await client.close()
        while await refused(port):
            await asyncio.sleep(0.01)
        await established.close()

    with Starved(data_dir=tmp_path) as broker:
        asyncio.run(asyncio.wait_for(test(broker.port), 60))
        assert 'reason="file descriptors are short: the limit on open files (ulimit -n) is 96"' in broker.log()
        assert "offline" not in broker.log()


@pytest.fixture
def without_descriptors(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Opens no file in directories of a name any more, and has no reserve; an empty name lets all be opened again."""
    real: Callable[..., int] = os.open
    forbidden = [""]

    def limited(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if forbidden[0] in Path(path).parts:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(path, flags, *rest, **options)

    def forbid(name: str) -> None:
        forbidden[0] = name

    monkeypatch.setattr(os, "open", limited)
    monkeypatch.setattr(Descriptors, "make_room", lambda *_: False)
    return forbid


def test_a_partition_comes_back_by_itself(tmp_path: Path, without_descriptors: Callable[[str], None]) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            server.broker.topics.create("t", 2)
            append_records(server.broker, "t", 0, 5)
        without_descriptors("t-0")
        async with serving(tmp_path) as server:
            partition = server.broker.topics.partition("t", 0)
            assert partition is not None
            assert partition.offline is not None
            await server.broker.periodic_tasks.regain_partitions()
            assert partition.offline is not None
            assert server.broker.topics.online_partition("t", 1)
            without_descriptors("")
            await until(lambda: partition.offline is None)
            assert partition.log.log_end_offset == 5
            append_records(server.broker, "t", 0, 1)
            # One that was in use is recovered.
            without_descriptors("t-0")
            partition.log._segments.active.release()
            with pytest.raises(KafkaError):
                append_records(server.broker, "t", 0, 1)
            without_descriptors("")
            await until(lambda: partition.offline is None)
            assert partition.log.log_end_offset == 6
            append_records(server.broker, "t", 0, 1)
        async with serving(tmp_path) as server:
            assert server.broker.topics.online_partition("t", 0).log.log_end_offset == 7

    asyncio.run(main())


def test_a_coordinator_loads_what_has_come_back(tmp_path: Path, without_descriptors: Callable[[str], None]) -> None:
    async def main() -> None:
        one = "offsets.topic.num.partitions=1"
        async with serving(tmp_path, one) as server:
            server.broker.groups.start()
            append_records(server.broker, "__consumer_offsets", 0, 1)
        without_descriptors("__consumer_offsets-0")
        async with serving(tmp_path, one) as server:
            await until(lambda: not server.broker.groups.loading())
            assert not list(server.broker.groups.active())
            without_descriptors("")
            await until(lambda: len(list(server.broker.groups.active())) == 1)

    asyncio.run(main())


def test_a_topic_is_created_wholly_or_not_at_all(tmp_path: Path, without_descriptors: Callable[[str], None]) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            topics = server.broker.topics
            end = server.broker.metadata_log.log.log_end_offset
            without_descriptors("t-3")
            with pytest.raises(KafkaError, match="Too many open files"):
                topics.create("t", 5)
            assert (topics.get("t"), server.broker.metadata_log.log.log_end_offset) == (None, end)
            assert not list(tmp_path.glob("t-[0-9]"))
            without_descriptors("")
            topics.create("t", 2)
            without_descriptors("t-3")
            with pytest.raises(KafkaError, match="Too many open files"):
                topics.add_partitions("t", 5)
            assert len(topics.online_partition("t", 0).topic.partitions) == 2
            topics.delete("t")
            assert not list(tmp_path.glob("t-[0-9]"))

    asyncio.run(main())


def test_the_reserve_is_filled_again(tmp_path: Path) -> None:
    spare = Descriptors()
    before = open_files()
    assert spare.fill()
    held = open_files() - before
    assert held > 0
    assert all(spare.make_room() for _ in range(held))
    assert not spare.make_room()
    assert open_files() == before


@pytest.mark.parametrize(("limit", "descriptor", "free"), [(1024, 895, True), (1024, 896, False), (96, 80, False)])
def test_high_descriptors_are_refused(limit: int, descriptor: int, free: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (limit, limit))
    assert (connections.refusal(descriptor) is None) == free
