"""Compaction against a dictionary; tombstones, transactions, and crashes at every step of the swap."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import Log, LogConfig, Origin
from kohort.log.compaction import CompactionPlan
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, Compression, read_header, write_header
from kohort.protocol.records.varint import varint
from tests.log.batches import NOW, batch, everything, headers_of, open_log, records_of

DAY = 86_400_000
CONFIG: dict[str, Any] = {
    "cleanup_policy": frozenset({"compact"}),
    "segment_bytes": 400,
    "index_interval_bytes": 100,
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": DAY,
}


def opened(path: Path, *, clean: bool = True, **config: Any) -> Log:
    return open_log(path, clean=clean, **{**CONFIG, **config})


def put(log: Log, *records: tuple[bytes, bytes | None], now: int = NOW, **fields: Any) -> None:
    log.append(batch(records, timestamp=now, **fields), now=now)


def compact(log: Log, now: int = NOW) -> CompactionPlan | None:
    plan = log.plan_compaction(now)
    if plan is not None:
        assert plan.run()
        assert log.finish_compaction(plan)
    return plan


def roll(log: Log) -> None:
    """What is there may be compacted now."""
    config, log.config = log.config, replace(log.config, segment_ms=-1)
    log.roll_if_due(NOW)
    log.config = config


def contents(log: Log) -> dict[bytes, bytes | None]:
    """What a reader of committed records knows in the end."""
    aborted = {(one.producer_id, one.first_offset) for one in log.aborted_transactions(0, log.log_end_offset)}
    found: dict[bytes, bytes | None] = {}
    open_aborted: set[int] = set()
    for header, records in everything(log):
        for producer_id, first in list(aborted):
            if first <= header.last_offset:
                open_aborted.add(producer_id)
                aborted.discard((producer_id, first))
        if header.control:
            open_aborted.discard(header.producer_id)
        elif not (header.transactional and header.producer_id in open_aborted):
            found.update({record.key: record.value for record in records if record.key is not None})
    return {key: value for key, value in found.items() if value is not None}


def offsets(log: Log) -> list[int]:
    return [record.offset for record in records_of(log)]


def test_the_latest_record_of_a_key_stays(tmp_path: Path) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"c", b"1"), (b"b", b"2"))
    roll(log)
    put(log, (b"a", b"3"))
    plan = compact(log)
    assert plan is not None
    assert plan.bytes_after < plan.bytes_before
    assert offsets(log) == [2, 3, 4, 5]  # the active segment doesn't count
    assert (log.log_end_offset, log.cleaned_offset) == (6, 5)
    assert compact(log) is None


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
STEPS = st.one_of(
    st.tuples(
        st.just("put"),
        st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=30))), min_size=1, max_size=6),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([Compression.NONE, Compression.GZIP]),
    ),
    st.tuples(st.just("end"), st.sampled_from([1, 2]), st.booleans(), st.none()),
    st.tuples(st.just("compact"), st.integers(0, 2 * DAY), st.none(), st.none()),
    st.tuples(st.just("roll"), st.none(), st.none(), st.none()),
    st.tuples(st.just("reopen"), st.booleans(), st.none(), st.none()),
)


@settings(max_examples=120)
@given(steps=st.lists(STEPS, max_size=30))
def test_readers_know_the_same_as_before(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    """Whatever was put, rolled, committed, aborted, restarted in between: compaction changes no reader's end state."""
    path = tmp_path_factory.mktemp("log")
    log = opened(path)
    sequences = {1: 0, 2: 0}
    now = NOW
    for kind, first, second, codec in steps:
        match kind:
            case "put" if second is None:
                put(log, *first, codec=codec)
            case "put":
                put(log, *first, codec=codec, producer=(second, 0), sequence=sequences[second], transactional=True)
                sequences[second] += len(first)
            case "end":
                log.append_marker(first, 0, commit=second, coordinator_epoch=0, now=NOW)
            case "roll":
                roll(log)
            case "reopen":
                log.close(clean=first)
                log = opened(path, clean=first)
            case "compact":
                now += first
                before, end, stable = contents(log), log.log_end_offset, log.last_stable_offset
                known = {one.producer_id: one for one in log.producers()}
                cleaned_to = log.cleaned_offset
                plan = compact(log, now)
                assert (log.log_end_offset, log.last_stable_offset) == (end, stable)
                assert contents(log) == before
                if plan is not None and plan.bytes_before:
                    assert log.cleaned_offset > cleaned_to
                    check_compacted(log, plan)
                    assert {one.producer_id: one for one in log.producers()} == known
    before, end = contents(log), log.log_end_offset
    log.close(clean=False)
    log = opened(path, clean=False)
    assert (contents(log), log.log_end_offset) == (before, end)
    log.close()


def check_compacted(log: Log, plan: CompactionPlan) -> None:
    """No key is there twice in what was compacted, and nothing of aborted transactions."""
    keys = [record.key for record in records_of(log) if record.offset < plan.cleaned_offset]
    assert len(keys) == len(set(keys))
    # The last batch stays, if only as a header, so that the last offset isn't lost with it.
    assert [one.next_offset for one in headers_of(log) if one.base_offset < plan.until][-1] == plan.until


def test_tombstones_stay_until_everybody_has_had_the_time_to_read_them(tmp_path: Path) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))
    roll(log)
    compact(log, NOW)
    assert offsets(log) == [1, 2]
    horizon = headers_of(log)[1].delete_horizon
    assert horizon == NOW + DAY
    assert records_of(log)[1].timestamp == NOW
    for now, left in ((NOW + DAY - 1, [1, 2, 3]), (NOW + DAY, [1, 3, 4])):
        put(log, (b"c", str(now).encode()))
        roll(log)
        compact(log, now)
        assert offsets(log)[:1] + [at for at in offsets(log) if at == 2] == left[:1] + [at for at in left if at == 2]
    assert contents(log) == {b"b": b"1", b"c": str(NOW + DAY).encode()}


def test_a_tombstone_is_of_use_while_an_older_value_may_be_read(tmp_path: Path) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"))
    roll(log)
    put(log, (b"a", None))
    compact(log)
    assert contents(log) == {}
    assert offsets(log) == [0, 1]


def test_aborted_records_go_and_the_marker_later(tmp_path: Path) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"aborted"), producer=(1, 0), transactional=True)
    log.append_marker(1, 0, commit=False, coordinator_epoch=0, now=NOW)
    put(log, (b"b", b"1"), producer=(1, 0), sequence=1, transactional=True)
    log.append_marker(1, 0, commit=True, coordinator_epoch=0, now=NOW)
    roll(log)
    compact(log)
    assert offsets(log) == [0, 3]
    assert contents(log) == {b"a": b"1", b"b": b"1"}
    markers = [header.base_offset for header in headers_of(log) if header.control]
    assert markers == [2, 4]
    for now in (NOW + 1, NOW + 2 * DAY):
        put(log, (b"x", b"%d" % now))
        roll(log)
        compact(log, now)
    assert [header.base_offset for header in headers_of(log) if header.control] == [4]
    assert log.aborted_transactions(0, log.log_end_offset) == []


def test_nothing_of_an_ongoing_transaction_is_compacted(tmp_path: Path) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"), producer=(1, 0), transactional=True)
    roll(log)
    put(log, (b"a", b"3"))
    roll(log)
    assert compact(log) is None
    log.append_marker(1, 0, commit=True, coordinator_epoch=0, now=NOW)
    compact(log)
    assert offsets(log) == [2]


def test_the_last_sequence_of_a_producer_stays(tmp_path: Path) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"), producer=(1, 0))
    put(log, (b"a", b"2"), producer=(2, 0))
    put(log, (b"a", b"3"))
    roll(log)
    compact(log)
    assert offsets(log) == [2]
    assert [(header.producer_id, header.record_count) for header in headers_of(log)] == [(1, 0), (2, 0), (-1, 1)]
    log.close()
    for snapshot in (tmp_path / "topic-0").glob("*.snapshot"):
        snapshot.unlink()
    log = opened(tmp_path)
    assert log.append(batch([(b"a", b"1")], producer=(1, 0)), now=NOW).duplicate


def test_whether_it_is_worth_it(tmp_path: Path) -> None:
    log = opened(tmp_path, min_cleanable_dirty_ratio=0.5)
    for _ in range(10):
        put(log, (b"a", b"1" * 50))
    roll(log)
    plan = log.plan_compaction(NOW)
    assert plan is not None and plan.dirty_ratio == 1.0
    compact(log)
    put(log, (b"b", b"1"))
    roll(log)
    assert log.plan_compaction(NOW) is None  # 50%, and more is asked for
    put(log, (b"b", b"1"))
    roll(log)
    plan = log.plan_compaction(NOW)
    assert plan is not None and 0.5 < plan.dirty_ratio < 0.7


def test_lags(tmp_path: Path) -> None:
    log = opened(tmp_path, min_compaction_lag_ms=1000)
    put(log, (b"a", b"1"))
    roll(log)
    put(log, (b"a", b"2"), now=NOW + 500)
    roll(log)
    assert log.plan_compaction(NOW + 999) is None
    plan = log.plan_compaction(NOW + 1200)
    assert plan is not None and plan.until == 1
    log.config = LogConfig(**{**CONFIG, "min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 5000})
    assert log.plan_compaction(NOW + 5000) is None
    assert log.plan_compaction(NOW + 5001) is not None
    put(log, (b"a", b"2"))
    log.roll_if_due(NOW + 5002)
    assert log.plan_compaction(NOW + 5002) is not None


def test_only_compacted_topics_are(tmp_path: Path) -> None:
    log = opened(tmp_path, cleanup_policy=frozenset({"delete"}))
    put(log, (b"a", b"1"))
    roll(log)
    assert log.plan_compaction(NOW) is None


def test_small_segments_become_one(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=100_000)
    for number in range(9):
        put(log, (b"%d" % number, b"1"))
        roll(log)
    assert len(log._segments) == 10
    compact(log)
    assert len(log._segments) == 2
    assert offsets(log) == list(range(9))
    assert log.offset_for_timestamp(NOW) is not None


def test_the_log_may_move_on_meanwhile(tmp_path: Path) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"), (b"a", b"2"))
    roll(log)
    plan = log.plan_compaction(NOW)
    assert plan is not None
    put(log, (b"a", b"3"))
    assert plan.run()
    put(log, (b"a", b"4"))
    roll(log)
    assert log.finish_compaction(plan)
    assert offsets(log) == [1, 2, 3]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_segment_deleted_meanwhile_undoes_it(tmp_path: Path, when: str) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"), (b"a", b"2"))
    roll(log)
    put(log, (b"b", b"1"))
    plan = log.plan_compaction(NOW)
    assert plan is not None
    if when == "before":
        log.delete_records(2)
        assert not plan.run()
    else:
        assert plan.run()
        log.delete_records(2)
        assert not log.finish_compaction(plan)
    assert not list((tmp_path / "topic-0").glob("*.cleaned"))
    assert offsets(log) == [2]


def test_little_memory_takes_several_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.log.cleaner._MAP_BYTES", 400)
    log = opened(tmp_path)
    for number in range(40):
        put(log, (b"%d" % (number % 10), b"%d" % number))
    roll(log)
    before = contents(log)
    rounds = 0
    while log.plan_compaction(NOW) is not None:
        compact(log)
        rounds += 1
    assert 1 < rounds < 20
    assert contents(log) == before
    assert offsets(log) == list(range(30, 40))


def test_a_crash_at_any_step_of_the_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is copied before every change of a name; each copy opens with the same contents."""
    log = opened(tmp_path)
    for number in range(12):
        put(log, (b"%d" % (number % 4), b"%d" % number * 10))
    put(log, (b"0", b"aborted"), producer=(1, 0), transactional=True)
    log.append_marker(1, 0, commit=False, coordinator_epoch=0, now=NOW)
    roll(log)
    before, end = contents(log), log.log_end_offset
    copies: list[Path] = []

    def crash_before(name: str) -> None:
        real: Callable[..., Any] = getattr(Path, name)

        def spied(path: Path, *args: Any, **kwargs: Any) -> Any:
            copies.append(tmp_path / f"copy {len(copies)}")
            shutil.copytree(tmp_path / "topic-0", copies[-1] / "topic-0")
            return real(path, *args, **kwargs)

        monkeypatch.setattr(Path, name, spied)

    crash_before("replace")
    crash_before("unlink")
    compact(log)
    monkeypatch.undo()
    copies.append(tmp_path)
    log.close()
    assert len(copies) > 20
    for copy in copies:
        for clean in (False, True):
            again = opened(copy, clean=clean)
            assert (contents(again), again.log_end_offset) == (before, end)
            put(again, (b"x", b"1"))
            again.close(clean=False)
            assert not [path for path in (copy / "topic-0").iterdir() if path.suffix in (".swap", ".cleaned")]
            end += 1
            before[b"x"] = b"1"
        end -= 2
        del before[b"x"]


def test_a_batch_that_cannot_be_read_stops_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = opened(tmp_path, cleanup_policy=frozenset({"delete"}))
    log.append(batch(3, attributes=Compression.ZSTD), now=NOW, origin=Origin.COORDINATOR)  # it isn't
    roll(log)
    log.config = LogConfig(**CONFIG)
    plan = log.plan_compaction(NOW)
    assert plan is not None
    assert not plan.run()
    assert "can't be compacted" in caplog.text
    assert not log.finish_compaction(plan)
    assert log.cleaned_offset == 0
    assert log.offline is None
    assert len(headers_of_raw(log)) == 1


def test_a_damaged_record_does_not_become_a_valid_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Compaction writes what is left of a batch with a new checksum."""
    log = opened(tmp_path)
    put(log, (b"a", b"one"), (b"b", b"two"))
    put(log, (b"a", b"three"))
    roll(log)
    file = log.directory / "00000000000000000000.log"
    before = file.read_bytes().replace(b"two", b"owt")
    file.write_bytes(before)
    plan = log.plan_compaction(NOW)
    assert plan is not None
    assert not plan.run()
    assert "checksum" in caplog.text
    assert f"kohort log check {tmp_path} --partition topic-0 --repair" in caplog.text
    assert not log.finish_compaction(plan)
    assert (file.read_bytes(), log.offline) == (before, None)


def headers_of_raw(log: Log) -> bytes:
    return log.read(0, 17, up_to=3)[16:17]


def test_a_transaction_aborted_long_ago_hides_nothing(tmp_path: Path) -> None:
    """A producer that aborted once deletes a key: the value must not come back when the tombstone goes."""
    log = opened(tmp_path)
    put(log, (b"a", b"1"))
    put(log, (b"x", b"aborted"), producer=(1, 0), transactional=True)
    log.append_marker(1, 0, commit=False, coordinator_epoch=0, now=NOW)
    roll(log)
    compact(log)
    put(log, (b"a", None), producer=(1, 0), sequence=1, transactional=True)
    log.append_marker(1, 0, commit=True, coordinator_epoch=0, now=NOW)
    roll(log)
    compact(log)
    assert offsets(log) == [3]
    for now in (NOW + DAY, NOW + 3 * DAY):
        put(log, (b"b", b"1"), now=now)
        roll(log)
        compact(log, now)
    assert contents(log) == {b"b": b"1"}


@pytest.mark.parametrize("delta", [DAY, 2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_a_record_that_lies_about_its_time(tmp_path: Path, delta: int) -> None:
    """Compaction looks at records, whose times nobody has checked: the batch's own, which was, is a limit."""
    log = opened(tmp_path)
    record = b"\0" + varint(delta) + b"\0\x02l\x020\0"
    body = varint(len(record)) + record + b"\x10\0\0\x02\x02a\x020\0"
    header = read_header(batch(2))
    sent = bytearray(HEADER_SIZE) + body
    write_header(sent, header._replace(batch_length=len(sent) - LENGTH_END))
    log.append(bytes(sent), now=NOW, origin=Origin.COORDINATOR)  # as another broker's log may have it
    put(log, (b"a", b"1"))
    roll(log)
    compact(log)
    assert offsets(log) == [0, 2]
    assert [header.max_timestamp <= NOW for header in headers_of(log)] == [True, True]


def test_a_compaction_may_be_called_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = opened(tmp_path)
    put(log, (b"a", b"1"), (b"a", b"2"))
    roll(log)
    plan = log.plan_compaction(NOW)
    assert plan is not None
    plan.cancelled = True
    assert not plan.run()
    assert not log.finish_compaction(plan)
    assert offsets(log) == [0, 1]
    assert not caplog.records
