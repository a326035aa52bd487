"""Creates the internal topics of a streams application, for the leader of a classic group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from kohort.client.administration.topics import NewTopic
from kohort.client.errors import ClientError, PartialFailureError
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.streams.topology import InternalTopic

log = logging.getLogger(__name__)

_DISPENSABLE: Final = frozenset({"message.timestamp.after.max.ms"})
"""Settings that older brokers don't know, and do without: before Apache Kafka 3.6, they take records of any time."""


class Creator(Protocol):
    """What creates topics: `kohort.client.administration.topics.Topics`."""

    async def create(self, *topics: NewTopic, timeout_ms: int) -> object:
        """Creates topics, or raises what `Topics.create` does."""
        ...


class InternalTopics:
    """Creates internal topics, and says of which that failed.

    Args:
        creator: sends the requests.
        owner: who wants the topics, for the log.
    """

    def __init__(self, creator: Creator, owner: object) -> None:
        self._creator, self._owner = creator, owner

    async def create(self, topics: Sequence[InternalTopic], deadline: int, now: Callable[[], int]) -> set[str]:
        """Creates topics; returns the names of those that can't be. One that exists counts as created.

        Args:
            deadline: until when, in ms of the clock `now`.
        """
        if not topics:
            return set()
        log.info("%s: creating internal topics: %s", self._owner, ", ".join(topic.name for topic in topics))
        wanted = {
            topic.name: NewTopic(topic.name, topic.partitions, topic.replication_factor or None, topic.configs)
            for topic in topics
        }
        failures = await self._failures(wanted.values(), deadline - now())
        refused = [wanted[name] for name, failure in failures.items() if _is(failure, ErrorCode.INVALID_CONFIG)]
        if plain := [_without_dispensable(topic) for topic in refused if topic.configs.keys() & _DISPENSABLE]:
            for topic in plain:
                del failures[topic.name]
            failures |= await self._failures(plain, deadline - now())
        for name, failure in failures.items():
            log.warning("%s: topic %s can't be created: %s", self._owner, name, failure)
        return set(failures)

    async def _failures(self, topics: Iterable[NewTopic], within_ms: int) -> dict[str, Exception]:
        wanted = list(topics)
        try:
            await self._creator.create(*wanted, timeout_ms=max(1, within_ms))
        except PartialFailureError as error:
            failures: Mapping[str, Exception] = error.errors
        except (KafkaError, ClientError) as error:
            failures = dict.fromkeys((topic.name for topic in wanted), error)
        else:
            failures = {}
        return {name: failure for name, failure in failures.items() if not _is(failure, ErrorCode.TOPIC_ALREADY_EXISTS)}


def _without_dispensable(topic: NewTopic) -> NewTopic:
    configs = {key: value for key, value in topic.configs.items() if key not in _DISPENSABLE}
    return NewTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _is(error: Exception, code: ErrorCode) -> bool:
    return isinstance(error, KafkaError) and error.code is code
