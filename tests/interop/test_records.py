"""Records go in and come out as they were, through every client, with every compression."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from .clients import CLIENTS, Client, Message
from .clients.face import COMPRESSIONS
from .servers import Server

NewTopic = Callable[..., str]
HOUR = 3_600_000


def some(count: int) -> list[Message]:
    return [Message(b"%d:" % i + b"v" * (i * 37 % 500), b"key-%d" % (i % 7)) for i in range(count)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("writer", CLIENTS, ids=lambda client: client.name)
def test_what_one_client_writes_all_clients_read(
    writer: Client, compression: str, server: Server, new_topic: NewTopic
) -> None:
    topic, written = new_topic(), some(500)
    writer.produce(server.bootstrap, topic, written, compression=compression)
    for reader in CLIENTS:
        found = reader.consume(server.bootstrap, topic)
        assert [m.content for m in found] == [m.content for m in written], reader.name
        assert [m.offset for m in found] == list(range(500)), reader.name


def test_null_and_empty_are_not_the_same(client: Client, server: Server, new_topic: NewTopic) -> None:
    written = [Message(b"", b""), Message(b"v"), Message(b""), Message(b"v", b""), Message(None, b"k")]
    if client.writes_bare_records:
        written.append(Message())
    topic = new_topic()
    if client.name == "kcat":
        # kcat takes an empty key for none, and an empty line for nothing, in its input.
        written = [Message(b"v"), Message(b"v", b"k"), Message(None, b"k")]
    client.produce(server.bootstrap, topic, written)
    assert [m.content for m in client.consume(server.bootstrap, topic)] == [m.content for m in written]


def test_headers_keep_their_order_and_their_doubles(client: Client, server: Server, new_topic: NewTopic) -> None:
    topic, headers = new_topic(), (("b", b"1"), ("a", b"2"), ("b", b"1"), ("ünï", "çödé".encode()), ("empty", b""))
    client.produce(server.bootstrap, topic, [Message(b"v", b"k", headers)])
    assert client.consume(server.bootstrap, topic)[0].headers == headers


def test_create_time_is_the_writers(client: Client, server: Server, new_topic: NewTopic) -> None:
    topic, now = new_topic(), int(time.time() * 1000)
    times = [now - HOUR, now, now - 2 * HOUR] if client.writes_timestamps else [None]
    client.produce(server.bootstrap, topic, [Message(b"v", timestamp=t) for t in times])
    found = [m.timestamp for m in client.consume(server.bootstrap, topic)]
    if client.writes_timestamps:
        assert found == times
    else:
        assert found[0] is not None and now <= found[0] <= time.time() * 1000


def test_log_append_time_is_the_brokers(client: Client, server: Server, new_topic: NewTopic) -> None:
    topic, now = new_topic(**{"message.timestamp.type": "LogAppendTime"}), int(time.time() * 1000)
    old = now - HOUR if client.writes_timestamps else None
    client.produce(server.bootstrap, topic, [Message(b"1", timestamp=old), Message(b"2", timestamp=old)])
    for found in client.consume(server.bootstrap, topic):
        assert found.timestamp is not None and now <= found.timestamp <= time.time() * 1000


# A batch of one record without key and headers: 61 bytes of batch header, and 11 for the record itself.
OVERHEAD = 61 + 11
UNBOUNDED = {
    "librdkafka": {"message.max.bytes": 4_000_000},
    "kcat": {"message.max.bytes": 4_000_000},
    "kafka-python": {"max_request_size": 4_000_000},
    "aiokafka": {"max_request_size": 4_000_000},
}


def test_a_batch_of_max_message_bytes_is_taken_and_one_byte_more_refused(
    client: Client, server: Server, new_topic: NewTopic
) -> None:
    limit = 1_000_000
    topic = new_topic(**{"max.message.bytes": str(limit)})
    largest = Message(b"x" * (limit - OVERHEAD))
    client.produce(server.bootstrap, topic, [largest], **UNBOUNDED[client.name])
    with pytest.raises(Exception) as refused:
        client.produce(server.bootstrap, topic, [Message(b"x" * (limit - OVERHEAD + 1))], **UNBOUNDED[client.name])
    assert client.too_large(refused.value), refused.value
    assert [m.value for m in client.consume(server.bootstrap, topic)] == [largest.value]
