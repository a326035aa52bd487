"""Transactions of every client that has them: what is committed is read, what isn't is not, and zombies are fenced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from .clients import CLIENTS, Client, Message
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]


def values(reader: Client, server: Server, topic: str, *, committed: bool) -> list[bytes | None]:
    return [m.value for m in reader.consume(server.bootstrap, topic, committed=committed)]


def committed_offset(server: Server, group: str, topic: str) -> int:
    """The group's offset in partition 0, −1001 where it has none; waits for a transaction that would change it."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    offset = consumer.committed([TopicPartition(topic, 0)], timeout=20)[0].offset
    consumer.close()
    return int(offset)


def test_read_committed_gives_the_committed_alone_to_every_client(
    library: Client, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic = new_topic()
    with library.transactional(server.bootstrap, new_name()) as producer:
        for number, end in enumerate([producer.commit, producer.abort, producer.commit]):
            producer.begin()
            producer.send(topic, b"%d a" % number)
            producer.send(topic, b"%d b" % number)
            end()
    library.produce(server.bootstrap, topic, [Message(b"plain")])
    for reader in CLIENTS:
        assert values(reader, server, topic, committed=True) == [b"0 a", b"0 b", b"2 a", b"2 b", b"plain"], reader.name
        assert len(values(reader, server, topic, committed=False)) == 7, reader.name


def test_read_committed_ends_before_an_open_transaction(
    library: Client, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic = new_topic()
    with library.transactional(server.bootstrap, new_name()) as producer:
        library.produce(server.bootstrap, topic, [Message(b"before")])
        producer.begin()
        producer.send(topic, b"open")
        library.produce(server.bootstrap, topic, [Message(b"after")])
        for reader in CLIENTS:
            assert values(reader, server, topic, committed=True) == [b"before"], reader.name
            assert values(reader, server, topic, committed=False) == [b"before", b"open", b"after"], reader.name
        producer.commit()
    assert values(library, server, topic, committed=True) == [b"before", b"open", b"after"]


def test_a_transaction_spans_topics(library: Client, server: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topics = [new_topic(), new_topic(), new_topic()]
    with library.transactional(server.bootstrap, new_name()) as producer:
        for text, end in [(b"aborted", producer.abort), (b"committed", producer.commit)]:
            producer.begin()
            for topic in topics:
                producer.send(topic, text)
            end()
    for topic in topics:
        assert values(library, server, topic, committed=True) == [b"committed"]


def test_a_zombie_that_commits_is_fenced(
    library: Client, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, transactional_id = new_topic(), new_name()
    with library.transactional(server.bootstrap, transactional_id) as zombie:
        zombie.begin()
        zombie.send(topic, b"zombie's")
        with library.transactional(server.bootstrap, transactional_id) as heir:
            heir.begin()
            heir.send(topic, b"heir's")
            heir.commit()
        with pytest.raises(zombie.fencing):
            zombie.commit()
    assert values(library, server, topic, committed=True) == [b"heir's"]
    assert values(library, server, topic, committed=False) == [b"zombie's", b"heir's"]


def test_a_zombie_that_sends_is_fenced(library: Client, server: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, transactional_id = new_topic(), new_name()
    with library.transactional(server.bootstrap, transactional_id) as zombie:
        with library.transactional(server.bootstrap, transactional_id) as heir:
            heir.begin()
            heir.send(topic, b"heir's")
            heir.commit()
        zombie.begin()
        with pytest.raises(zombie.fencing):
            zombie.send(topic, b"zombie's")
    assert values(library, server, topic, committed=False) == [b"heir's"]


def test_offsets_go_with_the_transaction(
    library: Client, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    source, target, group = new_topic(), new_topic(), new_name()
    library.produce(server.bootstrap, source, [Message(b"%d" % i) for i in range(10)])
    with library.transactional(server.bootstrap, new_name()) as producer:
        for offset, end, expected in [(3, producer.abort, -1001), (5, producer.commit, 5), (7, producer.abort, 5)]:
            producer.begin()
            producer.send(target, b"up to %d" % offset)
            producer.send_offset(group, source, offset)
            end()
            assert committed_offset(server, group, source) == expected
    assert values(library, server, target, committed=True) == [b"up to 5"]


def test_a_transaction_of_offsets_alone(
    library: Client, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    source, group = new_topic(), new_name()
    library.produce(server.bootstrap, source, [Message(b"v")])
    with library.transactional(server.bootstrap, new_name()) as producer:
        producer.begin()
        producer.send_offset(group, source, 1)
        producer.commit()
    assert committed_offset(server, group, source) == 1


def test_an_empty_transaction(library: Client, server: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic = new_topic()
    with library.transactional(server.bootstrap, new_name()) as producer:
        for end in (producer.commit, producer.abort):
            producer.begin()
            end()
        producer.begin()
        producer.send(topic, b"v")
        producer.commit()
    assert values(library, server, topic, committed=True) == [b"v"]


def test_thirty_transactions_in_a_row(library: Client, server: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic, kept = new_topic(), []
    with library.transactional(server.bootstrap, new_name()) as producer:
        for number in range(30):
            producer.begin()
            producer.send(topic, b"%d" % number)
            if number % 3 == 2:
                producer.abort()
            else:
                producer.commit()
                kept.append(b"%d" % number)
    assert values(library, server, topic, committed=True) == kept
