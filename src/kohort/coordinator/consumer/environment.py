"""What consumer groups need of the broker: its topics, their settings, and a resolver of regular expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.coordinator.modern.cluster import Cluster, NoTopics


def _defaults(group_id: str) -> ConsumerSettings:
    del group_id
    return ConsumerSettings()


def _no_resolver(job: RegexJob) -> None:
    del job


def _numbered() -> Callable[[], str]:
    numbers: Iterator[int] = count(1)
    return lambda: f"member-{next(numbers)}"


@dataclass(frozen=True, slots=True)
class ConsumerEnvironment:
    """The environment; by default without topics, and with Kafka's default settings.

    Attributes:
        settings_of: returns the settings of a group, by id. Called for each heartbeat, so it should be quick.
        resolver: takes a job, which it does later: `ConsumerGroups.resolved` gets what comes of it, always.
        new_member_id: makes a new member id, for members of clients that don't make their own.
    """

    settings_of: Callable[[str], ConsumerSettings] = _defaults
    cluster: Cluster = field(default_factory=NoTopics)
    resolver: Callable[[RegexJob], None] = _no_resolver
    new_member_id: Callable[[], str] = field(default_factory=_numbered)
