"""Kohort in the place of testcontainers' KafkaContainer: the same methods, and no container."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, Self
from uuid import uuid4

from kohort.broker.config import ConfigError
from kohort.broker.config.sources import ENVIRONMENT_PREFIX, from_environment
from kohort.log.data_directory import uuid_text
from kohort.testing.process import BrokerProcess

__all__ = ["KohortContainer"]

_PREFIX: Final = "KAFKA_"
_OF_LISTENERS: Final = (
    "KAFKA_ADVERTISED_LISTENERS", "KAFKA_CONTROLLER_LISTENER_NAMES", "KAFKA_CONTROLLER_QUORUM_VOTERS",
    "KAFKA_INTER_BROKER_LISTENER_NAME", "KAFKA_LISTENERS", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
)  # fmt: skip
"""They lead into a container, and there is none."""

_OF_IMAGES: Final = (
    "KAFKA_CONFLUENT_", "KAFKA_HEAP_OPTS", "KAFKA_JMX_", "KAFKA_JVM_", "KAFKA_LOG4J_", "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_",
)  # fmt: skip
"""What begins like these is the JVM's, or of what Confluent's image has beside Kafka."""

_OF_SECURITY: Final = re.compile(
    r"KAFKA_(SASL_(ENABLED_MECHANISMS|JAAS_CONFIG)|SSL_KEYSTORE_\w+|LISTENER_NAME_\w+_(SASL|SSL)_\w+)"
)
_SECURED: Final = re.compile(
    r"(?<!\w)(SASL_PLAINTEXT|SASL_SSL|SSL)(?=\s*(,|://|$))|java\.security\.auth\.login\.config", re.IGNORECASE
)
"""In the value of one that is otherwise without effect: the broker would let in everybody."""

_OF_DEFAULT_MAP: Final = re.compile(r"(?<!\w)(\w+):\1(?!\w)", re.IGNORECASE)
"""A name that is its protocol's says nothing of what listens: it is in Kafka's own map."""

_SECURE_BROKER: Final = "a broker with passwords is kohort.testing.BrokerProcess(secure=True)"


class KohortContainer:
    """A broker as a child process, with the methods of testcontainers' KafkaContainer that mean something here.

        with KohortContainer() as kafka:
            producer = confluent_kafka.Producer({"bootstrap.servers": kafka.get_bootstrap_server()})

    Variables such as KAFKA_NUM_PARTITIONS are settings; those of listeners, of the JVM and of KAFKA_CONFLUENT_ have no
    effect, and those of passwords and TLS are refused. All else that isn't set is as of `kohort.testing.Broker`. What
    only a container can do raises NotImplementedError.

    Args:
        image: without effect.
        port: the port that `get_exposed_port` is asked for; the broker's own is a free one.
        security_protocol: PLAINTEXT; for others there is `kohort.testing.BrokerProcess(secure=True)`.
        options: without effect, as they are Docker's.

    Raises:
        ValueError: another security protocol.
    """

    def __init__(
        self,
        image: str = "",
        port: int = 9093,
        wait_strategy_check_string: str = "",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        **options: Any,
    ) -> None:
        if security_protocol != "PLAINTEXT":
            raise ValueError(f"security_protocol={security_protocol}: {_SECURE_BROKER}")
        self.image = image
        self.port = port
        self.env: dict[str, str] = {}
        self.cluster_id = ""
        self._broker: BrokerProcess | None = None
        self._directory: Path | None = None

    def with_kraft(self) -> Self:
        """Has no effect: there is no ZooKeeper in any case."""
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Sets the cluster's id; a random one by default."""
        self.cluster_id = cluster_id
        return self

    def with_env(self, key: str, value: object) -> Self:
        """Sets a variable: KAFKA_NUM_PARTITIONS is `num.partitions`. Those without KAFKA_ have no effect."""
        self.env[key] = str(value)
        return self

    def with_envs(self, **variables: object) -> Self:
        """Sets several variables."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_name(self, name: str) -> Self:
        """Has no effect."""
        return self

    def with_exposed_ports(self, *ports: int | str) -> Self:
        """Has no effect: the broker's port is there for this machine."""
        return self

    def waiting_for(self, strategy: object) -> Self:
        """Has no effect: `start` returns when clients can connect."""
        return self

    def start(self, timeout: float = 30) -> Self:
        """Starts the broker, and returns when clients can connect.

        Args:
            timeout: seconds.

        Raises:
            ConfigError: a variable means nothing to Kafka.
            ValueError: one asks for passwords or TLS.
            RuntimeError: it runs already, or doesn't get ready; shows the end of its log.
        """
        if self._broker is not None:
            raise RuntimeError("the broker runs already")
        settings = _settings(self.env)
        self._directory = Path(tempfile.mkdtemp(prefix="kohort-"))
        try:
            if self.cluster_id:
                node_id = settings.get("node.id", settings.get("broker.id", "1"))
                text = (
                    f"version=1\nnode.id={node_id}\ncluster.id={self.cluster_id}\ndirectory.id={uuid_text(uuid4())}\n"
                )
                (self._directory / "meta.properties").write_text(text)
            broker = BrokerProcess(settings, data_dir=self._directory, patience=timeout)
            self._broker = broker.__enter__()
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Ends the broker, and removes its data; nothing, if it doesn't run."""
        broker, self._broker = self._broker, None
        if broker is not None:
            assert self._directory is not None
            try:
                broker.__exit__()
            finally:
                shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def get_bootstrap_server(self) -> str:
        """The address for clients, such as "127.0.0.1:9092"."""
        return self._running().bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Where the broker is."""
        return self._running().host

    def get_exposed_port(self, port: int) -> int:
        """The broker's port, for the one that was given as `port`.

        Raises:
            ValueError: another port.
        """
        if int(port) != self.port:
            raise ValueError(f"port {port} isn't exposed, {self.port} is")
        return self._running().port

    def get_logs(self) -> tuple[bytes, bytes]:
        """What the broker wrote to standard output and to standard error, where its log is."""
        broker = self._running()
        return f"kohort ready on {broker.bootstrap_servers}\n".encode(), broker.log().encode()

    def __getattr__(self, name: str) -> NoReturn:
        """Says of what testcontainers has, and nothing here can be, that there is no container."""
        if name in _OF_CONTAINERS:
            instead = _INSTEAD if name == "with_bind_ports" else ""
            raise NotImplementedError(f"{name} is for a container, and Kohort runs without one{instead}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _running(self) -> BrokerProcess:
        if self._broker is None:
            raise RuntimeError("the broker doesn't run: start() it, or enter it with `with` first")
        return self._broker


_INSTEAD: Final = (
    ": get_bootstrap_server() has the broker's own port; a broker on a port of your choice is "
    "kohort.testing.Broker(port=9092)"
)
_OF_CONTAINERS: Final = frozenset((
    "configure", "copy_from_container", "copy_into_container", "create_file", "exec", "get_container_id",
    "get_container_info", "get_docker_client", "get_wrapped_container", "maybe_emulate_amd64", "reload", "status",
    "tc_start", "wait", "with_bind_ports", "with_command", "with_copy_into_container", "with_env_file", "with_kwargs",
    "with_network", "with_network_aliases", "with_tmpfs_mount", "with_volume_mapping",
))  # fmt: skip


def _settings(variables: Mapping[str, str]) -> dict[str, object]:
    """The settings that a container's variables are.

    Raises:
        ConfigError: they are none of Kafka's.
        ValueError: they are of passwords or TLS.
    """
    for name, value in variables.items():
        without_effect = name in _OF_LISTENERS or name.startswith(_OF_IMAGES)
        if _OF_SECURITY.fullmatch(name) or (without_effect and _SECURED.search(_OF_DEFAULT_MAP.sub("", value))):
            raise ValueError(f"{name}: {_SECURE_BROKER}")
    ours = {
        ENVIRONMENT_PREFIX + name.removeprefix(_PREFIX): value
        for name, value in variables.items()
        if name.startswith(_PREFIX) and name not in _OF_LISTENERS and not name.startswith(_OF_IMAGES)
    }
    problems: list[str] = []
    settings: dict[str, object] = {key: value.text for key, value in from_environment(ours, problems)}
    if problems:
        raise ConfigError("\n".join(problem.replace(ENVIRONMENT_PREFIX, _PREFIX, 1) for problem in problems))
    return settings
