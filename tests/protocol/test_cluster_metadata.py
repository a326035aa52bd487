from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.errors import ProtocolError
from kohort.protocol.stored.cluster_metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
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
    ClientQuotaRecord(
        entity=[
            ClientQuotaRecord.Entity(entity_type="user", entity_name="alice"),
            ClientQuotaRecord.Entity(entity_type="client-id", entity_name=None),
        ],
        key="producer_byte_rate",
        value=1024.5,
    ),
    ProducerIdsRecord(broker_id=1, next_producer_id=1000),
    AccessControlEntryRecord(
        id=ID,
        resource_type=2,
        resource_name="orders",
        pattern_type=4,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    ),
    RemoveAccessControlEntryRecord(id=ID),
    UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"salt", stored_key=b"stored", server_key=b"server", iterations=4096
    ),
    RemoveUserScramCredentialRecord(name="alice", mechanism=2),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_comes_back(record: MetadataRecord) -> None:
    assert decode_metadata(encode_metadata(record)) == record


def test_as_kafka_frames_it() -> None:
    assert encode_metadata(TopicRecord(name="a", topic_id=ID)) == bytes([1, 2, 0, 2]) + b"a" + ID.bytes + b"\0"


def test_a_quota_and_a_rule_as_kafka_frames_them() -> None:
    quota = ClientQuotaRecord(entity=[ClientQuotaRecord.Entity(entity_type="ip", entity_name=None)], key="k", value=1.0)
    one = bytes([0x3F, 0xF0, 0, 0, 0, 0, 0, 0])  # 1.0 as IEEE 754
    assert encode_metadata(quota) == bytes([1, 14, 0, 2, 3]) + b"ip" + bytes([0, 0, 2]) + b"k" + one + bytes([0, 0])
    rule = AccessControlEntryRecord(
        id=ID, resource_type=2, resource_name="t", pattern_type=3, principal="U:a", host="*", operation=3,
        permission_type=2,
    )  # fmt: skip
    fields = bytes([2, 2]) + b"t" + bytes([3, 4]) + b"U:a" + bytes([2]) + b"*" + bytes([3, 2, 0])
    assert encode_metadata(rule) == bytes([1, 18, 0]) + ID.bytes + fields
    assert encode_metadata(RemoveAccessControlEntryRecord(id=ID)) == bytes([1, 19, 0]) + ID.bytes + b"\0"


def test_a_user_as_kafka_frames_it() -> None:
    user = UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    fields = bytes([2]) + b"a" + bytes([1, 2]) + b"s" + bytes([2]) + b"k" + bytes([2]) + b"v" + bytes([0, 0, 16, 0, 0])
    assert encode_metadata(user) == bytes([1, 11, 0]) + fields
    gone = RemoveUserScramCredentialRecord(name="a", mechanism=2)
    assert encode_metadata(gone) == bytes([1, 22, 0, 2]) + b"a" + bytes([2, 0])


def test_what_says_nothing_here_is_passed_over() -> None:
    assert decode_metadata(bytes([1, 17, 0, 1, 2, 3])) is None


@given(st.binary(max_size=30))
def test_junk_is_an_error_or_a_record(raw: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_metadata(raw)
