"""Appends: validation, offsets, timestamps, compression, rolling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.log import Log, LogConfig, Origin
from kohort.log.records import rebuilt
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import Compression, check_batches, read_header
from tests.log.batches import NOW, batch, headers_of, open_log, pairs, records_of

COMPACT = frozenset({"compact"})


def refused(action: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        action()
    return caught.value.code


def test_offsets_are_consecutive(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.append(batch(3), now=NOW)[:4] == (0, 2, -1, 0)
    assert log.append(batch(2), now=NOW)[:2] == (3, 4)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (5, 5, 5)
    assert [record.offset for record in records_of(log)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_takes_any_buffer_and_leaves_it_alone(tmp_path: Path, wrap: Callable[[bytes], bytes]) -> None:
    sent = batch(2)
    given = wrap(sent)
    log = open_log(tmp_path)
    log.append(batch(), now=NOW)
    log.append(given, now=NOW, leader_epoch=7)
    assert bytes(given) == sent
    header = headers_of(log)[1]
    assert (header.base_offset, header.partition_leader_epoch) == (1, 7)


def message(magic: int) -> bytes:
    """One in the formats before batches, of 34 bytes."""
    return b"\0" * 8 + (22).to_bytes(4, "big") + b"\0" * 4 + bytes([magic]) + b"\0" * 17


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"\0" * 20, ErrorCode.CORRUPT_MESSAGE),
        (b"nonsense", ErrorCode.INVALID_RECORD),
        (batch()[:-1], ErrorCode.INVALID_RECORD),
        (batch()[:40], ErrorCode.INVALID_RECORD),
        (message(1), ErrorCode.INVALID_RECORD),
        (message(3), ErrorCode.CORRUPT_MESSAGE),
        (message(2), ErrorCode.CORRUPT_MESSAGE),
        (batch() + batch(), ErrorCode.INVALID_RECORD),
        (batch()[:-2] + b"xx", ErrorCode.CORRUPT_MESSAGE),
        (batch(magic=1), ErrorCode.INVALID_RECORD),
        (batch(base_offset=5), ErrorCode.INVALID_RECORD),
        (batch(2, last_offset_delta=2), ErrorCode.INVALID_RECORD),
        (batch(2, record_count=1), ErrorCode.INVALID_RECORD),
        (rebuilt(read_header(batch()), b"", 0, Compression.NONE, None), ErrorCode.INVALID_RECORD),
        (batch(attributes=0x20), ErrorCode.INVALID_RECORD),
        (batch(attributes=0x07), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (batch(attributes=0x10), ErrorCode.INVALID_RECORD),
        (batch(producer=(1, 0), sequence=-1), ErrorCode.INVALID_RECORD),
        (batch(producer=(1, -1)), ErrorCode.INVALID_RECORD),
        (batch(producer=(-7, 0)), ErrorCode.INVALID_RECORD),
        (batch([(b"k", b"v" * 1_048_588)]), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)  # fmt: skip
def test_refuses_what_kafka_refuses(tmp_path: Path, sent: bytes, code: ErrorCode) -> None:
    log = open_log(tmp_path)
    assert refused(lambda: log.append(sent, now=NOW)) == code
    assert (log.log_end_offset, log.size, log.offline) == (0, 0, None)


def test_a_timestamp_may_be_missing(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_timestamp_before_max_ms=10)
    log.append(batch(timestamp=-1), now=NOW)
    assert refused(lambda: log.append(batch(timestamp=NOW - 11), now=NOW)) == ErrorCode.INVALID_TIMESTAMP


def test_a_batch_larger_than_a_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100)
    assert refused(lambda: log.append(batch(10), now=NOW)) == ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("codec", list(Compression))
def test_compacted_topics_need_keys(tmp_path: Path, codec: Compression) -> None:
    log = open_log(tmp_path, cleanup_policy=COMPACT)
    without = batch([(b"a", b"1"), (None, b"2")], codec=codec)
    assert refused(lambda: log.append(without, now=NOW)) == ErrorCode.INVALID_RECORD
    assert log.append(batch([(b"a", b"1"), (b"b", None)], codec=codec), now=NOW).last_offset == 1


def test_compacted_topics_refuse_what_cannot_be_opened(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy=COMPACT)
    liar = batch(attributes=Compression.ZSTD)
    assert refused(lambda: log.append(liar, now=NOW)) == ErrorCode.INVALID_RECORD


def test_coordinators_need_no_sequences(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    records = batch(producer=(1, 0), sequence=-1, transactional=True)
    for expected in range(3):
        assert log.append(records, now=NOW, origin=Origin.COORDINATOR).base_offset == expected
    assert log.ongoing_since(1) == 0


def test_log_append_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_timestamp_type="LogAppendTime")
    assert log.append(batch(2, timestamp=5), now=NOW).log_append_time == NOW
    assert {record.timestamp for record in records_of(log)} == {NOW}
    assert headers_of(log)[0].log_append_time


@pytest.mark.parametrize("given", list(Compression))
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_topics_may_want_a_codec(tmp_path: Path, given: Compression, wanted: str) -> None:
    log = open_log(tmp_path, compression_type=wanted)
    log.append(batch(20, codec=given, producer=(3, 0), sequence=0), now=NOW)
    header = headers_of(log)[0]
    assert header.compression == (0 if wanted == "uncompressed" else Compression[wanted.upper()])
    assert (header.producer_id, header.record_count) == (3, 20)
    assert [(record.key, record.value) for record in records_of(log)] == pairs(20)


def test_a_codec_makes_no_batch_too_large(tmp_path: Path) -> None:
    log = open_log(tmp_path, compression_type="uncompressed", max_message_bytes=300)
    sent = batch([(b"k", b"v" * 1000)], codec=Compression.GZIP)
    assert len(sent) < 300
    assert refused(lambda: log.append(sent, now=NOW)) == ErrorCode.MESSAGE_TOO_LARGE


def test_leader_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch, count in ((0, 2), (0, 1), (3, 2), (5, 1)):
        log.append(batch(count), now=NOW, leader_epoch=epoch)
    log.close()
    log = open_log(tmp_path)
    assert log.latest_epoch == 5
    ends = {epoch: tuple(log.end_offset_for_epoch(epoch)) for epoch in (-1, 0, 2, 3, 4, 5, 6)}
    assert ends == {-1: (-1, -1), 0: (0, 3), 2: (0, 3), 3: (3, 5), 4: (3, 5), 5: (5, 6), 6: (-1, -1)}


def test_settings_may_change_at_any_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(10), now=NOW)
    log.config = LogConfig(max_message_bytes=100)
    assert refused(lambda: log.append(batch(10), now=NOW)) == ErrorCode.MESSAGE_TOO_LARGE


def test_what_is_on_disk_is_what_was_sent(tmp_path: Path) -> None:
    """Only base offset and leader epoch differ, which the checksum doesn't cover."""
    sent = batch(4, codec=Compression.LZ4)
    log = open_log(tmp_path)
    log.append(batch(), now=NOW)
    log.append(sent, now=NOW, leader_epoch=2)
    data = log.read(1, 1 << 20, up_to=5)
    assert data[16:] == sent[16:]
    assert check_batches(data)[0].partition_leader_epoch == 2


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    log: Log = open_log(tmp_path)
    log.close()
    assert refused(lambda: log.append(batch(), now=NOW)) == ErrorCode.KAFKA_STORAGE_ERROR
