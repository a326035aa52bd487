"""A cluster as its clients see it: connections to its brokers, and metadata that is kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from kohort.client.backoff import Backoff
from kohort.client.config import ClientConfig, Servers, client_config
from kohort.client.connection import Connection
from kohort.client.connections import Connections
from kohort.client.coordinators import Coordinators
from kohort.client.errors import ClosedError, ConnectionLostError
from kohort.client.lifecycle import Lifecycle
from kohort.client.metadata import Metadata
from kohort.client.retrying import ask_until, retry_backoff
from kohort.client.server_cluster_info import Changes, CoordinatorKind, ServerClusterInfo
from kohort.client.time_limit import time_limit
from kohort.client.types import Broker, TopicInfo, TopicPartition
from kohort.protocol.message import Request, Response

__all__ = ["Cluster"]

R = TypeVar("R", bound=Response)


class Cluster(Lifecycle):
    """Connections to a cluster's brokers, and its metadata.

    Made and used within an event loop; `async with` starts and closes it.

    Args:
        servers: addresses, or a configuration.

    Attributes:
        config: the settings.
        info: the server cluster info: brokers, topics, coordinators.

    Raises:
        ConfigError: invalid settings.
    """

    def __init__(self, servers: Servers) -> None:
        self.config: ClientConfig = client_config(servers)
        self.info = ServerClusterInfo()
        self._connections = Connections(self.config, self.info, self.request_refresh)
        self._metadata = Metadata(self._connections, self.info, self.config)
        self._coordinators = Coordinators(self._connections, self.info, self.config)
        self._closed = False

    async def start(self) -> None:
        """Finds the cluster: tries one bootstrap server after the other, in rounds with backoff, until one answers.

        Raises:
            NoBrokerError: none did within `bootstrap_timeout_ms`.
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
        """
        try:
            await self._metadata.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Closes all connections; waiting calls get a `ClosedError` or a `ConnectionLostError`. May be called twice."""
        self._closed = True
        await self._metadata.close()
        await self._connections.close()

    def backoff(self) -> Backoff:
        """Returns a backoff from `retry_backoff_ms` to `retry_backoff_max_ms`."""
        return retry_backoff(self.config)

    # Connections

    async def connection(self, node_id: int, purpose: str = "") -> Connection:
        """Returns the connection to a broker for a purpose, opened if there is none.

        A connection for each purpose keeps apart what mustn't wait for each other: a heartbeat and a long poll.

        Raises:
            ConnectionLostError: the broker isn't in the metadata (any more) or can't be reached. This waits until the
                backoff (`reconnect_backoff_ms` to `reconnect_backoff_max_ms`) is over.
            AuthenticationError, UnsupportedError: the broker can't be used.
            ClosedError: the cluster is closed.
        """
        return await self._connections.get(node_id, purpose)

    async def any_connection(self) -> Connection:
        """Returns a connection to any broker: one that is open, else to the next broker, else to a bootstrap server.

        Raises:
            NoBrokerError: all were tried.
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
            ClosedError: the cluster is closed.
        """
        return await self._connections.any()

    async def ask_any(self, request: Request, response: type[R], *, timeout_ms: float | None = None) -> R:
        """Asks any broker, and another one if the connection breaks: only for requests that may be repeated.

        Args:
            request, response: the request, and the class of its response.
            timeout_ms: for all attempts; `request_timeout_ms` by default.

        Raises:
            NoBrokerError: none answered in time.
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
            ClosedError: the cluster is closed.
        """
        return await ask_until(
            self._connections,
            self.config,
            request.__message__.api,
            self._or_default(timeout_ms),
            lambda each: each.ask(request, response),
        )

    # Topics

    def follow(self, topics: Collection[str]) -> None:
        """Keeps these topics in `info`, too; missing ones are requested at once."""
        if self._metadata.followed is not None and not self._metadata.followed.issuperset(topics):
            self._metadata.followed |= set(topics)
            self._metadata.request_refresh(urgent=True)

    def follow_only(self, topics: Collection[str]) -> None:
        """Keeps these topics in `info`, and no others."""
        before, self._metadata.followed = self._metadata.followed, set(topics)
        self.info.forget_topics((self.info.topics.keys() | self.info.errors.keys()) - self._metadata.followed)
        if before is None or not before.issuperset(topics):
            self._metadata.request_refresh(urgent=True)

    @property
    def follows_all(self) -> bool:
        """Whether it keeps all topics in `info`."""
        return self._metadata.followed is None

    def follow_all(self) -> None:
        """Keeps all topics in `info`."""
        if self._metadata.followed is not None:
            self._metadata.followed = None
            self._metadata.request_refresh(urgent=True)

    async def topic(self, name: str, *, timeout_ms: float | None = None, create: bool = False) -> TopicInfo:
        """Returns a topic's metadata, requested if it's missing; the topic is followed from then on.

        Args:
            name: its name.
            timeout_ms: `request_timeout_ms` by default.
            create: lets a broker create a missing topic, where the broker's settings allow that.

        Raises:
            KafkaError: it doesn't exist by then (UNKNOWN_TOPIC_OR_PARTITION); or at once, if the error isn't retriable,
                such as TOPIC_AUTHORIZATION_FAILED.
            NoBrokerError: no broker answered in time.
        """
        known = self.info.topics.get(name)
        if known is None or name in self.info.errors:
            known = await self._metadata.topic(name, self._or_default(timeout_ms), create=create)
        if self._metadata.followed is not None:
            self._metadata.followed.add(name)
        return known

    def learn_leader(self, at: TopicPartition, node_id: int, epoch: int, endpoint: Broker | None = None) -> bool:
        """Takes a partition's leader from a Produce or Fetch response (KIP-951); returns whether it is a newer one.

        Args:
            at: the partition.
            node_id, epoch: its leader, and the leader epoch.
            endpoint: the broker's address, if the response has it.
        """
        newer = self.info.learn_leader(at, node_id, epoch, endpoint)
        if newer:
            self._metadata.leader_changed(Changes(leaders=frozenset((at,))))
        return newer

    # Refreshing

    async def refresh(self, *, timeout_ms: float | None = None) -> None:
        """Refreshes metadata, and waits for it.

        Raises:
            NoBrokerError: no broker answered in time (`request_timeout_ms` by default).
            AuthenticationError, UnsupportedError: a broker was reached, but can't be used.
        """
        await self._metadata.refresh(self._or_default(timeout_ms))

    def request_refresh(self) -> None:
        """Requests a metadata refresh soon; several calls in a row make one request."""
        self._metadata.request_refresh()

    async def wait_for_change(self, timeout_ms: float) -> bool:
        """Waits for the next metadata response, or new leader; returns False if the time is over."""
        try:
            async with time_limit(timeout_ms / 1000):
                await self._metadata.changed()
        except TimeoutError:
            return False
        if self._closed:
            raise ClosedError("the client is closed")
        return True

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Calls a function with the changes of each update; returns a function that ends that."""
        return self._metadata.on_change(callback)

    # Coordinators

    async def coordinator(self, kind: CoordinatorKind, key: str, *, timeout_ms: float | None = None) -> int:
        """Returns the node id of the coordinator of a group or a transactional id; finds it if it isn't known.

        Raises:
            KafkaError: such as GROUP_AUTHORIZATION_FAILED, at once; retriable ones such as COORDINATOR_NOT_AVAILABLE
                when the time is over (`request_timeout_ms` by default).
            NoBrokerError: no broker answered in time.
        """
        return await self._coordinators.find(kind, key, self._or_default(timeout_ms))

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        """Forgets a coordinator, which has moved or can't be reached; the next call finds it."""
        self.info.coordinators.pop((kind, key), None)

    async def coordinator_connection(self, kind: CoordinatorKind, key: str, purpose: str = "coordinator") -> Connection:
        """Returns a connection to the coordinator, which is forgotten if it can't be reached.

        Raises as `coordinator` and `connection`.
        """
        node_id = await self.coordinator(kind, key)
        try:
            return await self.connection(node_id, purpose)
        except ConnectionLostError:
            self.forget_coordinator(kind, key)
            raise

    def _or_default(self, timeout_ms: float | None) -> float:
        return self.config.request_timeout_ms if timeout_ms is None else timeout_ms
