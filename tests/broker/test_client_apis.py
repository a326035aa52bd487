"""What producers and consumers ask: rights, limits, and versions with ways of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from crc32c import crc32c

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.coordinator_runtime import ShardState
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request
from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.describe_producers import DescribeProducersRequest
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from kohort.protocol.messages.list_offsets import ListOffsetsRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.records.batch import Compression
from kohort.protocol.records.plain import encode_records
from tests.broker.admin.conftest import Rules
from tests.broker.raw import RawClient

Run = Callable[..., None]

NO_TRANSACTIONS = Rules((None, ResourceType.TRANSACTIONAL_ID, None))


def produce(batch: bytearray, transactional_id: str | None = None) -> ProduceRequest:
    part = ProduceRequest.TopicData.PartitionData(index=0, records=bytes(batch))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[ProduceRequest.TopicData(name="t", partition_data=[part])],
    )


def produced(response: Any) -> int:
    code = response.responses[0].partition_responses[0].error_code
    assert isinstance(code, int)
    return code


def ask(with_server: Run, request: Request, version: int, *settings: str, **options: Any) -> Any:
    """The answer of a server that has a topic "t" with a record."""
    answers = []

    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        log.append(encode_records([(b"k", b"v")], 1_000), now=1_000)
        client = await RawClient.connect(server.port)
        answers.append(await client.call(request, version))
        await client.close()

    with_server(test, *settings, **options)
    return answers[0]


def transactional(sequence: int = 0) -> bytearray:
    batch = encode_records([(b"k", b"v")], 1_000, producer_id=7, producer_epoch=0, transactional=True)
    return with_bytes(batch, 53, sequence.to_bytes(4, "big"))


def with_bytes(batch: bytearray, place: int, value: bytes) -> bytearray:
    batch[place : place + len(value)] = value
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


# Produce


@pytest.mark.parametrize("transactional_id", [None, "x"])
def test_a_transaction_needs_the_right_to_it_even_where_one_is_open(
    with_server: Run, transactional_id: str | None
) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        log.append(transactional(), now=1_000)
        client = await RawClient.connect(server.port)
        response = await client.call(produce(transactional(1), transactional_id), 11)
        assert produced(response) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert log.log_end_offset == 1
        await client.close()

    with_server(test, authorizer=NO_TRANSACTIONS)


def test_records_outside_transactions_need_no_right_to_the_transactional_id(with_server: Run) -> None:
    request = produce(encode_records([(b"k", b"v")], 1_000), "x")
    assert produced(ask(with_server, request, 11, authorizer=NO_TRANSACTIONS)) == ErrorCode.NONE


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_is_for_clients_that_know_it(with_server: Run, version: int, code: ErrorCode) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    plain = encode_records([(b"k", b"v")], 1_000)
    batch = bytearray(plain[:61] + pyarrow.compress(bytes(plain[61:]), "zstd", asbytes=True))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    assert produced(ask(with_server, produce(with_bytes(batch, 22, bytes([Compression.ZSTD]))), version)) == code


def test_a_coordinator_that_is_away_lets_the_producer_come_again(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        server.broker.transactions.start()
        for entry in server.broker.transactions._entries:
            entry.state = ShardState.LOADING
        client = await RawClient.connect(server.port)
        assert produced(await client.call(produce(transactional(), "x"), 12)) == ErrorCode.NOT_ENOUGH_REPLICAS
        await client.close()

    with_server(test)


@pytest.mark.parametrize(("version", "code"), [(11, ErrorCode.NONE), (12, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_transactions_v2_begin_with_the_first_sequence(with_server: Run, version: int, code: ErrorCode) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        client = await RawClient.connect(server.port)
        made = await client.call(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4)
        added = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=made.producer_id,
            v3_and_below_producer_epoch=made.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=(0,))],
        )
        await client.call(added, 3)
        batch = encode_records(
            [(b"k", b"v")], 1_000, producer_id=made.producer_id, producer_epoch=made.producer_epoch, transactional=True
        )
        request = produce(with_bytes(batch, 53, (5).to_bytes(4, "big")), "x")
        assert produced(await client.call(request, version)) == code
        await client.close()

    with_server(test)


# Metadata


@pytest.mark.parametrize(
    "topic", [MetadataRequest.Topic(name=None), MetadataRequest.Topic(name="t", topic_id=UUID(int=5))]
)
def test_ids_come_with_version_12(with_server: Run, topic: MetadataRequest.Topic) -> None:
    response = ask(with_server, MetadataRequest(topics=[topic, MetadataRequest.Topic(name="t")]), 11)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.INVALID_REQUEST}


def test_a_flood_of_unknown_topics_creates_none(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        topics = [MetadataRequest.Topic(name=f"t{number}") for number in range(101)]
        response = await client.call(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 9)
        assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert not len(server.broker.topics)
        await client.close()

    with_server(test, "num.partitions=100")


def test_operations_on_the_cluster_are_none_for_who_may_not_describe_it(with_server: Run) -> None:
    rules = Rules((Operation.DESCRIBE, ResourceType.CLUSTER, None))
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert ask(with_server, request, 9, authorizer=rules).cluster_authorized_operations == 0


# ListOffsets, OffsetCommit, AddPartitionsToTxn, ApiVersions, Fetch


@pytest.mark.parametrize("timestamp", [-3, -2, -1, 0])
def test_an_offline_partition_has_no_offsets_to_list(with_server: Run, timestamp: int) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1).partitions[0].log.offline = "broken"
        client = await RawClient.connect(server.port)
        part = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name="t", partitions=[part])])
        response = await client.call(request, 7)
        assert response.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await client.close()

    with_server(test)


@pytest.mark.parametrize(("isolation_level", "offset"), [(0, 0), (1, -1)])
def test_the_latest_record_counts_when_it_may_be_read(with_server: Run, isolation_level: int, offset: int) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        log.append(transactional(), now=1_000)
        client = await RawClient.connect(server.port)
        part = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=-3)
        topics = [ListOffsetsRequest.Topic(name="t", partitions=[part])]
        response = await client.call(ListOffsetsRequest(isolation_level=isolation_level, topics=topics), 7)
        assert response.topics[0].partitions[0].offset == offset
        await client.close()

    with_server(test)


def test_an_offset_may_be_kept_for_ever(with_server: Run) -> None:
    part = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        retention_time_ms=2**63 - 1,
        topics=[OffsetCommitRequest.Topic(name="t", partitions=[part])],
    )
    assert ask(with_server, request, 2).topics[0].partitions[0].error_code == ErrorCode.NONE


def test_clients_add_no_internal_topics_to_transactions(with_server: Run) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=(0,))],
    )
    (topic,) = ask(with_server, request, 3).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("version", "levels"), [(3, []), (4, [(0, 1), (0, 2)])])
def test_old_clients_hear_of_no_feature_that_begins_at_0(
    with_server: Run, version: int, levels: list[tuple[int, int]]
) -> None:
    response = ask(with_server, ApiVersionsRequest(client_software_name="c", client_software_version="1"), version)
    assert [(feature.min_version, feature.max_version) for feature in response.supported_features] == levels


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (10, ErrorCode.NONE)])
def test_topics_of_zstd_are_for_clients_that_know_it(with_server: Run, version: int, code: ErrorCode) -> None:
    part = FetchRequest.Topic.Partition(partition=0)
    request = FetchRequest(session_epoch=-1, topics=[FetchRequest.Topic(topic="t", partitions=[part])])
    response = ask(with_server, request, version, "compression.type=zstd")
    assert response.responses[0].partitions[0].error_code == code


# What is asked for many times


@pytest.mark.parametrize(
    ("request_", "version", "answers"),
    [
        (DescribeGroupsRequest(groups=("g",) * 9), 5, "groups"),
        (StreamsGroupDescribeRequest(group_ids=("g",) * 9), 0, "groups"),
        (DescribeTransactionsRequest(transactional_ids=("x",) * 9), 0, "transaction_states"),
        (DescribeProducersRequest(topics=[DescribeProducersRequest.Topic(name="t")] * 9), 0, "topics"),
        (
            DescribeConfigsRequest(resources=[DescribeConfigsRequest.Resource(resource_type=2, resource_name="t")] * 9),
            4,
            "results",
        ),
        (OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=None)] * 9), 9, "groups"),
        (MetadataRequest(topics=[MetadataRequest.Topic(name="t")] * 9), 9, "topics"),
    ],
    ids=lambda value: value.__message__.api if isinstance(value, Request) else "",
)
def test_what_is_described_is_described_once(with_server: Run, request_: Request, version: int, answers: str) -> None:
    assert len(getattr(ask(with_server, request_, version), answers)) == 1
