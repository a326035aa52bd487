"""We read what Apache Kafka 4.2 wrote, compact as it does, and its own tool reads what we write."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.log import Aborted, Log, LogConfig, TimestampedOffset
from kohort.log.producer_snapshot import read_snapshot, write_snapshot
from kohort.log.producer_state import ProducerStates
from kohort.protocol.records.batch import Compression
from tests.interop.java.build import MAVEN_S
from tests.interop.java.jvm import Tools
from tests.log.batches import NOW, batch, everything, headers_of, open_log, records_of
from tests.tools import MAVEN

pytestmark = pytest.mark.timeout(MAVEN_S)

WRITTEN = Path(__file__).parent / "kafka"
START = 1_700_000_000_000
THEN = 1_795_268_352_000
"""Soon after Kafka wrote the files."""


def theirs(tmp_path: Path, name: str, *, clean: bool, policy: str = "delete", now: int = THEN) -> Log:
    shutil.copytree(WRITTEN / name, tmp_path / name)
    config = LogConfig(cleanup_policy=frozenset({policy}), producer_id_expiration_ms=10**15)
    return Log.open(tmp_path / name, config, now=now, clean=clean)


@pytest.mark.parametrize("clean", [True, False])
def test_we_read_kafkas_log(tmp_path: Path, clean: bool) -> None:
    log = theirs(tmp_path, "plain-0", clean=clean)
    assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset) == (0, 77, 76)
    records = records_of(log)
    expected = [
        (f"{codec}-{number}".encode(), (f"value {number} of {codec} " * 6).encode(), START + 1000 * (8 * turn + number))
        for turn, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd"))
        for number in range(8)
    ]
    assert [(record.key, record.value, record.timestamp) for record in records[:40]] == expected
    assert [record.key for record in records[40:49:3]] == [b"t0-0-0", b"t0-1-0", b"t0-2-0"]
    assert records[-1].key == b"undecided"
    assert log.aborted_transactions(0, 77) == [Aborted(4, 44), Aborted(5, 52), Aborted(5, 60), Aborted(6, 68)]
    assert log.offset_for_timestamp(START + 20_000) == TimestampedOffset(20, START + 20_000, 0)
    assert log.latest_epoch == 0
    assert {one.producer_id: one.last_sequence for one in log.producers()}[7] == 0


def test_a_restart_leaves_kafkas_files_as_they_are(tmp_path: Path) -> None:
    log = theirs(tmp_path, "plain-0", clean=False)
    log.close()
    for path in (WRITTEN / "plain-0").iterdir():
        assert (tmp_path / "plain-0" / path.name).read_bytes() == path.read_bytes(), path.name


def test_we_go_on_in_kafkas_log(tmp_path: Path) -> None:
    log = theirs(tmp_path, "plain-0", clean=True)
    sent = batch([(b"k", b"v")], producer=(7, 0), sequence=1, transactional=True)
    assert log.append(sent, now=THEN).base_offset == 77
    log.append_marker(7, 0, commit=True, coordinator_epoch=0, now=THEN)
    assert log.last_stable_offset == 79


@pytest.mark.parametrize(
    "path", sorted(WRITTEN.glob("*/*.snapshot")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_snapshots_come_out_as_they_came_in(tmp_path: Path, path: Path) -> None:
    producers = ProducerStates()
    for producer in read_snapshot(path.read_bytes()):
        producers.add(producer)
    write_snapshot(tmp_path, 5, producers)
    assert (tmp_path / "00000000000000000005.snapshot").read_bytes() == path.read_bytes()


def test_we_compact_as_kafka_does(tmp_path: Path) -> None:
    """The same batches, byte for byte; Kafka's began at offset 0, but nothing before 6 is left in it."""
    expected = WRITTEN / "compacted-0" / "00000000000000000000.log"
    scratch = theirs(tmp_path, "compacted-0", clean=True)
    horizon = headers_of(scratch)[0].delete_horizon
    assert horizon is not None
    now = horizon - 86_400_000
    log = theirs(tmp_path, "original-0", clean=False, policy="compact", now=now)
    plan = log.plan_compaction(now)
    assert plan is not None and plan.run() and log.finish_compaction(plan)
    directory = tmp_path / "original-0"
    assert (directory / "00000000000000000006.log").read_bytes() == expected.read_bytes()
    for suffix in (".index", ".txnindex"):
        made, wanted = directory / f"00000000000000000006{suffix}", expected.with_suffix(suffix)
        assert made.read_bytes() == wanted.read_bytes()


# Kafka's tool reads ours.


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    """Apache Kafka's tools, in one JVM."""
    MAVEN.require()
    tools = Tools()
    yield tools
    tools.close()


def dump(tools: Tools, paths: list[Path], *options: str) -> str:
    done = tools.run("kafka.tools.DumpLogSegments", *options, "--files", ",".join(map(str, paths)), seconds=120)
    assert done.code == 0, done.out + done.err
    return done.out


def base_offsets(said: str) -> list[int]:
    return [int(at) for at in re.findall(r"^baseOffset: (\d+)", said, re.MULTILINE)]


def written(path: Path) -> Log:
    """A log with something of everything, in several segments."""
    log = open_log(path, segment_bytes=1500, index_interval_bytes=200)
    for turn in range(6):
        for codec in Compression:
            log.append(batch(5, timestamp=NOW + turn, codec=codec), now=NOW, leader_epoch=turn // 2)
        for producer in (1, 2):
            sent = batch(2, producer=(producer, turn), transactional=True)
            log.append(sent, now=NOW, leader_epoch=turn // 2, transaction_version=2)
        for producer in (1, 2):
            log.append_marker(
                producer, turn + 1, commit=producer == 1, coordinator_epoch=3, now=NOW, transaction_version=2
            )
    log.append(batch(2, producer=(9, 0), transactional=True), now=NOW, leader_epoch=3)
    return log


def test_kafkas_tool_reads_our_files(tmp_path: Path, tools: Tools) -> None:
    log = written(tmp_path)
    headers, aborted = headers_of(log), log.aborted_transactions(0, log.log_end_offset)
    segments = len(log._segments)
    log.close()
    assert segments > 3
    directory = tmp_path / "topic-0"

    def of(suffix: str) -> list[Path]:
        return sorted(directory.glob(f"*{suffix}"))

    said = dump(tools, of(".log"), "--deep-iteration")
    assert base_offsets(said) == [one.base_offset for one in headers]
    assert said.count("isvalid: true") == len(headers)
    assert len(re.findall(r"^\| offset", said, re.MULTILINE)) == sum(header.record_count for header in headers)
    assert "Non-consecutive" not in said
    indexes = [*of(".index"), *of(".timeindex")]
    assert len(indexes) == 2 * segments
    checked = dump(tools, indexes, "--verify-index-only")
    assert not re.search("mismatch|not found|error|exception|not in order|corrupt", checked, re.IGNORECASE), checked
    assert len(re.findall(r"offset: \d+ position: \d+", dump(tools, of(".index")))) > segments
    producers = dump(tools, of(".snapshot")[-1:])
    assert re.search(r"producerId: 9 producerEpoch: 0 .*currentTxnFirstOffset: OptionalLong\[", producers), producers
    done = "producerId: 1 producerEpoch: 6 coordinatorEpoch: 3 currentTxnFirstOffset: OptionalLong.empty"
    assert done in producers
    transactions = dump(tools, of(".txnindex"))
    found = re.findall(r"producerId: (\d+) firstOffset: (\d+)", transactions)
    assert [Aborted(int(producer), int(first)) for producer, first in found] == aborted


def test_kafkas_tool_reads_what_we_compacted(tmp_path: Path, tools: Tools) -> None:
    log = written(tmp_path)
    log.append_marker(9, 0, commit=True, coordinator_epoch=3, now=NOW)
    log.append(batch([(b"gone", None)]), now=NOW)
    while len(log._segments) < 10:
        log.append(batch(5, codec=Compression.ZSTD), now=NOW)
    log.config = LogConfig(cleanup_policy=frozenset({"compact"}), index_interval_bytes=200)
    plan = log.plan_compaction(NOW)
    assert plan is not None and plan.run() and log.finish_compaction(plan)
    compacted = [header for header, _ in everything(log)]
    log.close()
    said = dump(tools, sorted((tmp_path / "topic-0").glob("*.log")), "--deep-iteration")
    assert base_offsets(said) == [one.base_offset for one in compacted]
    assert said.count("isvalid: true") == len(compacted)
    assert f"deleteHorizonMs: OptionalLong[{NOW + 86_400_000}]" in said
