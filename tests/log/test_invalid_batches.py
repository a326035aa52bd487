"""Invalid batches with a valid checksum: what is appended must survive recovery, and not affect other records."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, Compression, read_header, write_header
from kohort.protocol.records.compression import compress
from tests.log.batches import NOW, batch, open_log
from tests.log.test_append import refused

INT16 = st.sampled_from([-(2**15), -2, -1, 0, 1, 2**15 - 1])
INT32 = st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 999, 2**31 - 2, 2**31 - 1])
INT64 = st.sampled_from([-(2**63), -2, -1, 0, 1, NOW, 2**63 - 1])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "partition_leader_epoch": INT32, "attributes": st.integers(-(2**15), 2**15 - 1), "base_timestamp": INT64,
        "max_timestamp": INT64, "producer_id": INT64, "producer_epoch": INT16, "base_sequence": INT32,
    },
)  # fmt: skip
COUNTS = st.one_of(st.none(), st.sampled_from([0, 1, 2, 3, 999, 2**31 - 1]))
CONFIGS = [
    {},
    {"message_timestamp_type": "LogAppendTime"},
    {"compression_type": "uncompressed"},
    {"compression_type": "gzip"},
    {"cleanup_policy": frozenset({"compact"})},
]


@settings(max_examples=300)
@given(
    sent=st.lists(st.tuples(FIELDS, COUNTS, st.sampled_from([Compression.NONE, Compression.GZIP]))),
    config=st.sampled_from(CONFIGS),
)
def test_what_is_taken_outlives_a_crash(
    tmp_path_factory: pytest.TempPathFactory,
    sent: list[tuple[dict[str, int], int | None, Compression]],
    config: dict[str, object],
) -> None:
    path = tmp_path_factory.mktemp("log")
    log = open_log(path, **config)
    for fields, count, codec in sent:
        counts = {} if count is None else {"record_count": count, "last_offset_delta": count - 1}
        try:
            log.append(batch(2, codec=codec, **fields, **counts), now=NOW)
        except KafkaError as error:
            assert error.code is not ErrorCode.KAFKA_STORAGE_ERROR
    end = log.append(batch(3), now=NOW).last_offset + 1
    before = log.read(0, 1 << 20, up_to=end)
    log.close(clean=False)
    log = open_log(path, clean=False, **config)
    assert (log.offline, log.log_end_offset) == (None, end)
    assert log.read(0, 1 << 20, up_to=end) == before
    log.close()


def test_more_records_than_bytes_could_hold(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    liar = batch(1, record_count=1000, last_offset_delta=999)
    assert refused(lambda: log.append(liar, now=NOW)) == ErrorCode.INVALID_RECORD


def test_more_records_than_a_batch_expands_to(tmp_path: Path) -> None:
    """Each takes an offset: some billions at a time would make segments of one batch."""
    log = open_log(tmp_path)
    liar = batch(1, codec=Compression.GZIP, record_count=2**31 - 1, last_offset_delta=2**31 - 2)
    assert refused(lambda: log.append(liar, now=NOW)) == ErrorCode.INVALID_RECORD


def test_a_bomb_of_records_takes_little_more_memory_than_its_bytes(tmp_path: Path) -> None:
    """A compacted topic looks at every record."""
    count = 200_000
    packed = compress(Compression.ZSTD, b"\x0e\0\0\0\x02k\x01\0" * count)
    sent = bytearray(HEADER_SIZE) + packed
    size = len(sent) - LENGTH_END
    header = read_header(batch(1, codec=Compression.ZSTD))
    write_header(sent, header._replace(batch_length=size, record_count=count, last_offset_delta=count - 1))
    log = open_log(tmp_path, cleanup_policy=frozenset({"compact"}))
    tracemalloc.start()
    try:
        assert refused(lambda: log.append(bytes(sent), now=NOW)) == ErrorCode.INVALID_RECORD
        assert tracemalloc.get_traced_memory()[1] < 3 * 8 * count
    finally:
        tracemalloc.stop()


def test_records_that_expand_to_less_than_they_are(tmp_path: Path) -> None:
    log = open_log(tmp_path, compression_type="uncompressed")
    liar = batch(1, codec=Compression.GZIP, record_count=1000, last_offset_delta=999)
    assert refused(lambda: log.append(liar, now=NOW)) == ErrorCode.INVALID_RECORD
