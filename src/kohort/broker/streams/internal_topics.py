"""Creates the internal topics of streams groups: repartition topics and changelogs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kohort.broker.config import check_topic_configs
from kohort.broker.dynamic_config import DynamicConfig
from kohort.broker.replica_assignment import check_replication
from kohort.broker.topics import MAX_PARTITIONS_AT_ONCE, Topics
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.streams.topology import InternalTopic

log = logging.getLogger("kohort.broker.streams")

PARTITIONS_PER_TURN: Final = 100
"""Partitions created before other requests get their turn; each takes about 1 ms."""

_MAX_LISTED: Final = 10
"""The most topics that a message names."""


class InternalTopics:
    """Creates missing internal topics: at once, or over several turns of the loop if there are many partitions."""

    def __init__(self, topics: Topics, config: DynamicConfig) -> None:
        self._topics = topics
        self._config = config
        self._waiting: dict[str, InternalTopic] = {}
        self._partitions = 0  # of the waiting topics
        self._handle: asyncio.Handle | None = None
        self._last_problems: list[str] = []

    def create(self, missing: Sequence[InternalTopic], may_create: Callable[[str], bool]) -> str:
        """Creates missing topics, if the client may create them all; returns the problems as a message, or ""."""
        forbidden = [topic.name for topic in missing if not may_create(topic.name)]
        if forbidden:
            return f"The client may not create {_listed(forbidden)}."
        problems: dict[str, str] = {}
        for topic in missing:
            if topic.name in self._waiting or self._topics.get(topic.name) is not None:
                continue  # the group is notified once it is created
            try:
                self._check(topic)
            except KafkaError as error:
                problems[topic.name] = error.detail or error.code.name
            else:
                self._waiting[topic.name] = topic
                self._partitions += topic.partitions
        if self._handle is None:
            problems |= self._create_waiting()
        if not problems:
            return ""
        texts = [f"{name} ({problem})" for name, problem in problems.items()]
        if texts != self._last_problems:  # else every heartbeat would log it again
            self._last_problems = texts
            log.warning("internal topics could not be created because=%s", shown(texts, 1000))
        return f"Could not create {_listed(texts)}."

    def stop(self) -> None:
        self._waiting.clear()
        if self._handle is not None:
            self._handle.cancel()

    def _check(self, topic: InternalTopic) -> None:
        self._topics.check_new(topic.name, topic.partitions)
        check_topic_configs(dict(topic.configs))
        check_replication(topic.replication_factor or self._config.current.int("default.replication.factor"))
        if self._partitions + topic.partitions > MAX_PARTITIONS_AT_ONCE:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{self._partitions} other partitions have to be created before"
            )

    def _create_waiting(self) -> dict[str, str]:
        """Creates some of the waiting topics; returns problems by name."""
        self._handle = None
        problems: dict[str, str] = {}
        room = PARTITIONS_PER_TURN
        while self._waiting and room > 0:
            name = next(iter(self._waiting))
            topic = self._waiting.pop(name)
            self._partitions -= topic.partitions
            room -= topic.partitions
            configs = dict(topic.configs)
            try:
                self._topics.create(name, topic.partitions, configs)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    log.warning("an internal topic could not be created topic=%s error=%s", name, error)
                    problems[name] = error.detail or error.code.name
            else:
                log.info("internal topic created topic=%s partitions=%d configs=%s", name, topic.partitions, configs)
        if self._waiting:
            self._handle = asyncio.get_running_loop().call_soon(self._create_waiting)
        return problems


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
