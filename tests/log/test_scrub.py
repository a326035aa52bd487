"""A scrub finds what a disk has changed in a log that was closed cleanly, while the log is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.log import Log
from kohort.log.damage import DamageKind, Range
from kohort.log.files import LOG
from kohort.log.scrub import SegmentScrub
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.log.batches import NOW, batch
from tests.log.test_damage import PER_BATCH, SMALL, flip, opened, readable, segments, written


def go_on() -> bool:
    return True


def scrub(log: Log) -> None:
    for part in log.plan_scrub():
        assert part.run(go_on)
        log.finish_scrub(part)


def test_nothing_is_wrong(tmp_path: Path) -> None:
    written(tmp_path)
    log, found = opened(tmp_path)
    log.append(batch(), now=NOW)
    plan = log.plan_scrub()
    log.append(batch(), now=NOW)  # meanwhile
    for part in plan:
        assert part.run(go_on)
        log.finish_scrub(part)
    assert len(plan) > 3
    assert found == []
    log.close()


@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_flipped_byte_is_told_once_and_nobody_gets_it(tmp_path: Path, number: int) -> None:
    """In a record: headers lead past it, so that no reader but one who checks would notice."""
    _, sizes = written(tmp_path)
    file = segments(tmp_path)[number]
    first = int(file.stem)
    flip(file, 70)
    log, found = opened(tmp_path)
    assert log.read(first, 10_000, up_to=log.log_end_offset)
    assert found == []
    scrub(log)
    scrub(log)
    (damage,) = found
    assert (damage.kind, damage.lost) == (DamageKind.DAMAGED_BATCH, (Range(first, first + PER_BATCH),))
    assert "checksum" in str(damage)
    assert "Readers get CORRUPT_MESSAGE there" in str(damage)
    with pytest.raises(KafkaError) as caught:
        log.read(first, 10_000, up_to=log.log_end_offset)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert readable(log) == sizes.keys() - {first}
    log.close()


def test_a_segment_that_is_gone_or_another_meanwhile(tmp_path: Path) -> None:
    written(tmp_path)
    flip(segments(tmp_path)[0], 70)
    log, found = opened(tmp_path)
    first, *_, last = log.plan_scrub()
    assert first.run(go_on)
    log.delete_records(first.end_offset)
    log.finish_scrub(first)
    assert found == []
    with pytest.raises(FileNotFoundError):
        first.run(go_on)
    log.close()
    log.finish_scrub(last)
    with pytest.raises(KafkaError):
        log.plan_scrub()


def test_a_scrub_that_is_ended(tmp_path: Path) -> None:
    written(tmp_path)
    log, _ = opened(tmp_path)
    asked = iter([True, False])
    part = log.plan_scrub()[0]
    assert not part.run(lambda: next(asked))
    assert next(asked, None) is None
    log.close()


def test_it_reads_up_to_where_the_segment_ended(tmp_path: Path) -> None:
    """What is being written behind that may not be whole yet."""
    log = Log.open(tmp_path / "topic-0", SMALL, now=NOW, clean=True)
    log.append(batch(), now=NOW)
    (part,) = log.plan_scrub()
    with part.path.open("ab") as file:
        file.write(bytes(100))
    assert part == SegmentScrub(part.segment, part.segment.path(LOG), part.segment.size, 1)
    assert part.run(go_on)
    assert part.gaps == []
    log.close(clean=False)
