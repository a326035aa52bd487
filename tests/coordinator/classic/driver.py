"""Drives a shard as the broker's runtime does, with a log in memory and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kohort.coordinator.shard import GroupSettings, GroupShard, value_version
from kohort.coordinator.step import Client, Step, append_error
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key, record_type

START = 1_700_000_000_000
SESSION = 10_000
REBALANCE = 60_000


class Call:
    """A request that was sent, and its response when it has come."""

    def __init__(self) -> None:
        self.responses: list[Any] = []

    def __call__(self, response: Any) -> None:
        self.responses.append(response)
        assert len(self.responses) == 1, "answered twice"

    @property
    def answered(self) -> bool:
        return bool(self.responses)

    @property
    def response(self) -> Any:
        assert self.responses, "no answer yet"
        return self.responses[0]

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.response.error_code)


def subscription(*topics: str) -> bytes:
    return b"\0\0" + ConsumerProtocolSubscription(topics=topics).encode(0)


class Driver:
    """A shard, its log, and the time."""

    def __init__(self, **settings: Any) -> None:
        self.settings = GroupSettings(**settings)
        self.now = START
        self.log: list[tuple[bytes, bytes | None]] = []
        self.append_error: ErrorCode | None = None
        self._ids = 0
        self.wheel = TimingWheel(self.now)
        self.shard = self.new_shard()
        self.shard.loaded(self.now)

    def new_shard(self) -> GroupShard:
        return GroupShard(0, self.settings, self.wheel, self.new_id)

    def new_id(self, name: str) -> str:
        self._ids += 1
        return f"{name}-{self._ids}"

    def perform(self, step: Step) -> None:
        if step.records and self.append_error is not None:
            if step.failed is not None:
                self.perform(step.failed(append_error(self.append_error)))
                return
            step.records.clear()
        for key, value in step.records:
            kind = record_type(OFFSETS_TOPIC, key.__message__.key)
            encoded = None if value is None else kind.encode_value(value, value_version(value))
            self.log.append((kind.encode_key(key), encoded))
        for key, value in step.records:
            self.shard.replay(key, value, step.producer)
        if step.apply is not None:
            step.apply()
        for reply, response in step.answers:
            reply(response)
        while self.shard.pending_steps:
            self.perform(self.shard.pending_steps.pop(0))

    def replayed(self) -> GroupShard:
        """A new shard that has read the log."""
        shard = self.new_shard()
        for raw_key, raw_value in self.log:
            kind, key = decode_key(OFFSETS_TOPIC, raw_key)
            shard.replay(key, None if raw_value is None else kind.decode_value(raw_value)[0])
        return shard

    def restart(self) -> None:
        self.wheel = TimingWheel(self.now)
        self.shard = self.replayed()
        self.shard.loaded(self.now)

    def sleep(self, ms: int) -> None:
        """Let time pass; timers run at their deadlines."""
        end = self.now + ms
        while (due := self.wheel.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.wheel.advance(self.now)
            while self.shard.pending_steps:
                self.perform(self.shard.pending_steps.pop(0))
        self.now = end
        self.wheel.advance(end)

    # Requests ---------------------------------------------------------------------------------------------------

    def send(self, operation: Callable[..., Step], request: object, version: int, client_id: str = "client") -> Call:
        call = Call()
        self.perform(operation(request, Client(client_id, "10.0.0.1", version), self.now, call))
        return call

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "group",
        instance: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = (("range", b"\0\0\0\0\0\0\xff\xff\xff\xff"),),
        protocol_type: str = "consumer",
        session: int = SESSION,
        rebalance: int = REBALANCE,
        version: int = 9,
    ) -> Call:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequest.Protocol(name=name, metadata=metadata) for name, metadata in protocols],
        )
        call = self.send(self.shard.join, request, version)
        _encodes(call, version)
        return call

    def enter(self, **options: Any) -> tuple[str, Call]:
        """Join as a new dynamic member does: ask for an id, then join with it."""
        asked = self.join(**options)
        assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
        member_id = asked.response.member_id
        return member_id, self.join(member_id, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "group",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        version: int = 5,
    ) -> Call:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequest.Assignment(member_id=name, assignment=assignment)
                for name, assignment in (assignments or {}).items()
            ],
        )
        call = self.send(self.shard.sync, request, version)
        _encodes(call, version)
        return call

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "group", instance: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        call = Call()
        self.perform(self.shard.heartbeat(request, self.now, call))
        return call.error

    def leave(self, *members: tuple[str, str | None], group: str = "group") -> list[ErrorCode]:
        request = LeaveGroupRequest(
            group_id=group,
            members=[
                LeaveGroupRequest.Member(member_id=name, group_instance_id=instance) for name, instance in members
            ],
        )
        response: LeaveGroupResponse = self.send(self.shard.leave, request, 5).response
        assert not response.error_code
        return [ErrorCode(member.error_code) for member in response.members]

    def commit(
        self, member_id: str, generation: int, *, offset: int = 1, group: str = "group", version: int = 9
    ) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=None,
            topics=[
                OffsetCommitRequest.Topic(
                    name="topic",
                    partitions=[OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=offset)],
                )
            ],
        )
        call = self.send(self.shard.offsets.commit, request, version)
        return ErrorCode(call.response.topics[0].partitions[0].error_code)

    # What tests ask ---------------------------------------------------------------------------------------------

    def state(self, group: str = "group") -> str:
        return str(self.shard.describe_group(group, 5).group_state)

    def members(self, group: str = "group") -> list[str]:
        return [member.member_id for member in self.shard.describe_group(group, 5).members]

    def stable_group(self, count: int = 2, **options: Any) -> list[str]:
        """A stable group of new dynamic members in generation 1; the first leads."""
        entered = [self.enter(**options) for _ in range(count)]
        self.sleep(2 * self.settings.group_initial_rebalance_delay_ms)
        members = [member_id for member_id, _ in entered]
        assert all(join.response.generation_id == 1 for _, join in entered)
        self.settle(members, 1)
        return members

    def settle(self, members: list[str], generation: int) -> None:
        """Sync all members, the leader last."""
        group = self.shard.classic.get("group")
        assert group is not None and group.leader is not None
        calls = [self.sync(member, generation) for member in members if member != group.leader]
        calls.append(self.sync(group.leader, generation, {member: member.encode() for member in members}))
        assert [call.error for call in calls] == [ErrorCode.NONE] * len(members)


def _encodes(call: Call, version: int) -> None:
    """Whatever comes at once can be sent in the version that was asked in."""
    for response in call.responses:
        assert isinstance(response, (JoinGroupResponse, SyncGroupResponse))
        response.encode(version)
