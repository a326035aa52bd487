"""Where a configuration is read from: file, environment, command line, program."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.broker.config import ConfigError, Settings

KAFKAS_OWN = """\
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_command_line_wins_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.segment.bytes=2000000\nfetch.max.bytes=2000\n")
    environ = {"KOHORT_NUM_PARTITIONS": "3", "KOHORT_LOG_SEGMENT_BYTES": "3000000", "PATH": "/bin"}

    settings = Settings.load(file, environ, ["num.partitions=4"])

    keys = ("num.partitions", "log.segment.bytes", "fetch.max.bytes", "auto.create.topics.enable")
    assert [(settings.value(key), settings.source_of(key)) for key in keys] == [
        (4, "--set num.partitions"),
        (3_000_000, "KOHORT_LOG_SEGMENT_BYTES"),
        (2000, f"{file}:3"),
        (True, "default"),
    ]


def test_the_file_that_comes_with_kafka_loads(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(KAFKAS_OWN)

    settings = Settings.load(file)

    assert settings.int("node.id") == 7


@pytest.mark.parametrize("override", ["num.partitions", "=3"])
def test_an_override_is_a_key_and_a_value(override: str) -> None:
    with pytest.raises(ConfigError, match=f"--set {override}: key=value is needed"):
        Settings.load(overrides=[override])


def test_a_file_that_is_not_there_is_the_callers_problem(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Settings.load(tmp_path / "none")


def test_a_program_may_give_what_it_has() -> None:
    settings = Settings.of({"delete.topic.enable": False, "log.cleanup.policy": ["compact", "delete"], "node.id": 3})

    assert (settings.flag("delete.topic.enable"), settings.names("log.cleanup.policy"), settings.int("node.id")) == (
        False, ("compact", "delete"), 3,
    )  # fmt: skip


def test_what_kubernetes_puts_into_the_environment_is_passed_over() -> None:
    environ = {"KOHORT_SERVICE_HOST": "10.0.0.1", "KOHORT_PORT": "tcp://10.0.0.1:9092", "KOHORT_PORT_9092_TCP": "x"}
    assert Settings.load(None, environ).int("num.partitions") == 1


def test_where_the_commands_of_clients_find_their_cluster_is_no_key_of_the_server() -> None:
    """A shell that has exported it for `kohort topics` starts a server, too; a mistyped one is still told."""
    both = {"KOHORT_BOOTSTRAP_SERVERS": "localhost:9092", "KOHORT_CLUSTER": "dev"}
    assert Settings.load(None, both).int("num.partitions") == 1
    with pytest.raises(ConfigError, match="KOHORT_BOOTSTRAP_SERVER"):
        Settings.load(None, {"KOHORT_BOOTSTRAP_SERVER": "localhost:9092"})


def test_keys_of_listeners_in_the_environment() -> None:
    settings = Settings.load(
        None,
        {
            "KOHORT_LISTENER_NAME_SASL_SSL_SSL_CLIENT_AUTH": "required",
            "KOHORT_LISTENER_NAME_SASL_SSL_SCRAM_SHA_256_CONNECTIONS_MAX_REAUTH_MS": "5",
        },
    )

    assert settings.for_listener("SASL_SSL").text("ssl.client.auth") == "required"
    assert settings.for_listener("SASL_SSL", "SCRAM-SHA-256").int("connections.max.reauth.ms") == 5
