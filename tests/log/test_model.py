"""A log against a model, a list: random operations, with crashes."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kohort.log import Aborted, Log, LogConfig
from kohort.protocol.records.batch import Compression, check_batches
from tests.log.batches import NOW, batch, headers_of

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100, retention_ms=1000)
PRODUCERS = (1, 2, 3)


@dataclass
class Known:
    """A batch as the model has it: its offsets, and the producer whose transaction it belongs to."""

    base: int
    last: int
    timestamp: int
    producer: int | None = None


class LogModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.now = NOW
        self.batches: list[Known] = []
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.last_sent: dict[int, tuple[bytes, int, int]] = {}
        self.ongoing: dict[int, int] = {}
        self.aborted: list[tuple[Aborted, int]] = []
        self.start = self.end = 0

    @initialize()
    def open(self) -> None:
        self.log = Log.open(self.path / "topic-0", CONFIG, now=self.now, clean=True)

    def teardown(self) -> None:
        self.log.close(clean=False)
        shutil.rmtree(self.path)

    @rule(count=st.integers(1, 5), codec=st.sampled_from([Compression.NONE, Compression.LZ4]))
    def append(self, count: int, codec: Compression) -> None:
        self.log.append(batch(count, timestamp=self.now, codec=codec), now=self.now)
        self.wrote(count, None)

    @rule(producer=st.sampled_from(PRODUCERS), count=st.integers(1, 3))
    def append_in_transaction(self, producer: int, count: int) -> None:
        sequence = self.sequences[producer]
        sent = batch(count, timestamp=self.now, producer=(producer, 0), sequence=sequence, transactional=True)
        done = self.log.append(sent, now=self.now)
        assert (done.base_offset, done.duplicate) == (self.end, False)
        self.last_sent[producer] = sent, done.base_offset, done.last_offset
        self.sequences[producer] += count
        self.ongoing.setdefault(producer, self.end)
        self.wrote(count, producer)

    @rule(producer=st.sampled_from(PRODUCERS))
    def send_again(self, producer: int) -> None:
        if producer in self.last_sent:
            sent, base, last = self.last_sent[producer]
            done = self.log.append(sent, now=self.now)
            assert (done.base_offset, done.last_offset, done.duplicate) == (base, last, True)

    @rule(producer=st.sampled_from(PRODUCERS), commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        self.log.append_marker(producer, 0, commit=commit, coordinator_epoch=0, now=self.now)
        first = self.ongoing.pop(producer, None)
        if first is not None and not commit:
            self.aborted.append((Aborted(producer, first), self.end))
        self.wrote(1, producer)

    @rule(clean=st.booleans(), flushed=st.booleans())
    def restart(self, clean: bool, flushed: bool) -> None:
        point = self.log.flush() if flushed else self.log.flushed_offset
        self.log.close(clean=clean)
        self.log = Log.open(
            self.path / "topic-0", CONFIG, now=self.now, clean=clean, recovery_point=point, log_start_offset=self.start
        )

    @rule(where=st.floats(0, 1))
    def delete_records(self, where: float) -> None:
        self.start += int(where * (self.end - self.start))
        assert self.log.delete_records(self.start) == self.start

    @rule(later=st.integers(0, 900))
    def time_goes_by(self, later: int) -> None:
        self.now += later
        self.log.enforce_retention(self.now)
        assert self.start <= self.log.log_start_offset <= self.end
        # Whatever is gone was old.
        for known in self.batches:
            if self.start <= known.last < self.log.log_start_offset:
                assert self.now - known.timestamp > CONFIG.retention_ms
        self.start = self.log.log_start_offset

    def wrote(self, count: int, producer: int | None) -> None:
        self.batches.append(Known(self.end, self.end + count - 1, self.now, producer))
        self.end += count

    @invariant()
    def offsets_are_right(self) -> None:
        log = self.log
        assert (log.offline, log.log_start_offset, log.log_end_offset) == (None, self.start, self.end)
        assert log.last_stable_offset == max(min(self.ongoing.values(), default=self.end), self.start)
        assert {one: log.ongoing_since(one) for one in self.ongoing} == self.ongoing

    @invariant()
    def batches_are_right(self) -> None:
        left = [(known.base, known.last) for known in self.batches if known.last >= self.start]
        assert [(header.base_offset, header.last_offset) for header in headers_of(self.log)] == left

    @rule(data=st.data())
    def look_up(self, data: st.DataObject) -> None:
        left = [known for known in self.batches if known.last >= self.start]
        if not left:
            return
        offset = data.draw(st.integers(self.start, self.end - 1))
        first = check_batches(self.log.read(offset, 1, up_to=self.end))[0]
        assert first.base_offset <= offset <= first.last_offset
        timestamp = data.draw(st.integers(left[0].timestamp, self.now + 1))
        found = self.log.offset_for_timestamp(timestamp)
        wanted = next((known for known in left if known.timestamp >= timestamp), None)
        assert (found and found.offset) == (wanted and max(wanted.base, self.start))
        upper = data.draw(st.integers(offset + 1, self.end))
        told = self.log.aborted_transactions(offset, upper)
        assert told == [one for one, marker in self.aborted if marker >= offset and one.first_offset < upper]


TestLog = LogModel.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=40)
