"""kill -9 of the server amid the work, and a start on the same port and data: nothing acknowledged is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ..waiting import eventually
from .clients import LIBRARIES, Client, Message
from .members import Feeder, Members, assert_at_least_once
from .servers import Server
from .topics import create_topic, numbers, read_partitions

pytestmark = pytest.mark.long
TOPIC, TARGET, GROUP, PARTITIONS = "orders", "copies", "workers", 6


@pytest.fixture
def server(own_server: Server) -> Server:
    admin = AdminClient({"bootstrap.servers": own_server.bootstrap})
    create_topic(admin, TOPIC, PARTITIONS)
    create_topic(admin, TARGET, PARTITIONS)
    return own_server


def crash(server: Server, feeder: Feeder, records: int = 300) -> None:
    """In the middle of producing: after so many acknowledgements from now on, with more under way."""
    start = feeder.delivered
    eventually(lambda: feeder.delivered >= start + records, what=f"{records} more are acknowledged")
    server.kill()
    server.restart()


def test_an_idempotent_producer_writes_everything_once(server: Server) -> None:
    feeder = Feeder(server.bootstrap, TOPIC, PARTITIONS)
    try:
        for _ in range(3):
            crash(server, feeder)
    finally:
        ends = feeder.stop()
    assert read_partitions(server.bootstrap, TOPIC, PARTITIONS) == numbers(ends)


def test_what_every_client_wrote_is_read_by_every_client(server: Server) -> None:
    for compression, writer in [("none", LIBRARIES[0]), ("zstd", LIBRARIES[1]), ("gzip", LIBRARIES[2])]:
        messages = [Message(b"%d" % i, compression.encode()) for i in range(300)]
        writer.produce(server.bootstrap, TOPIC, messages, compression=compression)
    server.kill()
    server.restart()
    for reader in LIBRARIES:
        found = reader.consume(server.bootstrap, TOPIC)
        assert [m.key for m in found] == [b"none"] * 300 + [b"zstd"] * 300 + [b"gzip"] * 300
        assert [m.offset for m in found] == list(range(900))


def test_an_open_transaction_is_finished_after_the_crash(server: Server, library: Client) -> None:
    with library.transactional(server.bootstrap, "t") as producer:
        producer.begin()
        producer.send(TOPIC, b"committed before")
        producer.commit()
        producer.begin()
        producer.send(TOPIC, b"before")
        producer.send_offset(GROUP, TARGET, 7)
        server.kill()
        server.restart()
        assert [m.value for m in library.consume(server.bootstrap, TOPIC, committed=True)] == [b"committed before"]
        producer.send(TOPIC, b"after")
        producer.commit()
        producer.begin()
        producer.send(TOPIC, b"aborted")
        server.kill()
        server.restart()
        producer.abort()
    found = library.consume(server.bootstrap, TOPIC, committed=True)
    assert [m.value for m in found] == [b"committed before", b"before", b"after"]


def test_the_heir_of_a_transactional_id_aborts_what_was_open(server: Server, library: Client) -> None:
    with library.transactional(server.bootstrap, "t") as zombie:
        zombie.begin()
        zombie.send(TOPIC, b"zombie's")
        server.kill()
        server.restart()
        with library.transactional(server.bootstrap, "t") as heir:
            heir.begin()
            heir.send(TOPIC, b"heir's")
            heir.commit()
        with pytest.raises(zombie.fencing):
            zombie.commit()
    assert [m.value for m in library.consume(server.bootstrap, TOPIC, committed=True)] == [b"heir's"]


@pytest.mark.parametrize(
    ("program", "protocol"),
    [
        ("librdkafka_member", "classic"),
        ("librdkafka_member", "consumer"),
        ("kafka_python_member", "classic"),
        ("aiokafka_member", "classic"),
    ],
)
def test_a_group_works_on_from_its_committed_offsets(
    program: str, protocol: str, server: Server, members: Members
) -> None:
    feeder = Feeder(server.bootstrap, TOPIC, PARTITIONS)
    try:
        wanted = {"bootstrap": server.bootstrap, "group": GROUP, "topic": TOPIC, "session_timeout": 10_000}
        wanted |= {} if protocol == "classic" else {"protocol": protocol}
        group = [members.start(program, **wanted) for _ in range(3)]
        eventually(lambda: all(m.told("committed") for m in group), within=60, what="all three work")
        for _ in range(2):
            crash(server, feeder)
            done = {m: len(m.told("committed")) for m in group}
            eventually(
                lambda done=done: all(len(m.told("committed")) > n for m, n in done.items()),
                within=60,
                what="all work on",
            )
    finally:
        ends = feeder.stop()
    eventually(lambda: members.committed() == ends, within=60, what="all is read and committed")
    for member in group:
        member.leave()
    assert_at_least_once(group, ends)


@pytest.mark.parametrize("program", ["librdkafka_transformer", "kafka_python_transformer"])
def test_exactly_once_stays_exact(program: str, server: Server, members: Members) -> None:
    feeder = Feeder(server.bootstrap, TOPIC, PARTITIONS)
    try:
        wanted = {"bootstrap": server.bootstrap, "group": GROUP, "topic": TOPIC, "session_timeout": 10_000}
        group = [members.start(program, target=TARGET, transactional_id=f"t-{slot}", **wanted) for slot in range(3)]
        eventually(lambda: all(m.told("committed") for m in group), within=60, what="all three work")
        for _ in range(2):
            crash(server, feeder)
            done = {m: len(m.told("committed")) for m in group}
            eventually(
                lambda done=done: all(len(m.told("committed")) > n for m, n in done.items()),
                within=60,
                what="all work on",
            )
    finally:
        ends = feeder.stop()
    eventually(lambda: members.committed() == ends, within=60, what="all is transformed")
    for member in group:
        member.leave()
    assert read_partitions(server.bootstrap, TARGET, PARTITIONS) == numbers(ends)


@pytest.mark.parametrize("end", [Server.kill, Server.stop])
def test_topics_and_their_configs_come_back(end: Callable[[Server], None], own_server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": own_server.bootstrap})
    for name in ("kept", "deleted"):
        create_topic(admin, name, 3, {"retention.ms": "1234567"})
    resource = ConfigResource(ResourceType.TOPIC, "kept")
    resource.add_incremental_config(
        ConfigEntry("segment.bytes", "7654321", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result(20)
    admin.delete_topics(["deleted"])["deleted"].result(20)
    eventually(lambda: list(topic_ids(own_server)) == ["kept"], what="the other is gone")
    before = topic_ids(own_server)
    end(own_server)
    own_server.start()
    admin = AdminClient({"bootstrap.servers": own_server.bootstrap})
    assert topic_ids(own_server) == before
    resource = ConfigResource(ResourceType.TOPIC, "kept")
    configs = admin.describe_configs([resource])[resource].result(20)
    assert {key: configs[key].value for key in ("retention.ms", "segment.bytes")} == {
        "retention.ms": "1234567",
        "segment.bytes": "7654321",
    }


def topic_ids(server: Server) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    names = [name for name in admin.list_topics(timeout=20).topics if not name.startswith("__")]
    described = admin.describe_topics(TopicCollection(names))
    return {name: str(future.result(20).topic_id) for name, future in described.items()}
