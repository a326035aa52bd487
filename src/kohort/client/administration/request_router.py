"""Sends requests of the admin client to the right brokers, with retries.

Every request is about keys: topics, partitions, groups, brokers. A `Finder` looks up the node of each key. Keys of one
node travel together, nodes are asked at the same time, and a key whose node has moved, is gone or isn't ready is looked
up and asked about again, until the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

from kohort.client.cluster import Cluster
from kohort.client.connection import Connection
from kohort.client.errors import (
    ClientError,
    ConnectionLostError,
    PartialFailureError,
    RequestTimeoutError,
    is_retriable,
    kafka_error,
)
from kohort.client.time_limit import time_limit
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Request, Response

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Response)

Failure = KafkaError | ClientError

ANY: Final = -1
"""The node of keys that any broker can answer."""

_UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_MOST_AT_ONCE: Final = 16
"""Nodes that are asked at the same time."""


class Deadline:
    """The time by which a call must be done."""

    def __init__(self, timeout_ms: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + timeout_ms / 1000

    @property
    def left_ms(self) -> int:
        """Ms until then, at least 1, so that a late request gets a timeout, not an argument error."""
        return max(1, int((self._at - self._loop.time()) * 1000))

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return self._loop.time() >= self._at


class Node:
    """A connection to one node, for requests with a deadline."""

    def __init__(self, connection: Connection, deadline: Deadline, request_timeout_ms: int) -> None:
        self.connection = connection
        self._deadline = deadline
        self._request_timeout_ms = request_timeout_ms

    @property
    def broker(self) -> Broker:
        """The node."""
        return self.connection.broker

    @property
    def timeout_ms(self) -> int:
        """How long a response may take."""
        return min(self._deadline.left_ms, self._request_timeout_ms)

    def speaks(self, request: type[Request]) -> bool:
        """Whether the broker has the API."""
        return self.connection.speaks(request)

    def version(self, request: type[Request], most: int | None = None) -> int:
        """Returns the newest version that both sides have.

        Raises:
            UnsupportedError: there is none.
        """
        return self.connection.version(request, most)

    async def ask(self, request: Request, response: type[R], version: int | None = None) -> R:
        """Sends a request, and returns its response; as `Connection.ask`."""
        return await self.connection.ask(request, response, version=version, timeout_ms=self.timeout_ms)


Ask = Callable[[Node, list[K]], Awaitable[Mapping[K, "V | Failure"]]]
"""Asks one node about some keys; returns each key's result or error."""


class Finder(Protocol[K]):
    """Looks up the nodes of keys."""

    async def __call__(self, router: RequestRouter, keys: list[K], deadline: Deadline) -> Mapping[K, int | Failure]:
        """Returns the node id of each key, or an error."""
        ...


class Outcomes(dict[K, V]):
    """Results by key.

    Attributes:
        failed: errors by key.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failed: dict[K, Failure] = {}

    def checked(self) -> dict[K, V]:
        """Returns the results.

        Raises:
            KafkaError, ClientError: the only key failed.
            PartialFailureError: some of several keys failed.
        """
        if not self.failed:
            return dict(self)
        if len(self) + len(self.failed) == 1:
            raise next(iter(self.failed.values()))
        raise PartialFailureError(self, self.failed)


def outcomes_of(results: Iterable[tuple[K, int, str | None]]) -> Outcomes[K, None]:
    """Returns the outcomes of a response's parts: key, error code, message.

    Raises:
        KafkaError: a part has a retriable error, so that the request should be sent again.
    """
    outcomes: Outcomes[K, None] = Outcomes()
    for key, code, message in results:
        if not code:
            outcomes[key] = None
            continue
        failure = kafka_error(code, message)
        if _may_retry(failure):
            raise failure
        outcomes.failed[key] = failure
    return outcomes


class RequestRouter:
    """Sends requests to brokers, with retries.

    Args:
        cluster: started.
        timeout_ms: for calls without a timeout.
    """

    def __init__(self, cluster: Cluster, timeout_ms: int) -> None:
        self.cluster = cluster
        self._timeout_ms = timeout_ms

    def deadline(self, timeout_ms: int | None) -> Deadline:
        """Returns the deadline of a call that begins now."""
        return Deadline(self._timeout_ms if timeout_ms is None else timeout_ms)

    async def any(self, request: Request, response: type[R], deadline: Deadline) -> R:
        """Asks any broker."""

        async def ask(node: Node, keys: list[None]) -> Mapping[None, R]:
            return {None: await node.ask(request, response)}

        async def find(router: RequestRouter, keys: list[None], deadline: Deadline) -> Mapping[None, int]:
            return {None: ANY}

        found: dict[None, R] = (await self.ask_nodes([None], find, ask, deadline)).checked()
        return found[None]

    async def ask_nodes(
        self,
        keys: Iterable[K],
        find: Finder[K],
        ask: Ask[K, V],
        deadline: Deadline,
        *,
        unknown_ms: int = 0,
    ) -> Outcomes[K, V]:
        """Asks each key's node about it.

        Args:
            keys: to ask about.
            find: looks up their nodes.
            ask: asks a node. Lost connections and timeouts that it raises count for all keys of the node.
            deadline: until when retriable errors are retried.
            unknown_ms: for how long an unknown topic is retried, too: a broker may not know a new one yet.

        Raises:
            UnsupportedError, AuthenticationError, ClosedError: no request can be sent at all.
        """
        outcomes: Outcomes[K, V] = Outcomes()
        pending = list(dict.fromkeys(keys))
        backoff = self.cluster.backoff()
        unknown_deadline = Deadline(unknown_ms)
        while pending:
            failures = await self._attempt(pending, find, ask, deadline, outcomes)
            pending = []
            pause = backoff.next() / 1000
            for key, failure in failures.items():
                if deadline.left_ms > pause * 1000 and _may_retry(failure, unknown_too=not unknown_deadline.passed):
                    pending.append(key)
                else:
                    outcomes.failed[key] = failure
            if pending:
                await asyncio.sleep(pause)
        return outcomes

    async def _attempt(
        self, keys: list[K], find: Finder[K], ask: Ask[K, V], deadline: Deadline, outcomes: Outcomes[K, V]
    ) -> dict[K, Failure]:
        """Asks once; puts results into `outcomes`, and returns errors."""
        failures: dict[K, Failure] = {}
        try:
            places = await find(self, keys, deadline)
        except (KafkaError, ConnectionLostError, RequestTimeoutError) as error:
            return dict.fromkeys(keys, error)
        nodes: dict[int, list[K]] = {}
        for key in keys:
            place = places[key]
            if isinstance(place, int):
                nodes.setdefault(place, []).append(key)
            else:
                failures[key] = place
        gate = asyncio.Semaphore(_MOST_AT_ONCE)

        async def ask_node(node: int, some: list[K]) -> None:
            try:
                async with gate:
                    answers = await ask(await self._connect(node, deadline), some)
            except (KafkaError, ConnectionLostError, RequestTimeoutError) as error:
                failures.update(dict.fromkeys(some, error))
                return
            for key in some:
                answer = answers[key] if key in answers else _unanswered()
                if isinstance(answer, KafkaError | ClientError):
                    failures[key] = answer
                else:
                    outcomes[key] = answer

        await _together([ask_node(node, some) for node, some in nodes.items()])
        return failures

    async def _connect(self, node: int, deadline: Deadline) -> Node:
        try:
            async with time_limit(deadline.left_ms / 1000):
                cluster = self.cluster
                connection = await (cluster.any_connection() if node == ANY else cluster.connection(node))
        except TimeoutError as error:
            if isinstance(error, ClientError):
                raise
            who = "no broker" if node == ANY else f"broker {node}"
            raise RequestTimeoutError(f"{who} could {'' if node == ANY else 'not '}be reached in time") from None
        return Node(connection, deadline, self.cluster.config.request_timeout_ms)


def _unanswered() -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer says nothing about it")


def _may_retry(failure: Failure, *, unknown_too: bool = False) -> bool:
    unknown = isinstance(failure, KafkaError) and failure.code in _UNKNOWN
    return is_retriable(failure) and (unknown_too or not unknown)


async def _together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Runs all of it; the first error cancels the rest."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
