"""Creates the topics that streams applications keep to themselves: repartition topics and changelogs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kohort.broker.admin.access import cluster_allowed
from kohort.broker.admin.assignments import check_replication
from kohort.broker.config import check_topic_configs
from kohort.broker.security import Operation, ResourceType
from kohort.broker.topics import MAX_PARTITIONS_AT_ONCE
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.streams.topology import InternalTopic

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.context import Context

__all__ = ["InternalTopics"]

log = logging.getLogger("kohort.broker.streams")

AT_ONCE: Final = 100
"""Partitions created before other requests get their turn: each takes about a ms."""

_NAMED: Final = 10
"""Topics that a text names at most."""


class InternalTopics:
    """Creates what groups lack: at once if that is little, otherwise bit by bit."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[str, InternalTopic] = {}
        self._partitions = 0  # of those that wait
        self._handle: asyncio.Handle | None = None
        self._told: list[str] = []

    def create(self, missing: Sequence[InternalTopic], context: Context) -> str:
        """Create what a group lacks, as far as the client may; returns what is in the way, for people."""
        if not cluster_allowed(context, Operation.CREATE):
            forbidden = [
                topic.name for topic in missing if not context.allowed(Operation.CREATE, ResourceType.TOPIC, topic.name)
            ]
            if forbidden:
                return f"The client may not create {_listed(forbidden)}."
        problems: dict[str, str] = {}
        for topic in missing:
            if topic.name in self._waiting or self._broker.topics.get(topic.name) is not None:
                continue  # the group is about to hear of it
            try:
                self._check(topic)
            except KafkaError as error:
                problems[topic.name] = error.detail or error.code.name
            else:
                self._waiting[topic.name] = topic
                self._partitions += topic.partitions
        if self._handle is None:
            problems |= self._go_on()
        if not problems:
            return ""
        texts = [f"{name} ({problem})" for name, problem in problems.items()]
        if texts != self._told:  # else every member's heartbeat would tell it again
            self._told = texts
            log.warning("internal topics could not be created because=%s", shown(texts, 1000))
        return f"Could not create {_listed(texts)}."

    def stop(self) -> None:
        """Create no more."""
        self._waiting.clear()
        if self._handle is not None:
            self._handle.cancel()

    def _check(self, topic: InternalTopic) -> None:
        self._broker.topics.check_new(topic.name, topic.partitions)
        check_topic_configs(dict(topic.configs))
        check_replication(topic.replication_factor or self._broker.config.int("default.replication.factor"))
        if self._partitions + topic.partitions > MAX_PARTITIONS_AT_ONCE:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{self._partitions} other partitions have to be created before"
            )

    def _go_on(self) -> dict[str, str]:
        """Create some of the topics that wait; returns problems by name."""
        self._handle = None
        problems: dict[str, str] = {}
        room = AT_ONCE
        while self._waiting and room > 0:
            name = next(iter(self._waiting))
            topic = self._waiting.pop(name)
            self._partitions -= topic.partitions
            room -= topic.partitions
            configs = dict(topic.configs)
            try:
                self._broker.topics.create(name, topic.partitions, configs)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    log.warning("an internal topic could not be created topic=%s error=%s", name, error)
                    problems[name] = error.detail or error.code.name
            else:
                log.info("internal topic created topic=%s partitions=%d configs=%s", name, topic.partitions, configs)
        if self._waiting:
            self._handle = asyncio.get_running_loop().call_soon(self._go_on)
        return problems


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
