import json

import pyarrow as pa
import pytest

from kohort.spark.epoch import DEAD_SCHEMA, ROWS_SCHEMA, EpochOutput, EpochStatistics
from kohort.spark.jobs.output_values import output_values
from kohort.spark.runtime import epoch_writes as epoch_writes_module
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.epoch_writes import epoch_writes, first_unreadable
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan, TopicOutput, Unreadable
from kohort.spark.runtime.window_closing import Windows, window_text

HOUR = 3_600_000


def _rows(*rows: tuple[bytes, bytes | None, int | None]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([row[0] for row in rows], pa.binary()),
            "value": pa.array([row[1] for row in rows], pa.binary()),
            "partition": pa.array([row[2] for row in rows], pa.int32()),
            "route": pa.nulls(len(rows), pa.binary()),
            "timestamp": pa.array([1_000] * len(rows), pa.int64()),
        },
        schema=ROWS_SCHEMA,
    )


def _key(start: int, name: str = "a") -> bytes:
    return json.dumps({"window": window_text(start), "k": name}, separators=(",", ":")).encode()


def _value(n: int) -> bytes:
    return json.dumps({"n": n, "state": {"n": n}}, separators=(",", ":")).encode()


def _nothing(store: str, partition: int, start: bytes, end: bytes) -> pa.Table:
    return _page({}, start, end)


def _page(content: dict[bytes, bytes], start: bytes, end: bytes) -> pa.Table:
    pairs = sorted((key, value) for key, value in content.items() if start <= key < end)
    return pa.table(
        {"key": pa.array([k for k, _ in pairs], pa.binary()), "value": pa.array([v for _, v in pairs], pa.binary())}
    )


def test_what_the_world_sees() -> None:
    keys = pa.array([b'{"window":"w","k":"a"}', b"{}", b'{"a":1}', b'{"a":1}', b'{"a":1}'], pa.binary())
    values = pa.array(
        [
            b'{"n":1,"s":{"state":{"x":1}},"state":{"n":1,"t":"a,\\"state\\":{","u":"}{"}}',
            b'{"n":1,"state":{"n":1}}', b'{"n":"\\u00e9","state":{}}', b'{"state":{}}', None,
        ],
        pa.binary(),
    )  # fmt: skip
    assert output_values(keys, values).to_pylist() == [
        b'{"window":"w","k":"a","n":1,"s":{"state":{"x":1}}}',
        b'{"n":1}', b'{"a":1,"n":"\\u00e9"}', b'{"a":1}', None,
    ]  # fmt: skip
    assert len(output_values(keys.slice(0, 0), values.slice(0, 0))) == 0


def test_updates_go_to_outputs_and_the_changelogs_of_their_partitions() -> None:
    store_output = StoreOutput("counts", "changelog", outputs=("one", "two"))
    plan = SubtopologyPlan("0", SubtopologyInputs("s", {}), {0: TopicOutput("plain"), 1: store_output})
    rows = _rows((b'{"k":"a"}', _value(1), 0), (b'{"k":"b"}', _value(2), 1), (b'{"k":"c"}', _value(3), 0))
    out = epoch_writes(
        plan,
        EpochOutput({0: _rows((b"x", b"y", None)), 1: rows}, EpochStatistics()),
        None,
        {0: None, 1: None},
        _nothing,
    )
    assert [topic for topic, _ in out.sent] == ["plain", "one", "two"]
    assert out.sent[1][1]["value"].to_pylist() == [b'{"k":"a","n":1}', b'{"k":"b","n":2}', b'{"k":"c","n":3}']
    assert {key: table["key"].to_pylist() for key, table in out.changelogs.items()} == {
        ("counts", "changelog", 0): [b'{"k":"a"}', b'{"k":"c"}'],
        ("counts", "changelog", 1): [b'{"k":"b"}'],
    }
    assert out.records == 1 + 3 + 3 + 3


@pytest.mark.parametrize("taken", [0, 2**30])
def test_rows_of_a_changelog_keep_their_order_however_many_batches_they_come_in(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_writes_module, "_TAKEN", taken)
    rows = [(b"%d" % number, b"", number * 7 % 3 + 1) for number in range(100)]
    plan = SubtopologyPlan("0", SubtopologyInputs("s", {}), {0: StoreOutput("counts", "c")})
    batches = pa.concat_tables([_rows(*rows[start : start + 10]) for start in range(0, 100, 10)])
    writes = epoch_writes(plan, EpochOutput({0: batches}, EpochStatistics(100)), None, {1: None, 2: None}, _nothing)
    assert {partition: table["key"].to_pylist() for (_, _, partition), table in writes.changelogs.items()} == {
        number: [key for key, _, partition in rows if partition == number] for number in (1, 2, 3)
    }
    if taken:
        assert {table["key"].num_chunks for table in writes.changelogs.values()} == {1}


def test_routed_rows_keep_their_routes() -> None:
    plan = SubtopologyPlan("0", SubtopologyInputs("s", {}), {0: TopicOutput("repartition", routed=True)})
    rows = _rows((b"k", b"v", None)).set_column(3, ROWS_SCHEMA.field("route"), pa.array([b"r"], pa.binary()))
    out = epoch_writes(plan, EpochOutput({0: rows}, EpochStatistics()), None, {0: None}, _nothing)
    assert out.routed[0][1].to_pylist() == [{"key": b"k", "value": b"v", "timestamp": 1_000, "route": b"r"}]


def test_windows_are_told_once_when_they_close_and_forgotten_later() -> None:
    store_output = StoreOutput("counts", "changelog", Windows(HOUR, 0, 2 * HOUR), ("out",), on_close=True)
    plan = SubtopologyPlan("0", SubtopologyInputs("s", {}), {0: store_output})
    store: dict[bytes, bytes] = {}
    told = []
    time = None
    for now, fresh in ((0, {_key(0): 1}), (HOUR - 1, {_key(0): 2}), (HOUR, {_key(0, "b"): 5, _key(HOUR): 1}), (
        4 * HOUR, {_key(4 * HOUR): 7, _key(HOUR): 3}), (9 * HOUR, {})):  # fmt: skip
        rows = _rows(*((key, _value(n), 3) for key, n in fresh.items()))
        read = EpochStatistics(max_times={3: now})
        out = epoch_writes(
            plan, EpochOutput({0: rows}, read), None, {3: time}, lambda _s, _p, start, end: _page(store, start, end)
        )
        for _, table in out.sent:
            told.append([(json.loads(row["value"]), row["timestamp"]) for row in table.to_pylist()])
        for table in out.changelogs.values():
            for row in table.to_pylist():
                if row["value"] is None:
                    del store[row["key"]]
                else:
                    store[row["key"]] = row["value"]
        time = now
    zero, one, four = (window_text(start) for start in (0, HOUR, 4 * HOUR))
    assert told == [
        [({"window": zero, "k": "a", "n": 2}, HOUR - 1), ({"window": zero, "k": "b", "n": 5}, HOUR - 1)],
        [({"window": one, "k": "a", "n": 3}, 2 * HOUR - 1)],
        [({"window": four, "k": "a", "n": 7}, 5 * HOUR - 1)],
    ]
    assert store == {}


def test_tables_are_kept_and_nothing_else() -> None:
    plan = SubtopologyPlan(
        "0", SubtopologyInputs(None, {"table": "t"}), tables={"table": StoreOutput("table", "changelog")}
    )
    out = epoch_writes(
        plan,
        EpochOutput({0: _rows((b"a", b"{}", 0), (b"b", None, 0))}, EpochStatistics()),
        "table",
        {0: None},
        _nothing,
    )
    assert out.sent == [] and out.changelogs["table", "changelog", 0]["value"].to_pylist() == [b"{}", None]


def test_dead_letters() -> None:
    dead = pa.Table.from_pylist(
        [{"topic": "s", "partition": 2, "offset": at, "timestamp": 5, "key": None, "value": b"?", "error": "not JSON",
          "headers": [("trace", b"id")]} for at in (8, 7)],
        schema=DEAD_SCHEMA,
    )  # fmt: skip
    plan = SubtopologyPlan(
        "0", SubtopologyInputs("s", {}), unreadable={"s": Unreadable(stop=False, dead_letters="dead")}
    )
    out = epoch_writes(plan, EpochOutput({}, EpochStatistics(dead=dead)), None, {2: None}, _nothing)
    ((topic, table),) = out.sent
    assert topic == "dead" and table["value"].to_pylist() == [b"?", b"?"]
    assert table["headers"].to_pylist()[0] == [
        {"key": "trace", "value": b"id"},
        {"key": "__streams.errors.message", "value": b"not JSON"}, {"key": "__streams.errors.topic", "value": b"s"},
        {"key": "__streams.errors.partition", "value": b"2"}, {"key": "__streams.errors.offset", "value": b"8"},
    ]  # fmt: skip
    assert first_unreadable(plan, dead) is None
    assert first_unreadable(SubtopologyPlan("0", SubtopologyInputs("s", {})), dead) == "s-2, offset 7: not JSON"
    assert first_unreadable(plan, DEAD_SCHEMA.empty_table()) is None
