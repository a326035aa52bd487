"""Records are what the header of their batch says: proved in columns where they are alike, else one by one."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.log import record_checks
from kohort.log.record_checks import InvalidRecordsError, TimestampRange, check_records
from kohort.log.slices import in_one_go
from kohort.protocol.errors import ErrorCode
from kohort.protocol.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, read_header
from kohort.protocol.records.rows import Headers, encode_records
from kohort.protocol.records.varint import read_varint, varint

NOW = 1_700_000_000_000


@pytest.fixture(autouse=True, params=["in Python", "compiled"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests with the compiled loop, and without."""
    if request.param == "in Python":
        monkeypatch.setattr(record_checks.KERNEL, "check", None)
    else:
        record_checks.KERNEL.load()
        assert record_checks.KERNEL.check is not None


ALL = TimestampRange(NOW - 10_000_000, NOW + 10_000_000)


def header_of(payload: bytes, count: int, base: int = NOW, latest: int | None = None) -> BatchHeader:
    header = read_header(bytes(encode_records([(None, b"")], base)))
    if latest is None:  # as it should be, or as nothing says otherwise
        try:
            latest = base + max(simple(payload, count), default=0)
        except ValueError:
            latest = base
    return header._replace(record_count=count, batch_length=HEADER_SIZE - 12 + len(payload), max_timestamp=latest)


def checked(
    payload: bytes,
    count: int,
    *,
    base: int = NOW,
    keyed: bool = False,
    timestamps: TimestampRange | None = ALL,
    latest: int | None = None,
) -> int:
    """The latest timestamp of records that are all right."""
    header = header_of(payload, count, base, latest)
    return in_one_go(check_records(payload, header, keyed=keyed, timestamps=timestamps))


def record(
    index: int, delta: int = 0, key: bytes | None = None, value: bytes | None = b"", headers: Headers = ()
) -> bytes:
    def sized(text: bytes | None) -> bytes:
        return varint(-1) if text is None else varint(len(text)) + text

    parts = [b"\0", varint(delta), varint(index), sized(key), sized(value), varint(len(headers))]
    for name, text in headers:
        parts += [sized(name.encode()), sized(text)]
    body = b"".join(parts)
    return varint(len(body)) + body


def simple(payload: bytes, count: int) -> list[int]:
    """The timestamp deltas, by the plainest parser there can be; ValueError where something is wrong."""
    deltas = []
    at = 0
    try:
        for index in range(count):
            length, at = read_varint(payload, at)
            end = at + length
            if length < 0 or end > len(payload):
                raise ValueError("length")
            delta, at = read_varint(payload, at + 1)
            place, at = read_varint(payload, at)
            if place != index:
                raise ValueError("offset")
            for _ in range(2):
                size, at = read_varint(payload, at)
                if size < -1:
                    raise ValueError("size")
                at += max(size, 0)
            number, at = read_varint(payload, at)
            if not 0 <= number <= len(payload):
                raise ValueError("headers")
            for _ in range(number):
                size, at = read_varint(payload, at)
                if size < 0:
                    raise ValueError("header")
                at += size
                size, at = read_varint(payload, at)
                if size < -1:
                    raise ValueError("header")
                at += max(size, 0)
                if at > end:
                    raise ValueError("header")
            if at != end:
                raise ValueError("end")
            deltas.append(delta)
    except IndexError:
        raise ValueError("cut off") from None
    if at != len(payload):
        raise ValueError("more")
    return deltas


def agree(payload: bytes, count: int) -> None:
    """The check and the plain parser come to the same, whatever the bytes are."""
    try:
        expected = max(NOW + delta for delta in simple(payload, count))
    except ValueError:
        with pytest.raises(InvalidRecordsError) as raised:
            checked(payload, count, timestamps=None)
        assert raised.value.code is ErrorCode.INVALID_RECORD
        assert 0 <= raised.value.errors[0].index < count
    else:
        for latest in (expected, expected + 1, expected - 1, NOW, NOW + 8191):  # what the header says may be wrong
            assert checked(payload, count, timestamps=None, latest=latest) == expected


def alike(count: int, key: bytes | None, value: bytes | None, deltas: Sequence[int]) -> bytes:
    return b"".join(record(index, deltas[index % len(deltas)], key, value) for index in range(count))


@st.composite
def batches(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records in runs that are alike, some long enough to be proved in columns."""
    records: list[bytes] = []
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.one_of(st.none(), st.binary(max_size=70)))
        value = draw(st.one_of(st.none(), st.binary(max_size=200)))
        deltas = draw(st.lists(st.integers(-3, 9_000), min_size=1, max_size=3))
        headers = draw(
            st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2)
        )
        for number in range(draw(st.sampled_from([1, 2, 9, 40, 80]))):
            records.append(record(len(records), deltas[number % len(deltas)], key, value, headers))
    return b"".join(records), len(records)


@given(batches())
def test_true_records_are_taken(batch: tuple[bytes, int]) -> None:
    agree(*batch)


@given(batches(), st.data())
def test_changed_records_are_taken_only_if_they_are_true(batch: tuple[bytes, int], data: st.DataObject) -> None:
    payload, count = batch
    changed = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place] = data.draw(st.one_of(st.integers(0, 255), st.just(changed[place] ^ 1)))
    agree(bytes(changed), count)
    agree(payload, max(1, count + data.draw(st.integers(-2, 2))))
    agree(payload[: data.draw(st.integers(0, len(payload)))], count)


def test_each_byte_of_records_that_are_alike_counts() -> None:
    """Every byte is changed to others, in a batch that is nearly all proved in columns."""
    generator = random.Random(7)
    payload = alike(100, b"key", b"v" * 70, [0, 70, 8])
    # Three records differ, and the others are like them. By steps of seven each of their bytes comes up several times.
    period, step = len(alike(3, b"key", b"v" * 70, [0, 70, 8])), 7
    assert period % step and len(payload) > step * period
    for place in range(0, len(payload), step):
        changed = bytearray(payload)
        changed[place] ^= generator.choice([1, 2, 64, 128, 255])
        agree(bytes(changed), 100)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 8191, 8192, 8193, 16500])
@pytest.mark.parametrize("deltas", [[0], [63, 0], [64, 100], [8191, 8192, 8500], [1_100_000, 1_100_008], [5, -1]])
def test_widths_of_offsets_and_timestamps(count: int, deltas: list[int]) -> None:
    payload = alike(count, None, b"x" * 60, deltas)
    assert checked(payload, count) == NOW + max(deltas[:count])


def test_records_that_are_alike_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one they would take 200 slices."""
    monkeypatch.setattr(record_checks, "RECORDS_A_SLICE", 40)
    monkeypatch.setattr(record_checks.KERNEL, "check", None)
    payload = alike(8000, None, b"x" * 100, [0, 1, 2])
    assert len(list(check_records(payload, header_of(payload, 8000), keyed=False, timestamps=ALL))) <= 12
    other = b"".join(record(index, 0, None, b"x" * (index % 7), [("h", None)]) for index in range(800))
    assert len(list(check_records(other, header_of(other, 800), keyed=False, timestamps=ALL))) == 20


def uneven(count: int, keys: Sequence[bytes | None], sizes: Sequence[int], deltas: Sequence[int] = (0, 1)) -> bytes:
    generator = random.Random(count)
    return b"".join(
        record(
            index,
            deltas[index * len(deltas) // count],
            keys[index % len(keys)],
            generator.randbytes(generator.choice(sizes)),
        )
        for index in range(count)
    )


@pytest.mark.parametrize("keys", [[None], [b""], [b"key"], [b"a", b"bc", None, b"", b"k" * 63]])
@pytest.mark.parametrize("sizes", [range(50, 150), range(70), range(60, 70), range(0, 3000, 7), [0, 1]])
def test_records_of_different_sizes_are_not_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch, keys: list[bytes | None], sizes: Sequence[int]
) -> None:
    """One by one they would take 100 slices."""
    monkeypatch.setattr(record_checks, "RECORDS_A_SLICE", 40)
    monkeypatch.setattr(record_checks.KERNEL, "check", None)
    payload = uneven(4000, keys, sizes, [0, 3, 1])
    assert len(list(check_records(payload, header_of(payload, 4000), keyed=False, timestamps=ALL))) <= 60
    agree(payload, 4000)


@pytest.mark.parametrize("deltas", [[0, 63, 64, 8191, 8192, 1_100_000], [9, -1, 9], [70, 3, 80]])
def test_widths_of_offsets_and_timestamps_where_sizes_differ(deltas: list[int]) -> None:
    payload = uneven(8400, [None, b"k"], range(40), deltas)
    assert checked(payload, 8400) == NOW + max(deltas)


@pytest.mark.parametrize("keys", [[None], [b"a", b"bcd"]])
def test_any_byte_that_is_changed_is_noticed_where_sizes_differ(keys: list[bytes | None]) -> None:
    generator = random.Random(6)
    payload = uneven(60, keys, range(50, 80))
    for place in range(len(payload)):
        changed = bytearray(payload)
        changed[place] ^= generator.choice([1, 2, 64, 128, 255])
        agree(bytes(changed), 60)


def test_a_compacted_topic_names_the_records_without_a_key() -> None:
    payload = b"".join(record(index, key=None if index in (3, 90) else b"k") for index in range(100))
    with pytest.raises(InvalidRecordsError) as raised:
        checked(payload, 100, keyed=True)
    assert [error.index for error in raised.value.errors] == [3, 90]
    assert raised.value.code is ErrorCode.INVALID_RECORD
    assert checked(payload, 100) == NOW
    with pytest.raises(InvalidRecordsError) as raised:
        checked(alike(500, None, b"", [0]), 500, keyed=True)
    assert len(raised.value.errors) == record_checks.MAX_NAMED


@pytest.mark.parametrize("bad", [3, 63, 64, 99])
@pytest.mark.parametrize("delta", [10_000_001, -10_000_001])
def test_a_timestamp_out_of_range_is_named(bad: int, delta: int) -> None:
    payload = b"".join(record(index, delta if index == bad else 8191) for index in range(100))
    with pytest.raises(InvalidRecordsError) as raised:
        checked(payload, 100)
    assert raised.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [error.index for error in raised.value.errors] == [bad]
    assert checked(payload, 100, timestamps=None) == NOW + max(delta, 8191)


def test_each_timestamp_that_is_too_late_is_named_whatever_the_latest_is_said_to_be() -> None:
    payload = alike(60, None, b"value", [200])
    with pytest.raises(InvalidRecordsError) as raised:
        checked(payload, 60, timestamps=TimestampRange(NOW, NOW + 100), latest=NOW + 3000)
    assert [error.index for error in raised.value.errors] == list(range(60))


def test_records_without_a_timestamp() -> None:
    assert checked(alike(100, None, b"", [0]), 100, base=NO_TIMESTAMP) == NO_TIMESTAMP
    with pytest.raises(InvalidRecordsError, match="timestamp 4"):
        checked(alike(100, None, b"", [0] * 50 + [5] * 50), 100, base=NO_TIMESTAMP)


def test_every_batch_that_our_own_code_makes_is_taken() -> None:
    generator = random.Random(3)
    pairs = [(b"k" * generator.randrange(3), b"v" * generator.randrange(90)) for _ in range(300)]
    assert checked(bytes(encode_records(pairs, NOW))[HEADER_SIZE:], 300) == NOW


def test_very_many_headers_of_one_record_are_looked_at_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = record(0, headers=[("", None)] * 20_000)
    monkeypatch.setattr(record_checks.KERNEL, "check", None)
    assert len(list(check_records(payload, header_of(payload, 1), keyed=False, timestamps=ALL))) >= 20
