"""Network and coordinator of a simulated world of consumer groups. Nothing in it is random but by its generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from kohort.client.types import TopicPartition
from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.coordinator.shard import GroupSettings, GroupShard, value_version
from kohort.coordinator.step import Step, append_error
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.stored import OFFSETS_TOPIC, record_type
from kohort.protocol.stored.offset_commit import OffsetCommitKey
from tests.simulation.books import InvariantError
from tests.simulation.consumer_groups.checker import Checker
from tests.simulation.consumer_groups.member import Member
from tests.simulation.consumer_groups.topics import Topics
from tests.simulation.coordinator_world import START, CoordinatorWorld

RECONNECT_MS = 200


@dataclass
class Faults:
    """How likely a heartbeat meets each fault, and how long delayed ones take, in ms.

    A request doesn't overtake later ones of its member: these have one at a time under way, on one connection.
    """

    lost: float = 0.01
    answer_lost: float = 0.02
    duplicated: float = 0.02
    delayed: float = 0.04
    delay_ms: int = 4_000

    def draw(self, rng: Random) -> str:
        """What becomes of a heartbeat."""
        weights = (self.lost, self.answer_lost, self.duplicated, self.delayed)
        if rng.random() > sum(weights):
            return "smooth"
        return rng.choices(("lost", "answer lost", "duplicated", "delayed"), weights)[0]


class ConsumerWorld(CoordinatorWorld):
    """Members' heartbeats and commits go in, and their answers come out, if nothing gets lost."""

    def __init__(self, rng: Random, settings: ConsumerSettings, topics: dict[str, int]) -> None:
        super().__init__(remembered=300)
        self.rng = rng
        self.settings = settings
        self.topics = Topics(topics)
        self.faults: Faults | None = Faults()
        self.members: dict[str, Member] = {}
        self.append_error: ErrorCode | None = None
        self.append_failed_at = 0
        self.counts: Counter[str] = Counter()
        self.calm_since: int | None = None
        self._ids = 0
        self._delivered: dict[str, int] = {}
        self.shard = self._new_shard(self.wheel)
        self.shadow = self._new_shard(TimingWheel(self.now))
        self.checker = Checker(self)
        self.shard.loaded(self.now)

    def new_id(self, name: str = "member") -> str:
        self._ids += 1
        return f"{name}-{self._ids}"

    def _new_shard(self, wheel: TimingWheel) -> GroupShard:
        environment = ConsumerEnvironment(lambda group_id: self.settings, self.topics, self._resolve, self.new_id)
        return GroupShard(0, GroupSettings(), wheel, self.new_id, consumer=environment)

    def _resolve(self, job: RegexJob) -> None:
        self.after(self.rng.randrange(1_000), partial(self._resolved, job))

    def _resolved(self, job: RegexJob) -> None:
        if self.up:
            fails = self.faults is not None and self.rng.random() < 0.1
            topics = {regex: tuple(self.topics.matching(regex)) for regex in job.regexes}
            self.perform(self.shard.consumer.resolved(job, None if fails else topics))

    # Network ----------------------------------------------------------------------------------------------------

    def heartbeat(
        self,
        number: int,
        request: ConsumerGroupHeartbeatRequest,
        member: Member,
        receive: Callable[[Any], object],
        fail: Callable[[], object],
    ) -> None:
        """Send the heartbeat of this number through the network; `fail` is for a connection that is refused."""
        if not self.up:
            self.after(RECONNECT_MS, fail)
            return
        fate = "smooth" if self.faults is None else self.faults.draw(self.rng)
        if fate == "lost":
            return
        times, answered = 2 if fate == "duplicated" else 1, fate != "answer lost"
        delay = self.rng.randrange(self.faults.delay_ms) if self.faults and fate == "delayed" else self.rng.randrange(5)
        self.after(delay, partial(self._arrive, number, request, member, receive if answered else None, times))

    def _arrive(
        self,
        number: int,
        request: ConsumerGroupHeartbeatRequest,
        member: Member,
        receive: Callable[[Any], object] | None,
        times: int,
    ) -> None:
        if not self.up or number <= self._delivered.get(member.name, 0):
            return
        self._delivered[member.name] = number
        first = None
        for _ in range(times):
            self.counts["heartbeats"] += 1
            answers: list[Any] = []
            self.note("heartbeat", request)
            self.perform(self.shard.consumer.heartbeat(request, member.client, self.now, answers.append))
            if len(answers) != 1:
                raise InvariantError(f"{request} has {len(answers)} answers")
            self.note("answer", answers[0])
            self.checker.heartbeat(request, answers[0])
            first = first or answers[0]  # the other is for a request that the client doesn't know of
        if receive is not None:
            late = self.faults is not None and self.rng.random() < self.faults.delayed
            delay = self.rng.randrange(self.faults.delay_ms if late and self.faults is not None else 5)
            self.after(delay, partial(receive, first))

    def commit(self, request: OffsetCommitRequest, member: Member) -> bool:
        """Commit offsets at once, if the request isn't lost; whether it was taken."""
        if not self.up or (self.faults is not None and self.rng.random() < self.faults.lost):
            return False
        answers: list[Any] = []
        client = member.client._replace(version=9)
        self.perform(self.shard.offsets.commit(request, client, self.now, answers.append))
        (response,) = answers
        codes = {part.error_code for topic in response.topics for part in topic.partitions}
        self.note("commit", request.member_id, request.generation_id_or_member_epoch, codes)
        if codes == {ErrorCode.NONE}:
            self.checker.committed(request)
            return True
        return False

    def end_of(self, partition: TopicPartition) -> int:
        """How many records a partition has: some a second, until it is calm."""
        until = self.now if self.calm_since is None else self.calm_since
        return (until - START) // 1_000

    # Coordinator ------------------------------------------------------------------------------------------------

    def perform(self, step: Step) -> None:
        """Do what the coordinator decided: append, replay, answer."""
        if step.records and self.append_error is not None:
            self.append_failed_at = self.now
            if step.failed is None:
                return
            self.perform(step.failed(append_error(self.append_error)))
            return
        for key, value in step.records:
            kind = record_type(OFFSETS_TOPIC, key.__message__.key)
            raw_key = kind.encode_key(key)
            if value is None:
                self.log.pop(raw_key, None)
            else:
                # A newer record comes after all others, as in a log.
                self.log.pop(raw_key, None)
                self.log[raw_key] = kind.encode_value(value, value_version(value))
            self._replay(self.shadow, raw_key)
        for key, value in step.records:
            self.shard.replay(key, value, step.producer)
        if step.apply is not None:
            step.apply()
        for reply, response in step.answers:
            reply(response)
        if step.records:
            records: list[Any] = [key for key, _ in step.records if not isinstance(key, OffsetCommitKey)]
            for group_id in dict.fromkeys(key.group_id for key in records):
                self.checker.check_group(group_id)
        self._drain()

    def stop_coordinator(self) -> None:
        """End the coordinator without a word."""
        if self.up:
            self.note("stop")
            self.up = False
            self.wheel = TimingWheel(self.now)

    def start_coordinator(self) -> None:
        """Begin anew with what the log has."""
        if self.up:
            return
        self.counts["restarts"] += 1
        self.note("start")
        self.shard = self._new_shard(self.wheel)
        for raw_key in self.log:
            self._replay(self.shard, raw_key)
        self.shard.loaded(self.now)
        self.up = True
        self.checker.restarted()
        for group_id in list(self.shard.consumer.group_ids()):
            self.checker.check_group(group_id)

    def set_topic(self, name: str, count: int) -> None:
        """A topic comes or grows; the coordinator hears of it if it is there."""
        self.topics.set(name, count)
        self.note("topic", name, count)
        if self.up:
            self.perform(self.shard.consumer.topics_changed([name]))
        for member in list(self.members.values()):
            member.metadata_changed()
