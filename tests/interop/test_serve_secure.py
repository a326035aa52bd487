"""Clients of others at `kohort serve --secure`, by what it prints and by the files that it writes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from kafka import KafkaConsumer, KafkaProducer

from kohort.testing import BrokerProcess

from .clients.kcat_client import KCAT
from .java.jvm import Tools

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
ACLS = "org.apache.kafka.tools.AclCommand"
CLASSES = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand"}


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(secure=True) as running:
        yield running


def printed(broker: BrokerProcess, program: str) -> list[str]:
    """The words of the command that it prints for a program."""
    (line,) = re.findall(rf"^{re.escape(program)} .*$", broker.log(), re.MULTILINE)
    return shlex.split(line)


def file(broker: BrokerProcess) -> str:
    """Of settings for Java."""
    words = printed(broker, "kafka-topics.sh")
    return words[words.index("--command-config") + 1]


@pytest.mark.long
def test_kafkas_tools(broker: BrokerProcess, tools: Tools) -> None:
    servers, settings = broker.bootstrap_servers, file(broker)
    common = ("--bootstrap-server", servers, "--topic", "of-java", "--command-config", settings)
    written = tools.run(PRODUCER, *common, stdin="a\nb\n")
    assert written.code == 0, written.err
    read = tools.run(CONSUMER, *common, "--from-beginning", "--max-messages", "2")
    assert read.lines == ["a", "b"], read.err
    program, *words = printed(broker, "kafka-topics.sh")
    listed = tools.run(CLASSES[program], *words)
    assert "of-java" in listed.lines, listed.err


def test_users_and_rules_by_kafkas_tools(broker: BrokerProcess, tools: Tools) -> None:
    alice = broker.security.add_user("alice")
    servers, admin = broker.bootstrap_servers, file(broker)
    read = ("--bootstrap-server", servers, "--topic", "ruled", "--from-beginning", "--max-messages", "1")
    written = tools.run(
        PRODUCER, "--bootstrap-server", servers, "--topic", "ruled", "--command-config", admin, stdin="a\n"
    )
    assert written.code == 0, written.err
    refused = tools.run(CONSUMER, *read, "--group", "g", "--command-config", str(alice.java_file))
    assert "Processed a total of 0 messages" in refused.err
    rule = ("--add", "--allow-principal", alice.principal, "--consumer", "--topic", "ruled", "--group", "g")
    ruled = tools.run(ACLS, "--bootstrap-server", servers, "--command-config", admin, *rule)
    assert ruled.code == 0, ruled.err
    found = tools.run(CONSUMER, *read, "--group", "g", "--command-config", str(alice.java_file))
    assert found.lines == ["a"], found.err


def test_kcat(broker: BrokerProcess, tmp_path: Path) -> None:
    """With librdkafka as Python has it: older ones, such as that of Debian 12, can't log in by SCRAM."""
    KCAT.require()
    (library,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*.so*")
    (tmp_path / "librdkafka.so.1").symlink_to(library)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    words = printed(broker, "kcat")
    for more, given, said in (
        (words[-1:], b"", b"broker 1 at " + broker.bootstrap_servers.encode()),
        (["-P", "-t", "of-kcat"], b"a\nb\n", b""),
        (["-C", "-t", "of-kcat", "-e", "-q"], b"", b"a\nb\n"),
    ):
        done = subprocess.run(
            [*words[:-1], *more], input=given, capture_output=True, check=True, timeout=60, env=environment
        )
        assert said in done.stdout, done.stderr


def test_kafka_python(broker: BrokerProcess) -> None:
    login = broker.security.admin
    settings = {
        "bootstrap_servers": login.servers,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(login.ca),
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": login.name,
        "sasl_plain_password": login.password,
    }
    producer = KafkaProducer(**settings)
    producer.send("of-python", b"hello").get(20)
    producer.close()
    consumer = KafkaConsumer("of-python", auto_offset_reset="earliest", **settings)
    assert next(consumer).value == b"hello"
    consumer.close()
