"""Compiled codecs: what is written is read back, and the interpreter agrees."""

from __future__ import annotations

import array
import random
import uuid
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kohort.protocol.codec import Codec, source_of
from kohort.protocol.errors import ProtocolError, UnsupportedVersionError
from kohort.protocol.message import Message
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kohort.protocol.messages.fetch import FetchResponse
from kohort.protocol.messages.headers import RequestHeader
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.messages.produce import ProduceRequest, ProduceResponse
from kohort.protocol.messages.sync_group import SyncGroupResponse
from kohort.protocol.schema import string
from kohort.protocol.stored.consumer_group_member_metadata import ConsumerGroupMemberMetadataValue
from kohort.protocol.trace import explain_bytes, trace

from .everything import RandomMessages, label, message_versions

ALL = list(message_versions())


@pytest.mark.parametrize(("message", "version"), ALL, ids=label)
def test_round_trip_and_agreement_with_the_interpreter(message: type[Message], version: int) -> None:
    draw = RandomMessages(f"round trip {message.__name__} {version}", unknown_tags=True)
    for _ in range(10):
        value = draw.message(message, version)
        encoded = value.encode(version)
        assert message.decode(encoded, version) == value
        assert message.read(b"before" + encoded + b"after", 6, version) == (value, 6 + len(encoded))
        interpreted, spans, end = trace(message, version, encoded)
        assert interpreted == value
        assert end == len(encoded)
        # The spans cover every byte, in order, without a gap.
        edges = [0, *(span.end for span in spans)]
        assert [span.start for span in spans] == edges[:-1]
        assert edges[-1] == len(encoded)


@pytest.mark.parametrize(("message", "version"), ALL, ids=label)
def test_defaults_make_a_message(message: type[Message], version: int) -> None:
    assert message.decode(message().encode(version), version) == message()


def test_long_strings_and_arrays_take_longer_lengths() -> None:
    for size in (126, 127, 128, 16382, 16383, 16384, 32767):
        value = MetadataRequest(topics=[MetadataRequest.Topic(name="x" * size)])
        assert MetadataRequest.decode(value.encode(12), 12) == value
        partition = MetadataResponse.Topic.Partition(replica_nodes=tuple(range(size)))
        answer = MetadataResponse(topics=[MetadataResponse.Topic(name="t", partitions=[partition] * 2)])
        assert MetadataResponse.decode(answer.encode(12), 12) == answer
        assert MetadataResponse.decode(answer.encode(8), 8) == answer


def test_strings_are_no_longer_than_kafka_takes_them() -> None:
    for version in (3, 4):
        with pytest.raises(ProtocolError, match="string of 32768 bytes; 32767 is the most that Kafka takes"):
            HeartbeatRequest(group_id="x" * 32768).encode(version)
    longest = HeartbeatRequest(group_id="x" * 32767).encode(4)
    assert longest.startswith(b"\x80\x80\x02")
    with pytest.raises(ProtocolError, match="GroupId, byte 0: the length of the string is 32768"):
        HeartbeatRequest.decode(b"\x81\x80\x02x" + longest[3:], 4)


def test_blobs_of_any_buffer_are_their_bytes() -> None:
    for blob in (bytearray(b"abcd"), memoryview(b"abcd"), memoryview(b"a-b-c-d-")[::2], np.frombuffer(b"abcd", ">u2"),
                 np.frombuffer(b"abcd", np.uint8).reshape(2, 2), array.array("B", b"abcd")):  # fmt: skip
        for version in (3, 5):
            response = SyncGroupResponse(assignment=blob)  # type: ignore[arg-type]
            assert SyncGroupResponse.decode(response.encode(version), version).assignment == b"abcd"
    tags = HeartbeatRequest(unknown_tags={7: memoryview(array.array("h", [1, 2]))})  # type: ignore[dict-item]
    assert HeartbeatRequest.decode(tags.encode(4), 4).unknown_tags == {7: array.array("h", [1, 2]).tobytes()}


def test_read_takes_any_buffer_and_no_negative_position() -> None:
    raw = SyncGroupResponse(assignment=b"abc").encode(5)
    for kind in (bytes, bytearray, memoryview):
        read, end = SyncGroupResponse.read(kind(raw), 0, 5)
        assert (read.assignment, type(read.assignment), end) == (b"abc", bytes, len(raw))
        assert trace(SyncGroupResponse, 5, kind(raw))[0] == read
    with pytest.raises(IndexError):
        SyncGroupResponse.read(raw, -len(raw), 5)
    for wrong in (11, "text", None):
        with pytest.raises(TypeError):
            HeartbeatRequest.decode(wrong, 4)  # type: ignore[arg-type]


def test_codecs_are_compiled_once_however_many_threads_ask() -> None:
    class Late(Message, versions="0"):
        word: str = string("A word.")

    with ThreadPoolExecutor(8) as pool:
        results = set(pool.map(lambda _: Late(word="x").encode(0), range(64)))
    assert results == {b"\0\1x"}


def test_records_are_a_view_of_the_input() -> None:
    partition = ProduceRequest.TopicData.PartitionData(index=1, records=b"batch")
    request = ProduceRequest(topic_data=[ProduceRequest.TopicData(name="t", partition_data=[partition])])
    data = request.encode(9)
    records = ProduceRequest.decode(data, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data
    assert records == b"batch"


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_buffer_decodes(kind: type) -> None:
    value = HeartbeatRequest(group_id="orders", generation_id=7, member_id="m")
    assert HeartbeatRequest.decode(kind(value.encode(4)), 4) == value


def test_lists_and_tuples_encode_alike() -> None:
    partition = MetadataResponse.Topic.Partition
    as_list = MetadataResponse(topics=[MetadataResponse.Topic(partitions=[partition(isr_nodes=[1, 2])])])  # type: ignore[arg-type]
    as_tuple = MetadataResponse(topics=[MetadataResponse.Topic(partitions=[partition(isr_nodes=(1, 2))])])
    assert as_list.encode(9) == as_tuple.encode(9)


def test_unknown_tagged_fields_survive_beside_known_ones() -> None:
    leader = ProduceResponse.TopicResponse.PartitionResponse.CurrentLeader(leader_id=3)
    partition = ProduceResponse.TopicResponse.PartitionResponse(current_leader=leader, unknown_tags={9: b"x", 4: b""})
    value = ProduceResponse(responses=[ProduceResponse.TopicResponse(partition_responses=[partition])])
    decoded = ProduceResponse.decode(value.encode(10), 10)
    assert decoded == value
    assert decoded.responses[0].partition_responses[0].unknown_tags == {4: b"", 9: b"x"}


def test_a_tagged_field_with_its_default_is_not_written() -> None:
    partition = FetchResponse.TopicResponse.Partition
    plain = FetchResponse(responses=[FetchResponse.TopicResponse(partitions=[partition()])])
    tagged = FetchResponse(
        responses=[
            FetchResponse.TopicResponse(
                partitions=[partition(diverging_epoch=partition.DivergingEpoch(epoch=1, end_offset=2))]
            )
        ]
    )
    assert len(tagged.encode(12)) == len(plain.encode(12)) + 2 + 13


def test_null_in_a_tagged_struct_is_written_as_kafka_does() -> None:
    # 0 in a tagged field (a size of 1 before it), -1 elsewhere.
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert value.encode(0).hex().endswith("01" + "00" + "01" + "00")
    assert ConsumerGroupMemberMetadataValue.decode(value.encode(0), 0) == value


def test_request_header_keeps_its_old_client_id_in_flexible_versions() -> None:
    header = RequestHeader(request_api_key=3, request_api_version=12, correlation_id=9, client_id="ab")
    assert header.encode(2) == bytes.fromhex("0003 000c 00000009 0002") + b"ab" + b"\0"


def test_ids_are_uuids_whatever_their_number() -> None:
    generator = random.Random(1)
    ids = [uuid.UUID(int=generator.getrandbits(128)) for _ in range(100)]
    value = MetadataRequest(topics=[MetadataRequest.Topic(name=None, topic_id=topic_id) for topic_id in ids])
    assert [topic.topic_id for topic in MetadataRequest.decode(value.encode(12), 12).topics or []] == ids


def test_source_is_straight_line_code() -> None:
    source = source_of(HeartbeatRequest, 4)
    assert "def encode(message, join=" in source
    assert source.count("read_tags(") == 2  # the one call, in decode and in read: unknown tagged fields
    assert "for " not in source


def test_each_function_is_compiled_when_it_is_first_asked_for() -> None:
    codec = Codec(HeartbeatRequest, 4)
    made = codec.encode
    assert codec.encode is made
    with pytest.raises(AttributeError):
        object.__getattribute__(codec, "read")  # nobody has read yet
    with pytest.raises(AttributeError, match="wrote"):
        getattr(codec, "wrote")  # noqa: B009


def drained(work: Generator[Any, None, Any]) -> tuple[list[Any], Any]:
    """What a generator has yielded, and what it returned."""
    yielded = []
    while True:
        try:
            yielded.append(next(work))
        except StopIteration as stop:
            return yielded, stop.value


@pytest.mark.parametrize(("message", "version"), ALL[::7], ids=label)
def test_slices_read_and_write_the_same_as_one_go(message: type[Message], version: int) -> None:
    codec = message.__codecs__[version]
    generator = RandomMessages(f"{message.__name__} {version}", unknown_tags=True)
    for _ in range(5):
        drawn = generator.message(message, version)
        data = codec.encode(drawn)
        assert drained(codec.encode_slices(drawn))[1] == data
        assert drained(codec.read_slices(b"ab" + data, 2))[1] == (drawn, 2 + len(data))
        for end in {len(data) // 2, len(data) - 1} if data else ():
            with pytest.raises(ProtocolError):
                drained(codec.read_slices(data[:end], 0))


def test_slices_count_the_elements_of_all_arrays() -> None:
    topics = [
        OffsetFetchRequest.Topic(name=name, partition_indexes=range(count)) for name, count in (("a", 3), ("b", 4))
    ]
    codec = OffsetFetchRequest.__codecs__[5]
    yielded, (request, _) = drained(codec.read_slices(codec.encode(OffsetFetchRequest(topics=topics)), 0))
    assert sum(yielded) == 2 + 3 + 4
    assert len(request.topics) == 2


def test_pieces_hold_records_as_they_were_given() -> None:
    records = b"x" * 100
    part = FetchResponse.TopicResponse.Partition(records=records)
    response = FetchResponse(responses=[FetchResponse.TopicResponse(topic="t", partitions=[part])])
    codec = FetchResponse.__codecs__[12]
    pieces = codec.encode(response, list)
    assert b"".join(pieces) == codec.encode(response)
    assert any(piece is records for piece in pieces)


# What a version can't carry.


def test_an_unknown_version_names_those_there_are() -> None:
    with pytest.raises(UnsupportedVersionError, match="HeartbeatRequest v5: no such version; Kohort speaks 0 to 4"):
        HeartbeatRequest().encode(5)
    with pytest.raises(UnsupportedVersionError):
        HeartbeatRequest.decode(b"", -1)


def test_a_field_that_the_version_lacks_must_be_left_alone() -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        HeartbeatRequest(group_instance_id="me").encode(2)
    assert caught.value.path == "GroupInstanceId"
    assert caught.value.offset is None


def test_unknown_tags_need_a_version_that_has_tags() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"unknown_tags: set to .*, but this version has no such"):
        HeartbeatRequest(unknown_tags={5: b"x"}).encode(3)
    assert HeartbeatRequest(unknown_tags={}).encode(3) == HeartbeatRequest().encode(3)


def test_an_ignorable_field_is_dropped_by_a_version_without_it() -> None:
    from kohort.protocol.messages.heartbeat import HeartbeatResponse

    assert HeartbeatResponse(throttle_time_ms=5, error_code=27).encode(0) == b"\0\x1b"


# Values that don't fit.

Group = OffsetFetchResponse.Group


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("not now")


@pytest.mark.parametrize(
    ("value", "version", "path", "reason"),
    [
        (HeartbeatRequest(generation_id=2**31), 4, "GenerationId", "int32 wanted, not 2147483648"),
        (HeartbeatRequest(generation_id="7"), 4, "GenerationId", "int32 wanted, not '7'"),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id=None), 4, "GroupId", "null where null is not allowed"),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id=b"raw"), 4, "GroupId", "str wanted, not b'raw'"),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id="\ud800"), 4, "GroupId", "can't be written as UTF-8: surrogates not allowed"),
        (HeartbeatRequest(generation_id=10**5000), 4, "GenerationId", "int32 wanted, not <int>"),
        (HeartbeatRequest(generation_id=Unprintable()), 4, "GenerationId", "int32 wanted, not <Unprintable>"),  # type: ignore[arg-type]
        (HeartbeatRequest(unknown_tags={10**5000: b""}), 4, "unknown_tags", "tag <int> is not an unsigned"),
        (HeartbeatRequest(unknown_tags=[]), 4, "unknown_tags", "dict wanted, not []"),  # type: ignore[arg-type]
        (HeartbeatRequest(group_instance_id=np.array([1, 2])), 0, "GroupInstanceId", "can't be encoded: ValueError"),  # type: ignore[arg-type]
        (MetadataRequest(allow_auto_topic_creation=None), 12, "AllowAutoTopicCreation", "null where null"),  # type: ignore[arg-type]
        (MetadataRequest(allow_auto_topic_creation="false"), 12, "AllowAutoTopicCreation", "bool wanted, not 'false'"),  # type: ignore[arg-type]
        (MetadataRequest(allow_auto_topic_creation=np.array([1, 2])), 12, "AllowAutoTopicCreation", "can't be encoded"),  # type: ignore[arg-type]
        (ConsumerProtocolSubscription(topics="orders"), 3, "Topics", "list or tuple wanted, not 'orders'"),  # type: ignore[arg-type]
        (ConsumerProtocolSubscription(topics={"a": 1}), 3, "Topics", "list or tuple wanted, not {'a': 1}"),  # type: ignore[arg-type]
        (ProduceResponse(unknown_tags={0: b""}), 10, "unknown_tags", "tag 0 is known, as NodeEndpoints"),
        (ProduceResponse(node_endpoints=[ProduceResponse.NodeEndpoint()], unknown_tags={0: b""}), 10, "unknown_tags",
         "tag 0 is known"),
        (OffsetFetchResponse(groups=[Group(), Group(topics=[3])]), 8, "Groups[1].Topics[0]", "OffsetFetchResponse"),  # type: ignore[list-item]
        (OffsetFetchResponse(groups=7), 8, "Groups", "list or tuple wanted, not 7"),  # type: ignore[arg-type]
        (HeartbeatRequest(unknown_tags={-1: b""}), 4, "unknown_tags", "tag -1 is not an unsigned 32-bit number"),
        (HeartbeatRequest(unknown_tags={1: "x"}), 4, "unknown_tags", "bytes wanted for tag 1, not 'x'"),  # type: ignore[dict-item]
        (MetadataRequest(topics=[MetadataRequest.Topic(topic_id=1)]), 12, "Topics[0].TopicId", "uuid wanted, not 1"),  # type: ignore[arg-type]
        (ProduceRequest(topic_data=[ProduceRequest.TopicData(partition_data=[
            ProduceRequest.TopicData.PartitionData(records="text")])]),  # type: ignore[arg-type]
         9, "TopicData[0].PartitionData[0].Records", "bytes wanted, not 'text'"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(value: Message, version: int, path: str, reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        value.encode(version)
    assert (caught.value.message, caught.value.version, caught.value.path) == (type(value).__name__, version, path)
    assert reason in caught.value.reason


def test_explaining_good_bytes_admits_a_defect() -> None:
    error = explain_bytes(HeartbeatRequest, 4, HeartbeatRequest().encode(4), 0, True)
    assert "please report" in str(error)
