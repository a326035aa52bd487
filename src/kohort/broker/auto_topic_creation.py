"""Creates topics that clients ask for and that aren't there (auto.create.topics.enable)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from kohort.broker.coordinator_runtime import CoordinatorRuntime
from kohort.broker.dynamic_config import DynamicConfig
from kohort.broker.replica_assignment import check_replication
from kohort.broker.topics import Topic, Topics

log = logging.getLogger("kohort.broker")


class AutoTopicCreation:
    """Creates topics with the broker's defaults, and a coordinator's internal topic as the coordinator wants it."""

    def __init__(self, topics: Topics, config: DynamicConfig, coordinators: Iterable[CoordinatorRuntime[Any]]) -> None:
        self._topics = topics
        self._config = config
        self._coordinators = {coordinator.topic: coordinator for coordinator in coordinators}

    def create(self, name: str) -> Topic:
        """Creates a topic.

        Raises:
            KafkaError: as `Topics.create`.
        """
        coordinator = self._coordinators.get(name)
        if coordinator is not None:
            coordinator.start()
        else:
            config = self._config.current
            check_replication(config.int("default.replication.factor"))
            self._topics.create(name, config.int("num.partitions"))
            log.info("topic created on demand topic=%s", name)
        topic = self._topics.get(name)
        assert topic is not None
        return topic
