"""Kohort in the place of testcontainers' KafkaContainer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kohort.broker.config import ConfigError
from kohort.testing import KohortContainer

from .test_broker import create_topic, topics


def test_a_program_of_testcontainers_runs() -> None:
    kafka = KohortContainer("confluentinc/cp-kafka:7.6.0").with_kraft().with_cluster_id("MkU3OEVBNTcwNTJENDM2Qk")
    with kafka.with_env("KAFKA_NUM_PARTITIONS", 3).with_envs(KAFKA_HEAP_OPTS="-Xmx1g", TZ="UTC") as running:
        servers = running.get_bootstrap_server()
        assert servers == f"{running.get_container_host_ip()}:{running.get_exposed_port(9093)}"
        producer = Producer({"bootstrap.servers": servers})
        producer.produce("orders", b"tea")
        assert producer.flush(30) == 0
        found = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30)
        assert len(found.topics["orders"].partitions) == 3
        assert found.cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
        output, log = running.get_logs()
        assert output.startswith(b"kohort ready on ")
        assert b"topic=orders" in log


def test_started_again_it_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kafka = KohortContainer()
    create_topic(kafka.start(timeout=60).get_bootstrap_server(), "orders")
    with pytest.raises(RuntimeError, match="runs already"):
        kafka.start()
    kafka.stop()
    kafka.stop()
    assert list(tmp_path.iterdir()) == []
    with kafka:
        assert topics(kafka.get_bootstrap_server()) == set()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_setting_is_told_as_it_was_written() -> None:
    kafka = KohortContainer().with_env("KAFKA_NUM_PARTITION", "3").with_env("KAFKA_LISTENERS", "PLAINTEXT://:9092")
    with pytest.raises(
        ConfigError, match=re.escape("KAFKA_NUM_PARTITION (environment): no such key; did you mean num.p")
    ):
        kafka.start()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "BROKER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT"),
        ("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "BROKER:PLAINTEXT,PLAINTEXT:ssl"),
        ("KAFKA_LISTENERS", "SASL_PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092"),
        ("KAFKA_ADVERTISED_LISTENERS", "BROKER://localhost:9092,SASL_SSL://localhost:9093"),
        ("KAFKA_SASL_ENABLED_MECHANISMS", "PLAIN"),
        ("KAFKA_LISTENER_NAME_PLAINTEXT_PLAIN_SASL_JAAS_CONFIG", "…PlainLoginModule required user_alice='tea';"),
        ("KAFKA_OPTS", "-Djava.security.auth.login.config=/etc/kafka/jaas.conf"),
        ("KAFKA_SSL_KEYSTORE_LOCATION", "/etc/kafka/broker.pem"),
    ],
)
def test_passwords_and_tls_by_variables_are_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: a broker with passwords is .*BrokerProcess\(secure=True\)$"):
        KohortContainer().with_env(name, value).start()


def test_variables_of_an_image_have_no_effect() -> None:
    kafka = KohortContainer().with_envs(
        KAFKA_LISTENERS="PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://ssl:9093",
        KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE="false",
        KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL="PLAIN",
        KAFKA_OPTS="-Xmx1g",
    )
    with kafka:
        assert topics(kafka.get_bootstrap_server()) == set()


def test_what_only_a_container_can_do_is_refused() -> None:
    kafka = KohortContainer()
    with pytest.raises(NotImplementedError, match="with_network is for a container"):
        kafka.with_network(None)
    with pytest.raises(NotImplementedError, match=r"with_bind_ports .*: get_bootstrap_server\(\) .*\(port=9092\)"):
        kafka.with_bind_ports(9093, 9092)
    with pytest.raises(AttributeError, match="no attribute 'with_netwrk'"):
        kafka.with_netwrk()
    with pytest.raises(ValueError, match="secure=True"):
        KohortContainer(security_protocol="SASL_PLAINTEXT")
    with pytest.raises(RuntimeError, match="doesn't run"):
        kafka.get_bootstrap_server()
    with KohortContainer(port=9095) as running, pytest.raises(ValueError, match="port 9093 isn't exposed, 9095 is"):
        running.get_exposed_port(9093)


OF_TESTCONTAINERS = [
    "with_kraft", "with_cluster_id", "configure", "get_bootstrap_server", "tc_start", "start", "create_file",
    "with_env", "with_envs", "with_env_file", "with_bind_ports", "with_exposed_ports", "with_network",
    "with_network_aliases", "with_kwargs", "maybe_emulate_amd64", "waiting_for", "stop", "get_container_id",
    "get_container_host_ip", "get_exposed_port", "with_command", "with_name", "with_volume_mapping",
    "with_tmpfs_mount", "get_wrapped_container", "get_docker_client", "get_logs", "reload", "status", "exec", "wait",
    "get_container_info", "with_copy_into_container", "copy_into_container", "copy_from_container",
]  # fmt: skip
"""The methods of KafkaContainer in testcontainers 4.15.0, of its own and of DockerContainer."""


@pytest.mark.parametrize("name", OF_TESTCONTAINERS)
def test_each_method_of_testcontainers_is_here_or_says_that_there_is_no_container(name: str) -> None:
    try:
        assert callable(getattr(KohortContainer(), name))
    except NotImplementedError as error:
        assert str(error).startswith(f"{name} is for a container, and Kohort runs without one")
