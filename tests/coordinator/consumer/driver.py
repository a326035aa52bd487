"""Drives a shard with consumer groups as the broker's runtime does, with a log in memory and a clock to be moved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.coordinator.shard import GroupSettings, GroupShard, value_version
from kohort.coordinator.step import Client, Step, append_error
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key, record_type

START = 1_700_000_000_000
GROUP = "readers"
CLIENT = Client("client", "/10.0.0.1", 1, "User:ann")
Owned = ConsumerGroupHeartbeatRequest.TopicPartition


class Topics:
    """A cluster whose topics the test makes."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.topics = dict(topics)
        self.ids: dict[str, UUID] = {}

    def partitions(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        if topic not in self.topics:
            return None
        return self.ids.setdefault(topic, UUID(int=len(self.ids) + 1))

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name in self.topics if self.topic_id(name) == topic_id), None)

    def matching(self, pattern: str) -> Sequence[str]:
        return sorted(name for name in self.topics if re.fullmatch(pattern, name))


@dataclass
class Driver:
    """A shard, its log, the topics, and the time."""

    topics: Mapping[str, int] = field(default_factory=lambda: {"in": 4})
    settings: ConsumerSettings = field(default_factory=lambda: ConsumerSettings(assignment_interval_ms=0))

    def __post_init__(self) -> None:
        self.now = START
        self.cluster = Topics(self.topics)
        self.jobs: list[RegexJob] = []
        self.log: list[tuple[bytes, bytes | None]] = []
        self.kinds: list[str] = []
        self.append_error: ErrorCode | None = None
        self.wheel = TimingWheel(self.now)
        self.shard = self.new_shard()
        self.shard.loaded(self.now)

    def new_shard(self) -> GroupShard:
        environment = ConsumerEnvironment(lambda group_id: self.settings, self.cluster, self.jobs.append)
        return GroupShard(0, GroupSettings(), self.wheel, lambda name: f"{name}-1", consumer=environment)

    def configure(self, **changes: Any) -> None:
        self.settings = replace(self.settings, **changes)
        self.perform(self.shard.consumer.settings_changed())

    def perform(self, step: Step) -> list[str]:
        """Carries a step out; returns the kinds of its records."""
        if step.records and self.append_error is not None:
            assert step.failed is not None
            return self.perform(step.failed(append_error(self.append_error)))
        kinds = []
        for key, value in step.records:
            kind = record_type(OFFSETS_TOPIC, key.__message__.key)
            encoded = None if value is None else kind.encode_value(value, value_version(value))
            self.log.append((kind.encode_key(key), encoded))
            kinds.append(f"{kind.number}{'' if value is not None else '-'}")
        for key, value in step.records:
            self.shard.replay(key, value, step.producer)
        if step.apply is not None:
            step.apply()
        for reply, response in step.answers:
            reply(response)
        self.kinds = kinds
        self._perform_pending()
        return kinds

    def _perform_pending(self) -> None:
        while self.shard.pending_steps:
            self.perform(self.shard.pending_steps.pop(0))

    def resolve(self, *, fails: bool = False) -> None:
        """The oldest regular expressions are resolved; topics that begin with "secret" may not be described."""
        job = self.jobs.pop(0)
        names = {
            regex: tuple(name for name in self.cluster.matching(regex) if not name.startswith("secret"))
            for regex in job.regexes
        }
        self.perform(self.shard.consumer.resolved(job, None if fails else names))

    def replayed(self, log: Iterable[tuple[bytes, bytes | None]] | None = None) -> GroupShard:
        """A new shard that has read the log."""
        shard = self.new_shard()
        for raw_key, raw_value in self.log if log is None else log:
            kind, key = decode_key(OFFSETS_TOPIC, raw_key)
            shard.replay(key, None if raw_value is None else kind.decode_value(raw_value)[0])
        return shard

    def restart(self) -> None:
        self.wheel = TimingWheel(self.now)
        self.shard = self.replayed()
        self.shard.loaded(self.now)

    def sleep(self, ms: int) -> None:
        """Lets time pass; timers run at their deadlines."""
        end = self.now + ms
        while (due := self.wheel.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.wheel.advance(self.now)
            self._perform_pending()
        self.now = end
        self.wheel.advance(end)

    def topic(self, name: str, partitions: int | None) -> None:
        """A topic is created, grows, or is deleted."""
        if partitions is None:
            del self.cluster.topics[name]
            self.cluster.ids.pop(name, None)
        else:
            self.cluster.topics[name] = partitions
        self.perform(self.shard.consumer.topics_changed([name]))

    def send(self, request: ConsumerGroupHeartbeatRequest, client: Client = CLIENT) -> ConsumerGroupHeartbeatResponse:
        results: list[ConsumerGroupHeartbeatResponse] = []
        self.perform(self.shard.consumer.heartbeat(request, client, self.now, results.append))
        (response,) = results
        response.encode(client.version)
        return response

    # What tests ask ---------------------------------------------------------------------------------------------

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.consumer.get(GROUP)
        assert group is not None
        return group

    def state(self) -> str:
        return self.group.state.value

    def dump(self, shard: GroupShard | None = None) -> object:
        """All that a restart has to bring back."""
        group = (shard or self.shard).consumer.get(GROUP)
        if group is None:
            return None
        return (
            group.epoch,
            group.assignment_epoch,
            group.assigned_at,
            group.metadata_hash,
            group.regexes,
            group.subscriptions,
            {member_id: (member.metadata, member.current) for member_id, member in group.members.items()},
            {member_id: dict(target) for member_id, target in group.target.items()},
            group.static_ids,
        )


class Reader:
    """A member as a consumer is one: it gives up what it isn't assigned any longer, and says so at once.

    Attributes:
        owned: the partitions that it has, as "topic-number".
        error: of its latest heartbeat.
    """

    def __init__(
        self,
        driver: Driver,
        name: str,
        *topics: str,
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.driver = driver
        self.name = name
        self.topics: tuple[str, ...] = topics or (() if regex is not None else ("in",))
        self.regex = regex
        self.instance = instance
        self.assignor = assignor
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = 0
        self.owned: list[str] = []
        self.response = ConsumerGroupHeartbeatResponse()
        self.obeys = True

    @property
    def error(self) -> str:
        return ErrorCode(self.response.error_code).name

    @property
    def interval(self) -> int:
        return self.response.heartbeat_interval_ms

    def join(self, **changes: Any) -> Reader:
        self.epoch, self.owned = 0, []
        full: dict[str, Any] = {
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            "topic_partitions": [],
        }
        return self.send(**full | changes)

    def beat(self, **changes: Any) -> Reader:
        return self.send(**{"topic_partitions": self.listed(), **changes})

    def leave(self, epoch: int = -1) -> Reader:
        return self.send(member_epoch=epoch)

    def send(self, **changes: Any) -> Reader:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.name, member_epoch=self.epoch, instance_id=self.instance
        )
        for field_name, value in changes.items():
            setattr(request, field_name, value)
        self.response = self.driver.send(request)
        if not self.response.error_code:
            self.epoch = self.response.member_epoch
            if self.response.assignment is not None and self.obeys:
                self.owned = assigned(self.driver, self.response)
        return self

    def listed(self) -> list[Owned]:
        found: dict[UUID, list[int]] = {}
        for partition in self.owned:
            topic, _, number = partition.rpartition("-")
            topic_id = self.driver.cluster.topic_id(topic)
            if topic_id is not None:
                found.setdefault(topic_id, []).append(int(number))
        return [Owned(topic_id=topic_id, partitions=tuple(numbers)) for topic_id, numbers in found.items()]


def assigned(driver: Driver, response: ConsumerGroupHeartbeatResponse) -> list[str]:
    """The partitions of a response, as "topic-number"."""
    assert response.assignment is not None
    return [
        f"{driver.cluster.name_of(topic.topic_id)}-{number}"
        for topic in response.assignment.topic_partitions
        for number in topic.partitions
    ]


def joined(driver: Driver, *names: str, **options: Any) -> list[Reader]:
    """Members of a stable group."""
    readers = [Reader(driver, name, **options).join() for name in names]
    reconcile(driver, *readers)
    return readers


def reconcile(driver: Driver, *readers: Reader) -> None:
    """All members send heartbeats until none moves."""
    for _ in range(10):
        for reader in readers:
            reader.beat()
            assert reader.error == "NONE", (reader.name, reader.response)
        if driver.state() == "Stable":
            return
    raise AssertionError(f"{driver.group} doesn't settle")
