"""kafka-dump-log reads what a server leaves on disk: segments, indexes, producer snapshots, coordinators' records."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kohort.protocol.messages.metadata import MetadataRequest

from ..broker.handlers.share_state import codes, delete, initialize, write
from ..broker.raw import RawClient
from .java.jvm import Tools
from .servers import new_server
from .topics import create_topic

RECORDS = 3000
VALUE = b"v" * 1000
COMPLAINTS = re.compile(
    r"isvalid: false|[Mm]ismatch|Non-consecutive|out of order|[Cc]orrupt|could not|invalid", re.ASCII
)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a server leaves: topic `t` with some segments, topic `transactions` with one committed and one aborted
    transaction, a group's offset in it, the delivery state of a share partition.
    """
    server = new_server(
        tmp_path_factory.mktemp("server"), {"share.coordinator.snapshot.update.records.per.snapshot": "2"}
    )
    try:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        create_topic(admin, "t", 1, {"segment.bytes": "1048576", "index.interval.bytes": "4096"})
        create_topic(admin, "transactions", 1, {"segment.bytes": "1048576"})
        write_segments(server.bootstrap)
        write_transactions(server.bootstrap)
        asyncio.run(write_share_state(server.port))
    finally:
        server.stop()
    return server.data_dir


def write_segments(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 20})
    for number in range(RECORDS):
        producer.produce("t", VALUE, key=f"key-{number}", headers={"n": str(number)})
    assert producer.flush(30) == 0


def write_transactions(bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "dumped"})
    producer.init_transactions(20)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        # Enough for a second segment, so that the first one's files are complete.
        for _ in range(1000):
            producer.produce("transactions", VALUE)
        offsets = [TopicPartition("transactions", 0, 5)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 20)
        assert producer.flush(30) == 0
        end(20)
    consumer.close()


async def write_share_state(port: int) -> None:
    """The state of a share partition: initialized, updated until there is another snapshot, and deleted."""
    client = await RawClient.connect(port)
    topics = (await client.call(MetadataRequest(topics=[MetadataRequest.Topic(name="t")]))).topics
    topic_id = topics[0].topic_id
    responses = [await client.call(initialize(topic_id, 0))]
    responses += [await client.call(write(topic_id, 0, start_offset=each)) for each in range(3)]
    responses.append(await client.call(delete(topic_id, 0)))
    assert [codes(response) for response in responses] == [[(0, 0)]] * 5
    await client.close()


def dump(tools: Tools, file: Path, *options: str) -> list[str]:
    """What kafka-dump-log prints about a file, which must be without complaints."""
    done = tools.run("kafka.tools.DumpLogSegments", *options, "--files", str(file))
    assert (done.code, done.err) == (0, ""), f"{file}: {done.out}{done.err}"
    complaints = [line for line in done.lines if COMPLAINTS.search(line)]
    assert not complaints, f"{file}: {complaints[:5]}"
    return done.lines[1:]


def dump_all(tools: Tools, files: Iterable[Path], *options: str) -> list[str]:
    return [line for file in sorted(files) for line in dump(tools, file, *options)]


def numbers(lines: list[str], field: str) -> list[int]:
    return [int(found[1]) for line in lines if (found := re.search(rf"\b{field}: (-?\d+)", line))]


def test_segments(tools: Tools, data_dir: Path) -> None:
    partition = data_dir / "t-0"
    segments = sorted(partition.glob("*.log"))
    assert len(segments) > 2
    lines = dump_all(tools, segments, "--deep-iteration", "--print-data-log")
    records = [line for line in lines if line.startswith("| ")]
    assert numbers(records, "offset") == list(range(RECORDS))
    assert all(f"headerKeys: [n] key: key-{n} payload: vvv" in line for n, line in enumerate(records))
    batches = [line for line in lines if line.startswith("baseOffset")]
    assert len(batches) >= RECORDS // 20
    for segment in segments:
        assert dump(tools, segment)[0] == f"Log starting offset: {int(segment.stem)}"


def test_indexes(tools: Tools, data_dir: Path) -> None:
    partition = data_dir / "t-0"
    segments = sorted(partition.glob("*.log"))
    for kind in ("index", "timeindex"):
        for segment in segments:
            index = segment.with_suffix(f".{kind}")
            dump(tools, index, "--verify-index-only")
            entries = dump(tools, index)
            if segment != segments[-1]:
                assert entries, f"{index} is empty"
            offsets = numbers(entries, "offset")
            assert offsets == sorted(offsets)
            passed = dump(tools, index, "--index-sanity-check")
            assert passed == [f"{index} passed sanity check."]


def test_producer_snapshots(tools: Tools, data_dir: Path) -> None:
    partition = data_dir / "t-0"
    *_, last = sorted(partition.glob("*.snapshot"))
    (producer,) = dump(tools, last)
    assert numbers([producer], "lastSequence") == [RECORDS - 1]
    assert numbers([producer], "lastOffset") == [RECORDS - 1]


def test_aborted_transactions(tools: Tools, data_dir: Path) -> None:
    partition = data_dir / "transactions-0"
    aborted = dump_all(tools, partition.glob("*.txnindex"))
    assert numbers(aborted, "firstOffset") == [1001]
    assert numbers(aborted, "lastOffset") == [2001]
    lines = dump_all(tools, partition.glob("*.log"), "--print-data-log")
    markers = [found[1] for line in lines if (found := re.search(r"endTxnMarker: (\w+)", line))]
    assert markers == ["COMMIT", "ABORT"]


def test_committed_offsets(tools: Tools, data_dir: Path) -> None:
    lines = dump_all(tools, data_dir.glob("__consumer_offsets-*/*.log"), "--offsets-decoder")
    key = '{"type":"1","data":{"group":"g","topic":"transactions","partition":0}}'
    committed = [line for line in lines if f"key: {key}" in line]
    assert [re.search(r'"offset":(\d+)', line)[1] for line in committed if '"offset"' in line] == ["5", "5"]  # type: ignore[index]
    assert [found[1] for line in lines if (found := re.search(r"endTxnMarker: (\w+)", line))] == ["COMMIT", "ABORT"]


def test_transaction_states(tools: Tools, data_dir: Path) -> None:
    lines = dump_all(tools, data_dir.glob("__transaction_state-*/*.log"), "--transaction-log-decoder")
    records = [line for line in lines if 'key: {"type":"0","data":{"transactionalId":"dumped"}}' in line]
    states = [int(found[1]) for line in records if (found := re.search(r'"transactionStatus":(\d)', line))]
    empty, ongoing, prepare_commit, prepare_abort, complete_commit, complete_abort = range(6)
    ends = [state for state in states if state not in (empty, ongoing)]
    assert (states[0], ends) == (empty, [prepare_commit, complete_commit, prepare_abort, complete_abort])


def test_share_states(tools: Tools, data_dir: Path) -> None:
    lines = dump_all(tools, data_dir.glob("__share_group_state-*/*.log"), "--share-group-state-decoder")
    records = [found.groups() for line in lines if (found := re.search(r"key: (\{.*\}) payload: (.*)", line))]
    kinds = [re.search(r'"type":"(\d)"', key)[1] for key, _ in records]  # type: ignore[index]
    assert kinds == ["0", "1", "1", "0", "0"]
    snapshot = records[3][1]
    assert '"snapshotEpoch":1,"stateEpoch":1,"leaderEpoch":0,"startOffset":2,"deliveryCompleteCount":3' in snapshot
    assert '"stateBatches":[{"firstOffset":3,"lastOffset":5,"deliveryState":2,"deliveryCount":1}]' in snapshot
    assert records[4][1] == "<DELETE>"
