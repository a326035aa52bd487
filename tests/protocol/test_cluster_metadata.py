from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.errors import ProtocolError
from kohort.protocol.stored.cluster_metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_metadata,
    encode_metadata,
)

ID = uuid.UUID(int=7)

RECORDS: list[MetadataRecord] = [
    TopicRecord(name="orders", topic_id=ID),
    PartitionRecord(partition_id=3, topic_id=ID, replicas=(1,), isr=(1,), leader=1, leader_epoch=0, directories=(ID,)),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None),
    RemoveTopicRecord(topic_id=ID),
    FeatureLevelRecord(name="metadata.version", feature_level=29),
    ProducerIdsRecord(broker_id=1, next_producer_id=1000),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_comes_back(record: MetadataRecord) -> None:
    assert decode_metadata(encode_metadata(record)) == record


def test_as_kafka_frames_it() -> None:
    assert encode_metadata(TopicRecord(name="a", topic_id=ID)) == bytes([1, 2, 0, 2]) + b"a" + ID.bytes + b"\0"


def test_what_says_nothing_here_is_passed_over() -> None:
    assert decode_metadata(bytes([1, 17, 0, 1, 2, 3])) is None


@given(st.binary(max_size=30))
def test_junk_is_an_error_or_a_record(raw: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_metadata(raw)
