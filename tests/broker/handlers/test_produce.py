"""Produce: records of clients, rights, limits and versions."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from kohort.protocol.records.batch import Compression
from kohort.protocol.records.rows import encode_records
from tests.broker.handlers.conftest import NOW, Ask, Deny, Rules
from tests.broker.handlers.served import Run, answer_of, transactional, with_bytes
from tests.broker.raw import RawClient
from tests.produce_requests import produce_request

NO_TRANSACTIONS = Rules((None, ResourceType.TRANSACTIONAL_ID, None))


def produced(response: Any) -> int:
    code = response.responses[0].partition_responses[0].error_code
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("transactional_id", [None, "x"])
def test_a_transaction_needs_the_right_to_it_even_where_one_is_open(
    with_server: Run, transactional_id: str | None
) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        log.append(transactional(), now=1_000)
        client = await RawClient.connect(server.port)
        response = await client.call(produce_request("t", transactional(1), transactional_id=transactional_id), 11)
        assert produced(response) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert log.log_end_offset == 1
        await client.close()

    with_server(test, authorizer=NO_TRANSACTIONS)


def test_records_outside_transactions_need_no_right_to_the_transactional_id(with_server: Run) -> None:
    request = produce_request("t", encode_records([(b"k", b"v")], 1_000), transactional_id="x")
    assert produced(answer_of(with_server, request, 11, authorizer=NO_TRANSACTIONS)) == ErrorCode.NONE


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_is_for_clients_that_know_it(with_server: Run, version: int, code: ErrorCode) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    plain = encode_records([(b"k", b"v")], 1_000)
    batch = bytearray(plain[:61] + pyarrow.compress(bytes(plain[61:]), "zstd", asbytes=True))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    assert (
        produced(
            answer_of(with_server, produce_request("t", with_bytes(batch, 22, bytes([Compression.ZSTD]))), version)
        )
        == code
    )


def test_a_coordinator_that_is_away_lets_the_producer_come_again(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1)
        server.broker.transactions.start()
        for entry in server.broker.transactions._entries:
            entry.state = ShardState.LOADING
        client = await RawClient.connect(server.port)
        assert (
            produced(await client.call(produce_request("t", transactional(), transactional_id="x"), 12))
            == ErrorCode.NOT_ENOUGH_REPLICAS
        )
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
        request = produce_request("t", with_bytes(batch, 53, (5).to_bytes(4, "big")), transactional_id="x")
        assert produced(await client.call(request, version)) == code
        await client.close()

    with_server(test)


def test_records_are_appended(ask: Ask, broker: Broker) -> None:
    log = broker.topics.create("t", 1).partitions[0].log
    (topic,) = ask(produce_request("t", encode_records([(b"k", b"v")], NOW)), 9).responses
    (part,) = topic.partition_responses
    assert (part.error_code, part.base_offset, log.log_end_offset) == (ErrorCode.NONE, 0, 1)


@pytest.mark.parametrize(
    ("name", "records", "acks", "code"),
    [
        ("absent", encode_records([(b"k", b"v")], NOW), -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", encode_records([(b"k", b"v")], NOW), 2, ErrorCode.INVALID_REQUIRED_ACKS),
        ("t", bytearray(), -1, ErrorCode.INVALID_RECORD),
        ("t", bytearray(b"nonsense"), -1, ErrorCode.INVALID_RECORD),
        ("t", bytearray(20), -1, ErrorCode.CORRUPT_MESSAGE),
        ("__consumer_offsets", encode_records([(b"k", b"v")], NOW), -1, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_records_that_are_refused(
    name: str, records: bytearray, acks: int, code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    broker.topics.create("t", 1)
    broker.groups.start()
    request = produce_request("t", records)
    request.topic_data[0].name, request.acks = name, acks
    assert produced(ask(request, 9)) == code


def test_records_that_are_refused_are_named(ask: Ask, broker: Broker) -> None:
    broker.topics.create("t", 1)
    records = encode_records([(b"k", b"v")] * 3, NOW + 10**12)
    response = ask(produce_request("t", records), 9).responses[0].partition_responses[0]
    assert response.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in response.record_errors] == [0, 1, 2]
    assert "it must be from" in response.record_errors[0].batch_index_error_message


def test_a_partition_that_is_named_twice_is_written_to_once(ask: Ask, broker: Broker) -> None:
    log = broker.topics.create("t", 1).partitions[0].log
    request = produce_request("t", encode_records([(b"k", b"v")], NOW))
    request.topic_data[0].partition_data *= 2
    codes = [part.error_code for part in ask(request, 9).responses[0].partition_responses]
    assert (codes, log.log_end_offset) == ([ErrorCode.NONE, ErrorCode.INVALID_REQUEST], 1)


def test_producers_must_be_allowed_to_write(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("t", 1)
    deny(Operation.WRITE, ResourceType.TOPIC, "t")
    assert (
        produced(ask(produce_request("t", encode_records([(b"k", b"v")], NOW)), 9))
        == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
