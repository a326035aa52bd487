"""APIs of producers, consumers, groups and transactions in each version: every response encodes in the version."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

import pytest

from kohort.broker.server import Server
from kohort.protocol.message import Request
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kohort.protocol.messages.end_txn import EndTxnRequest
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from kohort.protocol.messages.list_groups import ListGroupsRequest
from kohort.protocol.messages.list_offsets import ListOffsetsRequest
from kohort.protocol.messages.list_transactions import ListTransactionsRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TopicInfo
from kohort.protocol.messages.sync_group import SyncGroupRequest
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kohort.protocol.records.rows import encode_records
from kohort.protocol.schema import NO_UUID
from tests.broker.handlers.conftest import Rules
from tests.broker.raw import RawClient

Run = Callable[..., None]
Make = Callable[[int, UUID, str], Request]
"""Makes a request in a version, that is about a topic's id and a name that no other version uses."""

ABSENT = UUID(int=9)
PLACES = (("there", 0), ("there", 9), ("absent", 0))
STATES = ("Stable", "PreparingRebalance", "Empty")


def produce_at(version: int, topic_id: UUID, name: str) -> Request:
    data = ProduceRequest.TopicData
    plain = bytes(encode_records([(b"k", b"v")], 1_000))
    transactional = bytes(encode_records([(b"k", b"v")], 1_000, producer_id=77, producer_epoch=0, transactional=True))
    parts = [
        data.PartitionData(index=0, records=plain),
        data.PartitionData(index=1, records=transactional),
        data.PartitionData(index=2, records=b"nonsense"),
        data.PartitionData(index=3, records=None),
        data.PartitionData(index=9, records=plain),
    ]
    if version >= 13:
        topics = [data(topic_id=which, partition_data=parts) for which in (topic_id, ABSENT)]
    else:
        topics = [data(name=which, partition_data=parts) for which in ("there", "absent", "__consumer_offsets")]
    return ProduceRequest(transactional_id=name, acks=-1, timeout_ms=1000, topic_data=topics)


def fetch(version: int, topic_id: UUID, name: str) -> Request:
    asked = FetchRequest.Topic.Partition
    parts = [asked(partition=0, fetch_offset=0, partition_max_bytes=1000), asked(partition=9), asked(partition=1)]
    parts += [asked(partition=2, fetch_offset=5), asked(partition=3, last_fetched_epoch=-1 if version < 12 else 7)]
    if version >= 9:
        parts.append(asked(partition=4, current_leader_epoch=4))
    if version >= 13:
        topics = [FetchRequest.Topic(topic_id=which, partitions=parts) for which in (topic_id, ABSENT)]
    else:
        topics = [FetchRequest.Topic(topic=which, partitions=parts) for which in ("there", "absent")]
    return FetchRequest(max_bytes=10_000, isolation_level=1, topics=topics)


def fetch_of_no_session(version: int, topic_id: UUID, name: str) -> Request:
    return FetchRequest(session_id=5 if version >= 7 else 0, session_epoch=5 if version >= 7 else -1, max_wait_ms=1)


def list_offsets(version: int, topic_id: UUID, name: str) -> Request:
    asked = ListOffsetsRequest.Topic.Partition
    parts = [asked(partition_index=index, timestamp=index - 7) for index in range(8)]
    parts += [asked(partition_index=9, timestamp=5), asked(partition_index=0, timestamp=5)]
    return ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name=which, partitions=parts) for which, _ in PLACES])


def metadata(version: int, topic_id: UUID, name: str) -> Request:
    asked = [MetadataRequest.Topic(name=which) for which in ("there", "absent", "", "*", name)]
    if version >= 12:
        asked += [MetadataRequest.Topic(topic_id=which, name=None) for which in (topic_id, ABSENT, NO_UUID)]
    return MetadataRequest(
        topics=asked,
        include_cluster_authorized_operations=8 <= version <= 10,
        include_topic_authorized_operations=version >= 8,
    )


def all_metadata(version: int, topic_id: UUID, name: str) -> Request:
    return MetadataRequest(topics=None if version else [])


def find_coordinator(key_type: int) -> Make:
    def make(version: int, topic_id: UUID, name: str) -> Request:
        kind = key_type if version >= 1 else 0
        if version >= 4:
            return FindCoordinatorRequest(key_type=kind, coordinator_keys=("a", "b", ""))
        return FindCoordinatorRequest(key_type=kind, key="a")

    return make


def offset_commit(version: int, topic_id: UUID, name: str) -> Request:
    asked = OffsetCommitRequest.Topic
    parts = [
        asked.Partition(partition_index=0, committed_offset=3, committed_metadata=None),
        asked.Partition(partition_index=1, committed_offset=3, committed_metadata="m" * 5000),
        asked.Partition(partition_index=9, committed_offset=3),
    ]
    if version >= 10:
        topics = [asked(topic_id=which, partitions=parts) for which in (topic_id, ABSENT)]
    else:
        topics = [asked(name=which, partitions=parts) for which in ("there", "absent")]
    return OffsetCommitRequest(group_id="offsets", generation_id_or_member_epoch=-1, topics=topics)


def offset_commit_of_no_member(version: int, topic_id: UUID, name: str) -> Request:
    request = offset_commit(version, topic_id, name)
    assert isinstance(request, OffsetCommitRequest)
    request.generation_id_or_member_epoch, request.member_id = 7, "nobody"
    return request


def offset_fetch(version: int, topic_id: UUID, name: str) -> Request:
    stable = version >= 7
    if version < 8:
        return OffsetFetchRequest(
            group_id="offsets",
            require_stable=stable,
            topics=[OffsetFetchRequest.Topic(name=which, partition_indexes=(0, 9)) for which in ("there", "absent")],
        )
    asked = OffsetFetchRequest.Group.Topic
    if version >= 10:
        topics = [asked(topic_id=which, partition_indexes=(0, 9)) for which in (topic_id, ABSENT)]
    else:
        topics = [asked(name=which, partition_indexes=(0, 9)) for which in ("there", "absent")]
    groups = [
        OffsetFetchRequest.Group(group_id="offsets", topics=topics),
        OffsetFetchRequest.Group(group_id="none", topics=None),
    ]
    return OffsetFetchRequest(groups=groups, require_stable=stable)


def all_offsets(version: int, topic_id: UUID, name: str) -> Request:
    if version < 8:
        return OffsetFetchRequest(group_id="offsets", topics=None if version >= 2 else [])
    return OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="offsets", topics=None)])


def offset_delete(version: int, topic_id: UUID, name: str) -> Request:
    asked = OffsetDeleteRequest.Topic
    parts = [asked.Partition(partition_index=index) for index in (0, 9)]
    return OffsetDeleteRequest(group_id="offsets", topics=[asked(name=which, partitions=parts) for which, _ in PLACES])


def join(**fields: object) -> Make:
    def make(version: int, topic_id: UUID, name: str) -> Request:
        request = JoinGroupRequest(
            group_id=name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000 if version >= 1 else -1,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"m")],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    return make


def sync(version: int, topic_id: UUID, name: str) -> Request:
    with_protocol = "range" if version >= 5 else None
    return SyncGroupRequest(
        group_id="g", generation_id=1, member_id="m", protocol_type=with_protocol, protocol_name=with_protocol
    )


def leave(version: int, topic_id: UUID, name: str) -> Request:
    if version < 3:
        return LeaveGroupRequest(group_id="g", member_id="m")
    members = [LeaveGroupRequest.Member(member_id="m"), LeaveGroupRequest.Member(group_instance_id="i")]
    return LeaveGroupRequest(group_id="g", members=members)


def list_groups(version: int, topic_id: UUID, name: str) -> Request:
    return ListGroupsRequest(
        states_filter=STATES if version >= 4 else (), types_filter=("Classic",) if version >= 5 else ()
    )


def list_transactions(version: int, topic_id: UUID, name: str) -> Request:
    return ListTransactionsRequest(
        state_filters=("Empty", "Nonsense"),
        duration_filter=0 if version >= 1 else -1,
        transactional_id_pattern="(" if version >= 2 else None,
    )


def add_partitions(version: int, topic_id: UUID, name: str) -> Request:
    topics = [AddPartitionsToTxnTopic(name=which, partitions=(index,)) for which, index in PLACES[::2]]
    return add(version, "t", topics)


def add_known_partitions(version: int, topic_id: UUID, name: str) -> Request:
    return add(version, "t", [AddPartitionsToTxnTopic(name="there", partitions=(0, 1))])


def add(version: int, transactional_id: str, topics: list[AddPartitionsToTxnTopic]) -> Request:
    if version >= 4:
        asked = AddPartitionsToTxnRequest.Transaction
        return AddPartitionsToTxnRequest(
            transactions=[
                asked(transactional_id=which, producer_id=5, producer_epoch=0, verify_only=verify, topics=topics)
                for which, verify in ((transactional_id, False), ("other", True))
            ]
        )
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=5,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )


def txn_offset_commit(group_id: str, *topics: str) -> Make:
    def make(version: int, topic_id: UUID, name: str) -> Request:
        asked = TxnOffsetCommitRequest.Topic
        parts = [asked.Partition(partition_index=index, committed_offset=1) for index in (0, 9)]
        return TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group_id,
            producer_id=5,
            producer_epoch=0,
            topics=[
                asked(name=which, topic_id=topic_id if which == "there" else UUID(int=9), partitions=parts)
                for which in topics
            ],
        )

    return make


def consumer_heartbeat(**fields: object) -> Make:
    def make(version: int, topic_id: UUID, name: str) -> Request:
        request = ConsumerGroupHeartbeatRequest(
            group_id=name,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=("there",),
            topic_partitions=[],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    return make


def streams_heartbeat(**fields: object) -> Make:
    def make(version: int, topic_id: UUID, name: str) -> Request:
        subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology
        request = StreamsGroupHeartbeatRequest(
            group_id=name,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            process_id="p",
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            topology=StreamsGroupHeartbeatRequest.Topology(
                epoch=0,
                subtopologies=[
                    subtopology(
                        subtopology_id="0",
                        source_topics=("there",),
                        state_changelog_topics=[TopicInfo(name=f"{name}-changelog")],
                    )
                ],
            ),
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    return make


def open_share_session(version: int, topic_id: UUID, name: str) -> Request:
    topic = ShareFetchRequest.Topic
    topics = [
        topic(topic_id=which, partitions=[topic.Partition(partition_index=index) for index in (0, 9)])
        for which in (topic_id, ABSENT)
    ]
    return ShareFetchRequest(group_id=name, member_id=name, max_bytes=1, max_records=1, max_wait_ms=1, topics=topics)


def share_fetch_of_no_session(version: int, topic_id: UUID, name: str) -> Request:
    return ShareFetchRequest(group_id=name, member_id="m", share_session_epoch=3)


def share_acknowledge_of_no_session(version: int, topic_id: UUID, name: str) -> Request:
    return ShareAcknowledgeRequest(group_id=name, member_id="m", share_session_epoch=3)


def always(request: Request) -> Make:
    return lambda version, topic_id, name: request


REQUESTS: dict[str, Make] = {
    "produce": produce_at,
    "fetch": fetch,
    "fetch of no session": fetch_of_no_session,
    "list offsets": list_offsets,
    "metadata": metadata,
    "metadata of all": all_metadata,
    "find the coordinator of groups": find_coordinator(0),
    "find the coordinator of transactions": find_coordinator(1),
    "find no coordinator": find_coordinator(7),
    "commit": offset_commit,
    "commit of no member": offset_commit_of_no_member,
    "fetch offsets": offset_fetch,
    "fetch all offsets": all_offsets,
    "delete offsets": offset_delete,
    "join": join(),
    "join without a group": join(group_id=""),
    "join with a short session": join(session_timeout_ms=1),
    "join as nobody": join(member_id="nobody"),
    "join without protocols": join(protocols=[]),
    "sync": sync,
    "sync without a protocol": always(SyncGroupRequest(group_id="g", generation_id=1, member_id="m")),
    "heartbeat": always(HeartbeatRequest(group_id="g", generation_id=1, member_id="m")),
    "leave": leave,
    "streams join": streams_heartbeat(),
    "streams join without a topology": streams_heartbeat(topology=None),
    "streams heartbeat of no member": streams_heartbeat(member_epoch=3, topology=None),
    "streams leave of no member": streams_heartbeat(member_epoch=-1, topology=None),
    "streams join of a classic group": streams_heartbeat(group_id="offsets"),
    "describe streams groups": always(StreamsGroupDescribeRequest(group_ids=("streams-join-0", "offsets", ""))),
    "consumer joins": consumer_heartbeat(),
    "consumer joins without an id": consumer_heartbeat(member_id=""),
    "consumer heartbeat of no member": consumer_heartbeat(member_epoch=3),
    "consumer leave of no member": consumer_heartbeat(member_epoch=-1),
    "consumer join of a classic group": consumer_heartbeat(group_id="offsets"),
    "describe consumer groups": always(ConsumerGroupDescribeRequest(group_ids=("consumer-joins-0", "offsets", ""))),
    "open a share session": open_share_session,
    "share fetch of no session": share_fetch_of_no_session,
    "share acknowledge of no session": share_acknowledge_of_no_session,
    "describe groups": always(DescribeGroupsRequest(groups=("g", "offsets", ""))),
    "list groups": list_groups,
    "delete groups": always(DeleteGroupsRequest(groups_names=("g", "offsets", "", "g"))),
    "init a producer": always(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)),
    "init a transactional producer": always(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)),
    "init a producer with an empty name": always(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1)),
    "init a producer with a long timeout": always(
        InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=2**31 - 1)
    ),
    "add partitions": add_partitions,
    "add known partitions": add_known_partitions,
    "add offsets": always(
        AddOffsetsToTxnRequest(transactional_id="t", producer_id=5, producer_epoch=0, group_id="offsets")
    ),
    "end a transaction": always(EndTxnRequest(transactional_id="t", producer_id=5, producer_epoch=0, committed=True)),
    "commit offsets in a transaction": txn_offset_commit("offsets", "there", "absent"),
    "commit unknown offsets in a transaction": txn_offset_commit("offsets", "absent"),
    "commit offsets of no group in a transaction": txn_offset_commit("", "there"),
    "describe transactions": always(DescribeTransactionsRequest(transactional_ids=("t", "absent", ""))),
    "list transactions": list_transactions,
    "versions": always(ApiVersionsRequest(client_software_name="raw", client_software_version="1")),
    "versions for nobody": always(ApiVersionsRequest()),
    "handshake": always(SaslHandshakeRequest(mechanism="PLAIN")),
    "authenticate": always(SaslAuthenticateRequest(auth_bytes=b"x")),
}


@pytest.mark.parametrize("forbidden", [False, True], ids=["allowed", "forbidden"])
def test_is_answered(with_server: Run, caplog: pytest.LogCaptureFixture, forbidden: bool) -> None:
    async def test(server: Server) -> None:
        topic = server.broker.topics.create("there", 5)
        server.broker.groups.start()
        server.broker.transactions.start()
        for what, make in REQUESTS.items():
            for version in make(15, topic.id, "").__message__.versions:
                client = await RawClient.connect(server.port)
                try:
                    await client.call(make(version, topic.id, f"{what.replace(' ', '-')}-{version}"), version)
                except EOFError:
                    pytest.fail(f"{what} v{version} closes the connection")
                finally:
                    await client.close()

    authorizer = Rules((None, None, None)) if forbidden else None
    with_server(test, authorizer=authorizer)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
