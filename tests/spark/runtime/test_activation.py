"""What a task goes on from."""

from __future__ import annotations

import pytest

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.errors import ApplicationError
from kohort.spark.program.committed_metadata import Fingerprint, committed_by, metadata
from kohort.spark.runtime.activation import batches_begun, stream_time_of

AT = TopicPartition("s", 0)


def test_what_is_committed_beside_an_offset() -> None:
    p, q = Fingerprint("p"), Fingerprint("q")
    assert stream_time_of(None, AT, p) is None
    assert stream_time_of(committed_by(OffsetAndMetadata(1).metadata), AT, p) is None
    assert stream_time_of(committed_by("by hand"), AT, p) is None
    assert stream_time_of(committed_by(metadata(None, p)), AT, p) is None
    assert stream_time_of(committed_by(metadata(7, p)), AT, p) == 7
    assert stream_time_of(committed_by(metadata(7, p)), AT, Fingerprint("p", ("0a1b2c3d",))) == 7
    assert stream_time_of(committed_by(metadata(7, q)), AT, p, before=("q",)) == 7
    with pytest.raises(ApplicationError, match=r"s-0.*another version of the program"):
        stream_time_of(committed_by(metadata(7, q)), AT, p)


def begun_at(
    committed: dict[TopicPartition, OffsetAndMetadata | None], positions: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    said = {at: None if was is None else committed_by(was.metadata) for at, was in committed.items()}
    return batches_begun(committed, said, positions)


def test_a_batch_that_was_begun_counts_where_the_task_goes_on_there() -> None:
    begun = OffsetAndMetadata(7, metadata=metadata(None, Fingerprint("p"), 12))
    assert begun_at({AT: begun}, {AT: 7}) == {AT: 12}
    assert begun_at({AT: begun}, {AT: 9}) == {AT: 12}  # retention has deleted where it began
    assert begun_at({AT: begun}, {AT: 12}) == {}  # all of it
    assert begun_at({AT: begun}, {AT: 3}) == {}  # the topic is another one
    assert begun_at({AT: OffsetAndMetadata(7, metadata=metadata(5, Fingerprint("p")))}, {AT: 7}) == {}
    assert begun_at({AT: OffsetAndMetadata(7, metadata="by hand")}, {AT: 7}) == {}
    assert begun_at({AT: None}, {AT: 0}) == {}
