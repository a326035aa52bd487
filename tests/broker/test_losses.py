"""What a server says and counts when its data directory is damaged, and what it goes on with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kohort.broker.metrics.counters import Metrics
from kohort.broker.server import Server
from kohort.log import LogConfig
from kohort.log.damage import DamageKind
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.records.batch import read_header
from tests.broker.conftest import serving
from tests.broker.handlers.conftest import append_records
from tests.broker.raw import RawClient
from tests.broker.test_log_manager import METADATA, refused, server_with_topics
from tests.broker.test_metrics import METRICS, sample, scrape
from tests.waiting import until

ONE_PARTITION = "offsets.topic.num.partitions=1"


def run(directory: Path, test: Callable[[Server], Awaitable[None]], *settings: str) -> None:
    async def main() -> None:
        async with serving(directory, *settings, metrics=METRICS) as server:
            await asyncio.wait_for(test(server), 30)

    asyncio.run(main())


def flip(file: Path, position: int, bits: int = 1) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= bits
    file.write_bytes(content)


def batches(file: Path) -> list[tuple[int, int]]:
    """Base offsets and positions."""
    data, found, at = file.read_bytes(), [], 0
    while at < len(data):
        header = read_header(data, at)
        found.append((header.base_offset, at))
        at += header.size
    return found


async def commit(client: RawClient, group: str, offset: int) -> None:
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequest.Topic(name="t", partitions=[partition])
    request = OffsetCommitRequest(group_id=group, topics=[topic])
    response = await client.call(request, 7)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE


async def committed(client: RawClient, group: str) -> int:
    topic = OffsetFetchRequest.Topic(name="t", partition_indexes=[0])
    response = await client.call(OffsetFetchRequest(group_id=group, topics=[topic]), 7)
    offset: int = response.topics[0].partitions[0].committed_offset
    return offset


async def commits(server: Server) -> None:
    server.broker.topics.create("t", 1)
    client = await RawClient.connect(server.port)
    for number in range(10):
        await commit(client, f"g{number}", 100 + number)
    await client.close()


@pytest.mark.parametrize("at", [9, 10, 16, 40, 65], ids=["length", "length", "magic", "time", "payload"])
def test_a_damaged_batch_of_offsets_costs_that_group_alone(
    tmp_path: Path, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    """After a clean shutdown: the log isn't recovered, but the coordinator reads it."""
    run(tmp_path, commits, ONE_PARTITION)
    file = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    offset, position = batches(file)[4]
    flip(file, position + at, 0x20)
    caplog.clear()

    async def test(server: Server) -> None:
        await until(lambda: not server.broker.groups.loading())
        client = await RawClient.connect(server.port)
        found = [await committed(client, f"g{number}") for number in range(10)]
        assert found == [-1 if number == 4 else 100 + number for number in range(10)]
        await commit(client, "g4", 7)
        assert await committed(client, "g4") == 7
        await client.close()
        metrics = await scrape(server)
        assert sample(metrics, "kohort_log_lost_records_total") == 1
        assert sample(metrics, "kohort_log_damage_total", kind="damaged_batch") == 1

    run(tmp_path, test, ONE_PARTITION)
    (line,) = [record.message for record in caplog.records if "lost" in record.message]
    assert line.startswith(f"__consumer_offsets-0: offset {offset} is lost (1 record, ")
    assert line.endswith(f"kohort log check {tmp_path} --partition __consumer_offsets-0 --repair")


def test_a_missing_segment_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fill(server: Server) -> None:
        topic = server.broker.topics.create("t", 1)
        topic.partitions[0].log.config = LogConfig(segment_bytes=1000)
        for _ in range(20):
            append_records(server.broker, "t", 0, 10)
        assert topic.partitions[0].log.log_end_offset == 200

    run(tmp_path, fill)
    files = sorted((tmp_path / "t-0").glob("*.log"))
    first, following = int(files[1].stem), int(files[2].stem)
    files[1].unlink()
    caplog.clear()

    async def test(server: Server) -> None:
        metrics = await scrape(server)
        assert sample(metrics, "kohort_log_lost_records_total") == following - first
        assert sample(metrics, "kohort_log_damage_total", kind="missing_segment") == 1

    run(tmp_path, test)
    assert f"t-0: offsets {first} to {following - 1} are lost" in caplog.text


def test_a_missing_directory_of_a_partition_is_a_loss(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fill(server: Server) -> None:
        server.broker.topics.create("t", 2)
        append_records(server.broker, "t", 0, 10)

    run(tmp_path, fill)
    for file in (tmp_path / "t-0").iterdir():
        file.unlink()
    (tmp_path / "t-0").rmdir()

    async def test(server: Server) -> None:
        partition = server.broker.topics.online_partition("t", 0)
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (10, 10)

    run(tmp_path, test)
    assert "t-0: offsets 0 to 9 are lost (at most 10 records)" in caplog.text


def test_a_reader_of_a_damaged_batch_gets_an_error_and_others_go_on(tmp_path: Path) -> None:
    async def fill(server: Server) -> None:
        server.broker.topics.create("t", 1)
        for _ in range(3):
            append_records(server.broker, "t", 0, 10)

    run(tmp_path, fill)
    file = tmp_path / "t-0" / "00000000000000000000.log"
    flip(file, batches(file)[0][1] + 9, 0x20)

    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        partition = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(max_bytes=1 << 20, topics=[FetchRequest.Topic(topic="t", partitions=[partition])])
        for _ in range(2):
            answer = await client.call(request, 11)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE
        append_records(server.broker, "t", 0, 10)
        await client.close()
        assert sample(await scrape(server), "kohort_log_damage_total", kind="damaged_batch") == 1

    run(tmp_path, test)


def test_a_wrong_index_is_counted_and_readers_notice_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fill(server: Server) -> None:
        topic = server.broker.topics.create("t", 1)
        topic.partitions[0].log.config = LogConfig(index_interval_bytes=100)
        append_records(server.broker, "t", 0, 30)

    run(tmp_path, fill)
    index = tmp_path / "t-0" / "00000000000000000000.index"
    for position in range(7, index.stat().st_size - 8, 8):  # but for the last entry, which the start reads
        flip(index, position)

    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        for offset in range(30):
            asked = FetchRequest.Topic.Partition(partition=0, fetch_offset=offset, partition_max_bytes=1)
            request = FetchRequest(max_bytes=1 << 20, topics=[FetchRequest.Topic(topic="t", partitions=[asked])])
            part = (await client.call(request, 11)).responses[0].partitions[0]
            assert (part.error_code, read_header(part.records).base_offset) == (ErrorCode.NONE, offset)
        await client.close()
        metrics = await scrape(server)
        assert sample(metrics, "kohort_log_damage_total", kind="wrong_index") == 1
        assert sample(metrics, "kohort_log_lost_records_total") == 0

    run(tmp_path, test)
    (line,) = [record.message for record in caplog.records if "index" in record.message]
    assert line.startswith("t-0: 00000000000000000000.index says that the batch with offset ")
    assert line.endswith("The index is made anew from the log.")


def test_metadata_after_a_damage_is_set_aside_and_the_server_does_not_start(tmp_path: Path) -> None:
    """Not even the second time: what is left would be a cluster with fewer topics."""
    server_with_topics(tmp_path, 5)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    file = tmp_path / METADATA / "00000000000000000000.log"
    flip(file, batches(file)[2][1] + 70)
    for _ in range(2):
        assert ".log.aside" in str(refused(tmp_path))
    assert "kohort log check" in str(refused(tmp_path))


def test_every_kind_of_damage_has_its_metric() -> None:
    assert set(Metrics().damages) == set(DamageKind)
