"""The offsets of records, as ranges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kohort.client.sharing.acknowledgements import OffsetSpan
from kohort.client.types import ShareRecord, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


def spans_of_records(records: Iterable[ShareRecord]) -> dict[TopicPartition, list[OffsetSpan]]:
    """Returns the ranges of records, by partition."""
    offsets: dict[TopicPartition, list[int]] = defaultdict(list)
    for record in records:
        offsets[TopicPartition(record.topic, record.partition)].append(record.offset)
    return {at: runs(found) for at, found in offsets.items()}


def spans_of_batch(batch: pa.RecordBatch | pa.Table) -> dict[TopicPartition, list[OffsetSpan]]:
    """Returns the ranges of a batch's rows, by partition; no Python object for a row if they're consecutive."""
    import pyarrow.compute as pc

    if not batch.num_rows:
        return {}
    found: dict[TopicPartition, list[OffsetSpan]] = {}
    topics = batch.column("topic")
    for topic in pc.unique(topics).to_pylist():
        of_topic = batch.filter(pc.equal(topics, topic)) if len(pc.unique(topics)) > 1 else batch
        partitions = pc.unique(of_topic.column("partition")).to_pylist()
        for number in partitions:
            rows = of_topic.filter(pc.equal(of_topic.column("partition"), number)) if len(partitions) > 1 else of_topic
            offsets = rows.column("offset")
            first, last = pc.min(offsets).as_py(), pc.max(offsets).as_py()
            consecutive = last - first + 1 == rows.num_rows
            found[TopicPartition(topic, number)] = (
                [OffsetSpan(first, last)] if consecutive else runs(offsets.to_pylist())
            )
    return found


def runs(offsets: Iterable[int]) -> list[OffsetSpan]:
    """Returns offsets as ranges, in order."""
    found: list[OffsetSpan] = []
    for offset in sorted(set(offsets)):
        if found and found[-1].last + 1 == offset:
            found[-1] = OffsetSpan(found[-1].first, offset)
        else:
            found.append(OffsetSpan(offset, offset))
    return found
