"""Topics with records, and groups that lag behind: what a test finds on its broker when it begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kohort.broker.config.listeners import SecurityProtocol
from kohort.client import Admin, Producer
from kohort.client.config import ClientConfig, client_config
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.testing.blocking import PATIENCE_MS, run_blocking
from kohort.testing.broker import Broker
from kohort.testing.container import KohortContainer
from kohort.testing.records import NewRecord, records_of

if TYPE_CHECKING:
    import asyncio

    from kohort.testing.process import BrokerProcess

__all__ = ["Filling"]

_HAS_MEMBERS: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NON_EMPTY_GROUP)
"""What a group of which type ever answers to somebody who isn't in it."""


class Filling:
    """Makes topics and groups on a broker. Its methods block until the broker has all: with `async with`, call them by
    `asyncio.to_thread`. In the broker's own event loop they raise RuntimeError.

    Args:
        broker: a running broker.
        prefix: what the names begin with that it makes up.
    """

    def __init__(self, broker: Broker | BrokerProcess | KohortContainer, prefix: str) -> None:
        self._broker = broker
        self._prefix = prefix
        self._named = 0

    def topic(
        self,
        records: Iterable[Any] | Path = (),
        *,
        name: str | None = None,
        partitions: int | None = None,
        key: str | None = None,
        configs: Mapping[str, object] | None = None,
    ) -> str:
        """Makes a topic, and writes records to it.

        Args:
            records: values, pairs of key and value, or `NewRecord`s; or a file of JSON lines or CSV. See `records_of`.
            name: the topic's; by default one that no other has.
            partitions: how many it has; by default as many as the broker's `num.partitions` says. Records that have
                neither a key nor a partition go to each in turn, from partition 0 on.
            key: the field of the records that is their key.
            configs: the topic's settings, by Kafka's keys.

        Returns:
            The topic's name.

        Raises:
            ValueError, OSError: as `records_of`; ValueError, too, if the first listener of a broker that isn't secured
                by `secure=` wants SASL or TLS.
            KafkaError: TOPIC_ALREADY_EXISTS, INVALID_CONFIG, …
        """
        ready = records_of(records, key)
        topic = self._name() if name is None else name

        async def work() -> None:
            async with Admin(self._servers, default_api_timeout_ms=PATIENCE_MS) as admin:
                settings = {at: _text(value) for at, value in (configs or {}).items()}
                created = await admin.topics.create(topic, partitions=partitions, configs=settings)
            if not ready:
                return
            count = created[topic].partitions
            turns = cycle([None] if count is None else range(count))  # a broker that doesn't say leaves it to chance
            async with Producer(self._servers) as producer:
                deliveries = [
                    await producer.send(
                        topic,
                        record.value,
                        key=record.key,
                        partition=next(turns) if _goes_anywhere(record) else record.partition,
                        timestamp_ms=record.timestamp_ms,
                        headers=tuple((record.headers or {}).items()),
                    )
                    for record in ready
                ]
                for delivery in deliveries:
                    await delivery

        run_blocking("filling.topic", work, self._loop)
        return topic

    def group(self, topic: str, behind: int = 0, *, name: str | None = None) -> str:
        """Makes a group without members that has read a topic but for its last records.

        Args:
            topic: what it has read.
            behind: records of each partition that it hasn't read; all of a partition that has fewer.
            name: the group's; by default one that no other has.

        Returns:
            The group's name.

        Raises:
            ValueError: `behind` is negative, or no partition has so many records; or as `topic` for the listener.
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION; UNKNOWN_MEMBER_ID or NON_EMPTY_GROUP, if it has members.
        """
        if behind < 0:
            raise ValueError(f"a group can't be ahead of the end: behind={behind}")
        group = self._name() if name is None else name

        async def work() -> None:
            async with Admin(self._servers, default_api_timeout_ms=PATIENCE_MS) as admin:
                partitions: tuple[TopicPartition, ...] = await admin.topics.partitions([topic])
                ends = await admin.offsets.ends(partitions)
                most = max((end - start for start, end in ends.values()), default=0)
                if behind > most:
                    raise ValueError(f"behind={behind} is of each partition, and none of {topic} has more than {most}")
                try:
                    await admin.group_offsets.alter(
                        group, {at: max(start, end - behind) for at, (start, end) in ends.items()}
                    )
                except KafkaError as error:
                    if error.code not in _HAS_MEMBERS:
                        raise
                    reason = f"the group {group} has members: close its consumers first"
                    raise KafkaError(error.code, reason) from None

        run_blocking("filling.group", work, self._loop)
        return group

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        return self._broker.event_loop if isinstance(self._broker, Broker) else None

    @property
    def _servers(self) -> ClientConfig:
        broker = self._broker
        if isinstance(broker, KohortContainer):
            config = client_config(broker.get_bootstrap_server())
        elif broker.secured:
            config = broker.security.admin.config
        else:
            if (protocol := broker.first_protocol) is not SecurityProtocol.PLAINTEXT:
                raise ValueError(
                    f"the broker's first listener is of {protocol.value}, and who may get in isn't known: take "
                    "kohort_secure_broker or secure=True, or put a PLAINTEXT listener first in `listeners`"
                )
            config = client_config(broker.bootstrap_servers)
        return replace(config, bootstrap_timeout_ms=PATIENCE_MS)

    def _name(self) -> str:
        self._named += 1
        return f"{self._prefix}-{self._named}"


def _goes_anywhere(record: NewRecord) -> bool:
    return record.key is None and record.partition is None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
