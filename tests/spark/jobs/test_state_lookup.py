"""The stages that bring partials and prior values together."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.config import ClientConfig
from kohort.spark import reading
from kohort.spark.epoch import EpochStatistics, OffsetRange
from kohort.spark.jobs.drop_reasons import NO_WINDOW
from kohort.spark.jobs.errors import StoredValueError
from kohort.spark.jobs.stages.late_partials import LATE
from kohort.spark.jobs.stages.state_lookup import StateLookup, read_partials_stage, state_lookup_stage
from kohort.spark.program.internal_columns import KEY, PARTITION, RECORDS, TIMESTAMP
from tests.spark.jobs.fakes import FakeReader, FakeRpc, splits

STATE = pa.schema([pa.field("n", pa.int64()), pa.field("mean.sum", pa.string())])
PLAIN = StateLookup("s", STATE)
HOURS = StateLookup("s", STATE, 4_200_000)
SERVERS = ClientConfig(bootstrap_servers="127.0.0.1:1")
HOUR = 1_357_016_400_000  # 2013-01-01T05:00:00Z


def key(hour: int) -> bytes:
    return b'{"window":"2013-01-01T%02d:00:00.000Z","origin":"JFK"}' % hour


def state(n: int, total: str) -> bytes:
    return json.dumps({"records": n, "state": {"n": n, "mean.sum": total}}).encode()


def read(
    rpc: FakeRpc,
    records: list[tuple[int, int, int, bytes, bytes]],
    state_lookup: StateLookup,
    monkeypatch: pytest.MonkeyPatch,
) -> list[dict[str, object]]:
    monkeypatch.setattr(reading, "shared", lambda servers: FakeReader(records), raising=False)
    rpc.ranges = tuple(OffsetRange("t", number, 0, 100) for number in range(3))
    stage = read_partials_stage(rpc.context, SERVERS, state_lookup)
    return [row for batch in stage(splits(0)) for row in batch.to_pylist()]


def test_each_key_gets_its_prior_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc({("s", 0): {b"a": b'{"n":9,"state":{"n":9,"mean.sum":"4.5"}}'}, ("s", 1): {}})
    records = [(0, 1, 50, b"a", state(1, "1.0")), (0, 2, 60, b"a", state(2, "2.0")), (1, 7, 70, b"b", state(3, "3.0"))]
    rows = read(rpc, records, PLAIN, monkeypatch)
    assert [tuple(row.values()) for row in rows] == [
        (0, "a", 50, 1, 1, "1.0"),
        (0, "a", 60, 2, 2, "2.0"),
        (1, "b", 70, 3, 3, "3.0"),
        (0, "a", None, 0, 9, "4.5"),
    ]
    report = rpc.reports["rows"]
    assert (report.records, report.late, report.max_times) == (3, 0, {0: 60, 1: 70})
    (one,) = report.reads
    assert (one.records, one.bytes, one.partitions) == (3, report.bytes, ("t-0", "t-1", "t-2"))
    assert 0 < one.fetch_ms + one.decode_ms <= one.took_ms
    assert sorted(rpc.asked) == [b"a", b"b"]


def test_partials_of_closed_windows_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    end = HOUR + 3_600_000 + 600_000  # of the window at five, and its grace
    records = [
        (0, 1, 1, key(5), state(2, "1.0")),
        (1, 1, 1, key(5), state(3, "1.0")),
        (0, 2, 1, key(6), state(4, "1.0")),
        (1, 2, end, key(6), state(5, "1.0")),
        (1, 3, 1, key(5), state(6, "1.0")),
    ]
    rpc = FakeRpc(stream_times={0: end, 1: end - 1})
    rows = read(rpc, records, HOURS, monkeypatch)
    kept = sorted((row[PARTITION], row["_state0"]) for row in rows)  # type: ignore[type-var]
    assert kept == [(0, 4), (1, 3), (1, 5)]
    assert rpc.reports["rows"].late == 2 + 6
    assert sorted(rpc.asked) == [key(5), key(6), key(6)]


def test_nothing_to_read_is_reported_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rpc = FakeRpc()
    assert read(rpc, [], HOURS, monkeypatch) == []
    assert rpc.reports["rows"].records == 0


@pytest.mark.parametrize("value", [b"no", b'{"state":1}'])
def test_what_others_wrote_there_is_refused(monkeypatch: pytest.MonkeyPatch, value: bytes) -> None:
    with pytest.raises(StoredValueError, match="topic t"):
        read(FakeRpc(), [(0, 1, 1, b"a", value)], PLAIN, monkeypatch)


def test_a_key_without_window_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoredValueError, match="no window"):
        read(FakeRpc(), [(0, 1, 1, b"a", state(1, "1"))], HOURS, monkeypatch)


@given(
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 23)), st.integers(1, 9), max_size=12),
    st.sets(st.tuples(st.integers(0, 2), st.integers(0, 23)), max_size=12),
    st.dictionaries(st.integers(0, 2), st.integers(1, 9)),
    st.dictionaries(st.integers(0, 2), st.integers(1, 9)),
)
def test_in_a_window_or_not_and_prior_or_not(
    partials: dict[tuple[int, int], int],
    known: set[tuple[int, int]],
    late: dict[int, int],
    without: dict[int, int],
) -> None:
    rpc = FakeRpc()
    for number, hour in known:
        rpc.stores.setdefault(("s", number), {})[key(hour)] = b'{"state":{"n":100,"mean.sum":null}}'
    keyed = [(number, key(hour).decode(), n) for (number, hour), n in partials.items()]
    outside = [(number, LATE, n) for number, n in late.items()]
    outside += [(number, NO_WINDOW, n) for number, n in without.items()]
    rows = [
        {PARTITION: number, KEY: text, TIMESTAMP: 1, RECORDS: n, "_state0": n, "_state1": "x"}
        for number, text, n in sorted(keyed + outside, key=lambda each: each[2])
    ]
    batches = [
        pa.RecordBatch.from_pylist(rows[start : start + 5], schema=HOURS.schema) for start in range(0, len(rows), 5)
    ]
    found = [row for batch in state_lookup_stage(rpc.context, HOURS)(iter(batches)) for row in batch.to_pylist()]
    expected = keyed + [(number, key(hour).decode(), 100) for number, hour in partials if (number, hour) in known]
    assert sorted((row[PARTITION], row[KEY], row["_state0"]) for row in found) == sorted(expected)
    read = rpc.reports.get("state lookup", EpochStatistics())
    assert (read.late, read.reasons.get(NO_WINDOW, 0)) == (sum(late.values()), sum(without.values()))
