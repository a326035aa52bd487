"""Client metrics subscriptions (KIP-714): which clients push which metrics, and how often.

Subscriptions are configured as resources of type CLIENT_METRICS: `metrics` (name prefixes, or `*`), `interval.ms`, and
`match` (a list of `parameter=regular expression`, all of which must match). A client may match several subscriptions;
it pushes the metrics of all, at the shortest of their intervals.

ApiVersions offers the two APIs while there is a subscription, and they are served in any case: a client may have heard
of them before the last one went. One that connected before the first hears of them at its next connection.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.broker.session import Session
from kohort.broker.topics import ConfigResource
from kohort.log.data_directory import uuid_text
from kohort.protocol.crc32c import crc32c
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.schema import NO_UUID
from kohort.regex import full_matches

ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000
MAX_CLIENTS: Final = 16_384
"""Clients in the cache; the least recently used is evicted."""

RESERVED_IDS: Final = frozenset({NO_UUID, uuid.UUID(int=1)})
"""Client instance ids that Kafka never assigns."""

COMPRESSION_CODECS: Final = range(5)
_NOT_THROTTLED_AFTER: Final = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
_NEVER: Final = -1


def match_parameters(client: uuid.UUID, client_id: str, session: Session) -> dict[str, str]:
    """A client's value of each parameter that `match` may name."""
    return {
        "client_instance_id": uuid_text(client),
        "client_id": client_id,
        "client_software_name": session.software_name,
        "client_software_version": session.software_version,
        "client_source_address": session.host,
        "client_source_port": str(session.port),
    }


class Subscription(NamedTuple):
    """What a client pushes.

    Attributes:
        subscription_id: differs whenever a part of the subscription does.
        metrics: prefixes of names; `*` alone for all; empty for none.
        interval_ms: time between pushes.
    """

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


@dataclass(slots=True)
class _Instance:
    """A client's state since its first request under a subscription."""

    subscription_id: int
    last_get: int = _NEVER
    last_push: int = _NEVER
    last_error: ErrorCode = ErrorCode.NONE
    terminating: bool = False


class ClientTelemetry:
    """Serves client metrics subscriptions, and counts pushes. The metrics are dropped: this broker has no receiver.

    Args:
        subscriptions: returns the current, validated configurations of all subscriptions.
        max_bytes: the largest push, in bytes as sent.
        new_id: returns ids for clients without one.
    """

    def __init__(
        self, subscriptions: Callable[[], Iterable[Mapping[str, str]]], max_bytes: int, new_id: Callable[[], uuid.UUID]
    ) -> None:
        self.max_bytes = max_bytes
        self.pushes = 0
        self.bytes_received = 0
        self._subscriptions = subscriptions
        self._new_id = new_id
        self._instances: OrderedDict[uuid.UUID, _Instance] = OrderedDict()
        self._offered: bool | None = None

    @property
    def offered(self) -> bool:
        """Whether there is a subscription at all: clients that are offered the APIs ask, and say so in their logs."""
        if self._offered is None:
            self._offered = any(True for _ in self._subscriptions())
        return self._offered

    def config_changed(self, kind: ConfigResource, name: str) -> None:
        del name
        if kind is ConfigResource.CLIENT_METRICS:
            self._offered = None

    def new_id(self) -> uuid.UUID:
        while (made := self._new_id()) in self._instances:
            pass
        return made

    def subscribe(self, client: uuid.UUID, parameters: Mapping[str, str], now: int) -> Subscription:
        """Returns the client's subscription.

        Args:
            parameters: the client's values of what `match` may name: client_id, client_source_address, …
            now: ms since 1970.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED if nothing has changed and its interval isn't over.
        """
        found = self._matching(client, parameters)
        instance = self._instance(client, found)
        last = max(instance.last_get, instance.last_push)
        early = last != _NEVER and now - last < found.interval_ms
        if early and instance.last_error not in _NOT_THROTTLED_AFTER:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The push interval isn't over yet.")
        instance.last_get = now
        instance.last_error = ErrorCode.NONE
        return found

    def push(
        self,
        client: uuid.UUID,
        parameters: Mapping[str, str],
        now: int,
        *,
        subscription_id: int,
        terminating: bool,
        compression: int,
        size: int,
    ) -> None:
        """Accepts a push of `size` bytes.

        Raises:
            KafkaError: INVALID_REQUEST after the client's last push, THROTTLING_QUOTA_EXCEEDED,
                UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE or TELEMETRY_TOO_LARGE.
        """
        found = self._matching(client, parameters)
        instance = self._instance(client, found)
        try:
            self._check_push(instance, found, now, subscription_id, terminating, compression, size)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.terminating = instance.terminating or terminating
        instance.last_error = ErrorCode.NONE
        self.pushes += 1
        self.bytes_received += size

    def _check_push(
        self,
        instance: _Instance,
        found: Subscription,
        now: int,
        subscription_id: int,
        terminating: bool,
        compression: int,
        size: int,
    ) -> None:
        if instance.terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The client has pushed for the last time.")
        # The first push after a subscription may be early: clients spread it at random over the interval.
        in_time = (
            instance.last_push == _NEVER
            or instance.last_get > instance.last_push
            or now - instance.last_push >= found.interval_ms
        )
        if in_time:
            instance.last_push = now
        elif not terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The push interval isn't over yet.")
        if subscription_id != found.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if compression not in COMPRESSION_CODECS:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if size > self.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _instance(self, client: uuid.UUID, found: Subscription) -> _Instance:
        instance = self._instances.get(client)
        if instance is None or instance.subscription_id != found.subscription_id:
            # A client whose subscription has changed isn't throttled.
            instance = self._instances[client] = _Instance(found.subscription_id)
        self._instances.move_to_end(client)
        if len(self._instances) > MAX_CLIENTS:
            self._instances.popitem(last=False)
        return instance

    def _matching(self, client: uuid.UUID, parameters: Mapping[str, str]) -> Subscription:
        metrics: set[str] = set()
        interval_ms = DEFAULT_INTERVAL_MS
        for configs in self._subscriptions():
            patterns = _patterns(configs.get("match", ""))
            if all(full_matches(pattern, [parameters.get(name, "")])[0] for name, pattern in patterns.items()):
                metrics.update(_items(configs.get("metrics", "")))
                interval_ms = min(interval_ms, int(configs.get("interval.ms", DEFAULT_INTERVAL_MS)))
        wanted = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
        return Subscription(_subscription_id(client, wanted, interval_ms), wanted, interval_ms)


def _items(value: str) -> list[str]:
    return [item for part in value.split(",") if (item := part.strip())]


def _patterns(match: str) -> dict[str, str]:
    """The regular expressions of a subscription by match parameter."""
    pairs = (item.partition("=") for item in _items(match))
    return {name.strip(): expression.strip() for name, _, expression in pairs}


def _subscription_id(client: uuid.UUID, metrics: tuple[str, ...], interval_ms: int) -> int:
    """A 32-bit hash of client and subscription, as KIP-714 describes it."""
    of_subscription = crc32c(f"{','.join(metrics)};{interval_ms}".encode())
    folded = client.int ^ client.int >> 64
    number = (of_subscription ^ folded ^ folded >> 32) & 0xFFFFFFFF
    return number - 2**32 if number >= 2**31 else number
