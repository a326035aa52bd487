"""Drives the share groups of a shard as the broker's runtime does: a log in memory, a clock, a share coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from kohort.coordinator.share.environment import ShareEnvironment
from kohort.coordinator.share.group import ShareGroup
from kohort.coordinator.share.groups import ShareGroups
from kohort.coordinator.share.results import HeartbeatResult, Initialization
from kohort.coordinator.share.settings import ShareSettings
from kohort.coordinator.step import Client, Record, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key, record_type

START = 1_700_000_000_000
GROUP = "g"
CLIENT = Client("client", "10.0.0.1", 1)


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
        return next((name for name, each in self.ids.items() if each == topic_id and name in self.topics), None)

    def matching(self, pattern: str) -> Sequence[str]:
        raise AssertionError("share groups have no patterns")


@dataclass
class Driver:
    """Attributes:
    automatic: whether the share coordinator initializes states at once.
    asked: what it was asked and hasn't done.
    fenced: members that were fenced.
    """

    topics: Mapping[str, int] = field(default_factory=lambda: {"a": 3, "b": 2})
    settings: ShareSettings = field(default_factory=lambda: ShareSettings(assignment_interval_ms=0))
    automatic: bool = True

    def __post_init__(self) -> None:
        self.now = START
        self.cluster = Topics(self.topics)
        self.failing: ErrorCode | None = None
        self.log: list[tuple[bytes, bytes | None]] = []
        self.asked: list[Initialization] = []
        self.fenced: list[str] = []
        self.others: set[str] = set()
        self.wheel = TimingWheel(self.now)
        self.pending: list[Step] = []
        self.groups = self.new_groups()

    def new_groups(self) -> ShareGroups:
        environment = ShareEnvironment(
            lambda group_id: self.settings, self.cluster, lambda group_id, member_id: self.fenced.append(member_id)
        )
        return ShareGroups(environment, self.wheel, self.pending, lambda group_id: group_id in self.others)

    @property
    def group(self) -> ShareGroup:
        group = self.groups.get(GROUP)
        assert group is not None
        return group

    def id(self, topic: str) -> UUID:
        topic_id = self.cluster.topic_id(topic)
        assert topic_id is not None
        return topic_id

    # Steps

    def perform(self, step: Step) -> list[str]:
        """Carries a step out; returns the kinds of its records, tombstones with a minus."""
        if step.records and self.failing is not None:
            assert step.failed is not None
            return self.perform(step.failed(self.failing))
        kinds = []
        for key, value in step.records:
            kind = record_type(OFFSETS_TOPIC, key.__message__.key)
            self.log.append((kind.encode_key(key), None if value is None else kind.encode_value(value)))
            kinds.append(f"{kind.number}{'' if value is not None else '-'}")
            self.groups.replay(key, value)
        if step.apply is not None:
            step.apply()
        for reply, response in step.answers:
            reply(response)
        self.drain()
        return kinds

    def drain(self) -> None:
        while self.pending:
            self.perform(self.pending.pop(0))

    def run(self, operation: Callable[..., Step], *args: Any) -> Any:
        """Runs an operation, and returns its answer."""
        answers: list[Any] = []
        self.kinds = self.perform(operation(*args, answers.append))
        assert len(answers) == 1
        return answers[0]

    def wait(self, ms: int) -> None:
        self.now += ms
        self.wheel.advance(self.now)
        self.drain()

    def restart(self) -> None:
        self.groups.unload()
        self.groups = self.new_groups()
        for record in self.records():
            self.groups.replay(*record)
        self.groups.loaded(self.now)

    def records(self) -> list[Record]:
        records = []
        for raw, value in self.log:
            kind, key = decode_key(OFFSETS_TOPIC, raw)
            records.append(Record(key, None if value is None else kind.decode_value(value)[0]))
        return records

    # Requests

    def heartbeat(self, member_id: str = "m", epoch: int = 0, *topics: str, **others: Any) -> HeartbeatResult:
        request = ShareGroupHeartbeatRequest(
            group_id=others.pop("group_id", GROUP),
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=topics or None,
            **others,
        )
        result: HeartbeatResult = self.run(self.groups.heartbeat, request, CLIENT, self.now)
        if result.initialization is not None:
            self.asked.append(result.initialization)
            if self.automatic:
                self.initialize()
        return result

    def beat(self, member_id: str = "m", epoch: int = 0, *topics: str, **others: Any) -> ShareGroupHeartbeatResponse:
        """A heartbeat that has to be accepted; returns its response."""
        response = self.heartbeat(member_id, epoch, *topics, **others).response
        assert response.error_code == ErrorCode.NONE, response
        return response

    def refused(self, member_id: str = "m", epoch: int = 0, *topics: str, **others: Any) -> int:
        return self.heartbeat(member_id, epoch, *topics, **others).response.error_code

    def settle(self, member_id: str = "m", *topics: str) -> int:
        """A member joins, and sends heartbeats until nothing changes any more; returns its epoch."""
        epoch = self.beat(member_id, 0, *topics).member_epoch
        while (then := self.beat(member_id, epoch).member_epoch) != epoch:
            epoch = then
        return epoch

    def initialize(self) -> None:
        """The share coordinator does what it was asked first."""
        done = self.asked.pop(0)
        self.perform(self.groups.initialized(GROUP, {each: list(of) for each, of in done.start_offsets.items()}))

    def fail_to_initialize(self) -> None:
        done = self.asked.pop(0)
        self.perform(self.groups.not_initialized(GROUP, {each: list(of) for each, of in done.start_offsets.items()}))

    def topic(self, name: str, partitions: int) -> None:
        """A topic is created, or grows."""
        self.cluster.topics[name] = partitions
        self.perform(self.groups.topics_changed([name]))

    def delete_topic(self, name: str) -> None:
        topic_id = self.id(name)
        del self.cluster.topics[name], self.cluster.ids[name]
        self.perform(self.groups.topic_deleted(topic_id))
        self.perform(self.groups.topics_changed([name]))

    def configure(self, **changes: Any) -> None:
        self.settings = replace(self.settings, **changes)
        self.perform(self.groups.settings_changed())

    # What there is

    def assigned(self, member_id: str = "m") -> dict[str, list[int]]:
        """The current assignment of a member, by the names of topics."""
        names = {topic_id: name for name, topic_id in self.cluster.ids.items()}
        found: dict[str, list[int]] = {}
        for place in sorted(self.group.members[member_id].current.assigned):
            found.setdefault(names[place.topic_id], []).append(place.partition)
        return found


def told(driver: Driver, response: ShareGroupHeartbeatResponse) -> dict[str, list[int]] | None:
    """The assignment in a response, by the names of topics."""
    if response.assignment is None:
        return None
    names = {topic_id: name for name, topic_id in driver.cluster.ids.items()}
    return {names[each.topic_id]: list(each.partitions) for each in response.assignment.topic_partitions}
