"""Which records of a batch are named when it is refused, and with which error, as Kafka's LogValidator does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kohort.log.record_checks import MAX_NAMED, InvalidRecordsError
from kohort.protocol.errors import ErrorCode
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, Compression, read_header, write_header
from tests.log.batches import NOW, batch, headers_of, open_log
from tests.log.test_record_checks import record

HOUR = 3_600_000
LATE = NOW + HOUR + 1
COMPACT = {"cleanup_policy": frozenset({"compact"})}
INVALID_TIMESTAMP, INVALID_RECORD = ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD


def timed(*timestamps: int, keys: Sequence[bytes | None] = (), base: int = NOW) -> bytes:
    """A batch of records with these timestamps, and this base timestamp."""
    found = keys or [b"k"] * len(timestamps)
    records = (record(index, when - base, found[index], b"v") for index, when in enumerate(timestamps))
    content = bytearray(batch()[:HEADER_SIZE] + b"".join(records))
    count, size = len(timestamps), len(content) - LENGTH_END
    header = read_header(content)._replace(batch_length=size, record_count=count, last_offset_delta=count - 1)
    write_header(content, header._replace(base_timestamp=base, max_timestamp=base))
    return bytes(content)


def changed(data: bytes, at: int, byte: int) -> bytes:
    """With another byte of the records, and a checksum to match."""
    content = bytearray(data)
    content[HEADER_SIZE + at] = byte
    write_header(content, read_header(content))
    return bytes(content)


def refusal(path: Path, sent: bytes, **config: Any) -> tuple[ErrorCode, list[int]]:
    log = open_log(path, **config)
    with pytest.raises(InvalidRecordsError) as caught:
        log.append(sent, now=NOW)
    assert (log.log_end_offset, log.size, log.offline) == (0, 0, None)
    return caught.value.code, [each.index for each in caught.value.errors]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP], ids=["plain", "compressed"])
def test_each_record_that_is_too_late_is_named(tmp_path: Path, codec: Compression) -> None:
    sent = batch(3, LATE, codec=codec)
    assert refusal(tmp_path, sent) == (INVALID_TIMESTAMP, [0, 1, 2])


@pytest.mark.parametrize("count", [3, 60])
def test_only_those_that_are_out_of_range_are_named(tmp_path: Path, count: int) -> None:
    times = [NOW] * count
    times[1], times[-1] = LATE, LATE
    assert refusal(tmp_path, timed(*times)) == (INVALID_TIMESTAMP, [1, count - 1])


@pytest.mark.parametrize("count", [3, 60])
def test_each_record_that_is_too_early_is_named(tmp_path: Path, count: int) -> None:
    """Records that are alike are proved together: their first timestamp isn't in range because a later one is."""
    sent = timed(*[NOW - HOUR - 1] * count)
    config = {"message_timestamp_before_max_ms": HOUR}
    assert refusal(tmp_path, sent, **config) == (INVALID_TIMESTAMP, list(range(count)))


def test_no_more_than_a_hundred_are_named(tmp_path: Path) -> None:
    code, named = refusal(tmp_path, batch(1000, LATE))
    assert (code, named) == (INVALID_TIMESTAMP, list(range(MAX_NAMED)))


def test_a_record_has_one_error_and_a_missing_key_comes_first(tmp_path: Path) -> None:
    assert refusal(tmp_path, timed(LATE, LATE, keys=[None, None]), **COMPACT) == (INVALID_RECORD, [0, 1])


def test_one_timestamp_makes_it_an_invalid_timestamp(tmp_path: Path) -> None:
    sent = timed(NOW, NOW, LATE, keys=[None, b"k", b"k"])
    assert refusal(tmp_path, sent, **COMPACT) == (INVALID_TIMESTAMP, [0, 2])


def test_log_append_time_from_a_client(tmp_path: Path) -> None:
    assert refusal(tmp_path, batch(2, attributes=0x08)) == (INVALID_TIMESTAMP, [0, 1])


@pytest.mark.parametrize(
    ("at", "byte"),
    [(0, 0x7E), (2, 0xFF), (3, 4), (4, 3), (4, 0x7E), (0, 1)],
    ids=["longer than the batch", "endless timestamp", "offset delta", "size of the key", "key beyond", "negative"],
)
def test_garbage_inside_a_valid_checksum(tmp_path: Path, at: int, byte: int) -> None:
    sent = batch([(b"k", b"v"), (b"k", b"v")])
    assert refusal(tmp_path, changed(sent, at, byte)) == (INVALID_RECORD, [0])
    size = (len(sent) - HEADER_SIZE) // 2
    assert refusal(tmp_path, changed(sent, size + at, byte)) == (INVALID_RECORD, [1])


@pytest.mark.parametrize("latest", [NOW - 5, NOW + HOUR + 1, 2**63 - 1, -(2**63)])
def test_the_latest_timestamp_is_that_of_the_records(tmp_path: Path, latest: int) -> None:
    """What the header says of it doesn't count."""
    log = open_log(tmp_path)
    log.append(batch(3, max_timestamp=latest), now=NOW)
    assert [header.max_timestamp for header in headers_of(log)] == [NOW]


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("base", [2**63 - 1, -(2**63)])
@pytest.mark.parametrize("limit", [HOUR, 2**63 - 1])
def test_timestamps_at_the_ends_of_the_range(tmp_path: Path, count: int, base: int, limit: int) -> None:
    """A sum of base and delta that doesn't fit into a header is out of any range."""
    beyond = base + 1 if base > 0 else base - 1
    config = {"message_timestamp_before_max_ms": limit, "message_timestamp_after_max_ms": limit}
    code, named = refusal(tmp_path, timed(*[beyond] * count, base=base), **config)
    assert (code, named) == (INVALID_TIMESTAMP, list(range(count)))
