"""Clients of others at listeners with TLS and SASL, by each mechanism; and who has no password stays out."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PythonError

from ..waiting import eventually
from .clients.kcat_client import KCAT
from .java.jvm import Tools
from .secured import MECHANISMS, PASSWORD, USER, WAYS, SecureKohort, add_user, java_properties
from .topics import create_topic

way = pytest.mark.parametrize(("protocol", "mechanism"), WAYS, ids=lambda text: text or "certificate")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKohort]:
    server = SecureKohort(tmp_path_factory.mktemp("secured"), {"delegation.token.secret.key": "a secret"})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def topic(secured: SecureKohort, request: pytest.FixtureRequest) -> str:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return create_topic(AdminClient({"bootstrap.servers": secured.bootstrap}), name)


def librdkafka(secured: SecureKohort, protocol: str, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    """The settings of librdkafka."""
    settings = {
        "bootstrap.servers": f"localhost:{secured.ports[protocol]}",
        "security.protocol": protocol,
        "ssl.ca.location": str(secured.house.ca),
    }
    if mechanism:
        return settings | {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
    client = str(secured.house.client_pem)
    return settings | {"ssl.certificate.location": client, "ssl.key.location": client}


@way
def test_librdkafka(secured: SecureKohort, topic: str, protocol: str, mechanism: str) -> None:
    settings = librdkafka(secured, protocol, mechanism)
    producer = Producer(settings)
    for number in range(100):
        producer.produce(topic, b"%d" % number + b"." * 10_000)
    assert producer.flush(20) == 0
    consumer = Consumer(settings | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values = [message.value() for message in consumer.consume(100, 20)]
    consumer.close()
    assert [(value or b"").rstrip(b".") for value in values] == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_with_a_wrong_password(secured: SecureKohort, mechanism: str) -> None:
    errors: list[KafkaError] = []
    settings = librdkafka(secured, "SASL_SSL", mechanism, "wrong")
    admin = AdminClient({**settings, "error_cb": errors.append})  # type: ignore[dict-item]
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)

    def is_told() -> bool:
        admin.poll(0.1)
        return KafkaError._AUTHENTICATION in [error.code() for error in errors]

    eventually(is_told, what="the error is told of")


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "PLAIN")])
def test_kcat(secured: SecureKohort, topic: str, protocol: str, mechanism: str) -> None:
    KCAT.require()
    options = [f"-X{key}={value}" for key, value in librdkafka(secured, protocol, mechanism).items()]
    subprocess.run(["kcat", *options, "-P", "-t", topic], input=b"a\nb\n", check=True, timeout=30)
    done = subprocess.run(
        ["kcat", *options, "-C", "-t", topic, "-e", "-q"], capture_output=True, check=True, timeout=30
    )
    assert done.stdout == b"a\nb\n"


def context(secured: SecureKohort, mechanism: str) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(secured.house.ca))
    if not mechanism:
        made.load_cert_chain(secured.house.client_pem)
    return made


@way
def test_aiokafka(secured: SecureKohort, topic: str, protocol: str, mechanism: str) -> None:
    async def main() -> None:
        settings = {
            "bootstrap_servers": f"localhost:{secured.ports[protocol]}",
            "security_protocol": protocol,
            "ssl_context": context(secured, mechanism) if protocol.endswith("SSL") else None,
        }
        if mechanism:
            settings |= {
                "sasl_mechanism": mechanism,
                "sasl_plain_username": USER,
                "sasl_plain_password": PASSWORD,
            }
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with AIOKafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings) as consumer:
            assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"hello"

    asyncio.run(main())


@way
def test_kafka_python(secured: SecureKohort, topic: str, protocol: str, mechanism: str) -> None:
    settings: dict[str, object] = {
        "bootstrap_servers": f"localhost:{secured.ports[protocol]}",
        "security_protocol": protocol,
        "ssl_context": context(secured, mechanism) if protocol.endswith("SSL") else None,
    }
    if mechanism:
        settings |= {"sasl_mechanism": mechanism, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    admin = KafkaAdminClient(**settings)
    assert topic in admin.list_topics()
    admin.close()
    if mechanism:
        with pytest.raises(PythonError):
            KafkaAdminClient(**settings | {"sasl_plain_password": "wrong"}, api_version_auto_timeout_ms=2000)


CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"


@way
def test_java(secured: SecureKohort, tools: Tools, topic: str, protocol: str, mechanism: str, tmp_path: Path) -> None:
    bootstrap = f"localhost:{secured.ports[protocol]}"
    settings = str(java_properties(secured, tmp_path, protocol, mechanism))
    produced = tools.run(
        CONSOLE_PRODUCER,
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--command-config",
        settings,
        stdin="a\nb\n",
    )
    assert produced.code == 0, produced.err
    consumed = tools.run(
        CONSOLE_CONSUMER, "--bootstrap-server", bootstrap, "--topic", topic, "--command-config", settings,
        "--from-beginning", "--max-messages", "2",
    )  # fmt: skip
    assert consumed.lines == ["a", "b"], consumed.err


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_java_with_a_wrong_password(secured: SecureKohort, tools: Tools, mechanism: str, tmp_path: Path) -> None:
    settings = java_properties(secured, tmp_path, "SASL_SSL", mechanism, password="wrong")
    done = tools.run(
        TOPICS, "--bootstrap-server", f"localhost:{secured.ports['SASL_SSL']}", "--list", "--command-config",
        str(settings),
    )  # fmt: skip
    assert done.code != 0
    assert "Authentication failed" in done.out + done.err


def test_users_by_kafkas_tool(secured: SecureKohort, tools: Tools, tmp_path: Path) -> None:
    def configs(*arguments: str) -> str:
        return tools.succeed(
            secured.bootstrap, CONFIGS, *arguments, "--entity-type", "users", "--entity-name", "carol"
        ).out

    def come_in(password: str) -> bool:
        settings = java_properties(secured, tmp_path, "SASL_SSL", "SCRAM-SHA-256", "carol", password)
        bootstrap = f"localhost:{secured.ports['SASL_SSL']}"
        return tools.run(TOPICS, "--bootstrap-server", bootstrap, "--list", "--command-config", str(settings)).code == 0

    configs("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=first]")
    configs("--alter", "--add-config", "SCRAM-SHA-512=[password=other]")
    described = configs("--describe")
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    assert come_in("first")
    add_user(secured.bootstrap, "carol", "second")
    assert come_in("second")
    assert not come_in("first")
    configs("--alter", "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM-SHA-256" not in configs("--describe")
    assert not come_in("second")


TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"


def test_delegation_tokens_by_kafkas_tool(secured: SecureKohort, tools: Tools, topic: str, tmp_path: Path) -> None:
    bootstrap = f"localhost:{secured.ports['SASL_SSL']}"
    settings = str(java_properties(secured, tmp_path, "SASL_SSL", "SCRAM-SHA-512"))

    def tokens(*arguments: str) -> str:
        done = tools.run(TOKENS, "--bootstrap-server", bootstrap, "--command-config", settings, *arguments)
        assert done.code == 0, done.out + done.err
        return done.out

    made = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:carol")
    token_id, secret = made.splitlines()[-1].split()[:2]
    assert token_id in tokens("--describe", "--owner-principal", f"User:{USER}")

    def come_in(mechanism: str) -> bool:
        path = java_properties(secured, tmp_path, "SASL_SSL", mechanism, token_id, secret)
        by_token = path.read_text().replace('";', '" tokenauth="true";')
        path.write_text(by_token)
        done = tools.run(TOPICS, "--bootstrap-server", bootstrap, "--list", "--command-config", str(path))
        assert done.code != 0 or topic in done.out
        return done.code == 0

    assert come_in("SCRAM-SHA-256")
    assert come_in("SCRAM-SHA-512")
    tokens("--renew", "--renew-time-period", "-1", "--hmac", secret)
    tokens("--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert token_id not in tokens("--describe", "--owner-principal", f"User:{USER}")
    assert not come_in("SCRAM-SHA-512")
