"""What a task goes on from."""

from __future__ import annotations

import pytest

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.program.committed import metadata
from kohort.spark.runtime.activation import stream_time_of
from kohort.spark.runtime.errors import ApplicationError

AT = TopicPartition("s", 0)


def test_what_is_committed_beside_an_offset() -> None:
    assert stream_time_of(None, AT, "p") is None
    assert stream_time_of(OffsetAndMetadata(1), AT, "p") is None
    assert stream_time_of(OffsetAndMetadata(1, metadata="by hand"), AT, "p") is None
    assert stream_time_of(OffsetAndMetadata(1, metadata=metadata(None, "p")), AT, "p") is None
    assert stream_time_of(OffsetAndMetadata(1, metadata=metadata(7, "p")), AT, "p") == 7
    with pytest.raises(ApplicationError, match=r"s-0.*another version of the program"):
        stream_time_of(OffsetAndMetadata(1, metadata=metadata(7, "q")), AT, "p")
