"""A cluster as its clients see it: connections to its brokers, and knowledge of it that is kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from kohort.client.attempts import ask_until, retry_backoff
from kohort.client.backoff import Backoff
from kohort.client.config import ClientConfig, Servers, client_config
from kohort.client.connection import Connection
from kohort.client.connections import Connections
from kohort.client.coordinators import Coordinators
from kohort.client.errors import ClosedError, ConnectionLostError
from kohort.client.lifecycle import Lifecycle
from kohort.client.metadata import Metadata
from kohort.client.server_cluster_info import Changes, CoordinatorKind, ServerClusterInfo
from kohort.client.time_limit import time_limit
from kohort.client.types import Broker, TopicInfo, TopicPartition
from kohort.protocol.message import Request, Response

__all__ = ["Cluster"]

R = TypeVar("R", bound=Response)


class Cluster(Lifecycle):
    """Connections to a cluster's brokers, and what is known of the cluster.

    Made and used within an event loop; `async with` starts and closes it.

    Args:
        servers: addresses, or a configuration.

    Attributes:
        config: the settings.
        info: the server cluster info: brokers, topics, coordinators.

    Raises:
        ConfigError: settings that can't be.
    """

    def __init__(self, servers: Servers) -> None:
        self.config: ClientConfig = client_config(servers)
        self.info = ServerClusterInfo()
        self._connections = Connections(self.config, self.info, self.request_refresh)
        self._metadata = Metadata(self._connections, self.info, self.config)
        self._coordinators = Coordinators(self._connections, self.info, self.config)
        self._closed = False

    async def start(self) -> None:
        """Find the cluster: one bootstrap server after the other, round after round with pauses, until one answers.

        Raises:
            NoBrokerError: none did within `bootstrap_timeout_ms`.
            AuthenticationError, UnsupportedError: a broker was reached, but it won't do.
        """
        try:
            await self._metadata.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close all connections; whoever waits gets a `ClosedError` or a `ConnectionLostError`. May be called twice."""
        self._closed = True
        await self._metadata.close()
        await self._connections.close()

    def backoff(self) -> Backoff:
        """Pauses before something is tried again: `retry_backoff_ms` to `retry_backoff_max_ms`."""
        return retry_backoff(self.config)

    # Connections

    async def connection(self, node_id: int, purpose: str = "") -> Connection:
        """Returns the connection to a broker for a purpose, opened if there is none.

        A connection for each purpose keeps apart what mustn't wait for each other: a heartbeat and a long poll.

        Raises:
            ConnectionLostError: the broker isn't known (any more) or can't be reached. It isn't tried more often than
                `reconnect_backoff_ms` to `reconnect_backoff_max_ms` allow: until then this waits.
            AuthenticationError, UnsupportedError: it won't do.
            ClosedError: the cluster is closed.
        """
        return await self._connections.get(node_id, purpose)

    async def any_connection(self) -> Connection:
        """A connection to any broker: one that is open, else to the next broker, else to the next bootstrap server.

        Raises:
            NoBrokerError: all were tried.
            AuthenticationError, UnsupportedError: a broker was reached, but it won't do.
            ClosedError: the cluster is closed.
        """
        return await self._connections.any()

    async def ask_any(self, request: Request, response: type[R], *, timeout_ms: float | None = None) -> R:
        """Ask any broker, and another one if the connection breaks: only for what may be asked twice.

        Args:
            request, response: the message, and the class of the answer.
            timeout_ms: how long it may take in all; `request_timeout_ms` by default.

        Raises:
            NoBrokerError: none answered in time.
            AuthenticationError, UnsupportedError: a broker was reached, but it won't do.
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
        """Keep these topics in `info`, too; those that aren't there yet are asked for at once."""
        if self._metadata.followed is not None and not self._metadata.followed.issuperset(topics):
            self._metadata.followed |= set(topics)
            self._metadata.want(urgent=True)

    def follow_only(self, topics: Collection[str]) -> None:
        """Keep these topics in `info`, and no others."""
        before, self._metadata.followed = self._metadata.followed, set(topics)
        self.info.forget_topics((self.info.topics.keys() | self.info.errors.keys()) - self._metadata.followed)
        if before is None or not before.issuperset(topics):
            self._metadata.want(urgent=True)

    def follow_all(self) -> None:
        """Keep all topics there are in `info`."""
        if self._metadata.followed is not None:
            self._metadata.followed = None
            self._metadata.want(urgent=True)

    async def topic(self, name: str, *, timeout_ms: float | None = None, create: bool = False) -> TopicInfo:
        """What is known of a topic, asked for if need be; it is followed from then on.

        Args:
            name: its name.
            timeout_ms: how long it may take; `request_timeout_ms` by default.
            create: let a broker create it if it isn't there, where the broker's settings allow that.

        Raises:
            KafkaError: it isn't there by then (UNKNOWN_TOPIC_OR_PARTITION); or at once, what won't change by waiting,
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
        """Take a hint from a Produce or Fetch answer about a partition's leader (KIP-951); whether it was news.

        Args:
            at: the partition.
            node_id, epoch: its leader, and the leader epoch.
            endpoint: where that broker is, if the answer says so.
        """
        news = self.info.learn_leader(at, node_id, epoch, endpoint)
        if news:
            self._metadata.learnt(Changes(leaders=frozenset((at,))))
        return news

    # Refreshing

    async def refresh(self, *, timeout_ms: float | None = None) -> None:
        """Ask for the cluster's state anew, and wait for the answer.

        Raises:
            NoBrokerError: no broker answered in time (`request_timeout_ms` by default).
            AuthenticationError, UnsupportedError: a broker was reached, but it won't do.
        """
        await self._metadata.refreshed(self._or_default(timeout_ms))

    def request_refresh(self) -> None:
        """Have the cluster's state asked for soon; several of these in a row make one question."""
        self._metadata.want()

    async def wait_for_change(self, timeout_ms: float) -> bool:
        """Wait until metadata has come, be there news in it or not, or a leader was learnt; False if time was over."""
        try:
            async with time_limit(timeout_ms / 1000):
                await self._metadata.changed()
        except TimeoutError:
            return False
        if self._closed:
            raise ClosedError("the client is closed")
        return True

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Call a function with what has changed, whenever something has; returns what ends that."""
        return self._metadata.listen(callback)

    # Coordinators

    async def coordinator(self, kind: CoordinatorKind, key: str, *, timeout_ms: float | None = None) -> int:
        """Node id of the broker that coordinates a group or a transactional id; looked up if it isn't known.

        Raises:
            KafkaError: what a broker says, such as GROUP_AUTHORIZATION_FAILED, at once; COORDINATOR_NOT_AVAILABLE and
                the like when the time is over (`request_timeout_ms` by default).
            NoBrokerError: no broker answered in time.
        """
        return await self._coordinators.find(kind, key, self._or_default(timeout_ms))

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        """It isn't the coordinator any more, or can't be reached: whoever asks next has it looked up."""
        self.info.coordinators.pop((kind, key), None)

    async def coordinator_connection(self, kind: CoordinatorKind, key: str, purpose: str = "coordinator") -> Connection:
        """A connection to the coordinator, which is forgotten if it can't be reached.

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
