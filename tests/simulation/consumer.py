"""A simulated client: a member of a classic group as librdkafka or the Java client would be one."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kohort.coordinator.step import Client
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.simulation.world import ClassicWorld

RETRY_MS = 1_000
SYNC_TIMEOUT_MS = 15_000
PARTITIONS = 24
_VERSIONS = {  # of JoinGroup, SyncGroup and LeaveGroup, as clients of an age have them together
    9: (9, 5, 5),
    8: (8, 5, 4),
    5: (5, 3, 3),
    3: (3, 2, 2),
    0: (0, 0, 0),
}


class Phase(enum.Enum):
    """What a consumer is busy with."""

    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"
    GONE = "gone"


@dataclass
class Habits:
    """What kind of client it is."""

    group_id: str
    name: str
    instance_id: str | None
    session_ms: int
    rebalance_ms: int
    version: int
    protocols: tuple[str, ...]
    slow: bool = False  # takes its time to rejoin and to assign, now and then too long
    confused: bool = False  # assigns without being asked
    topics: tuple[str, ...] = field(default=("topic",))


class Consumer:
    """Joins, syncs, heartbeats, commits; does as it is told, and comes again after errors."""

    def __init__(self, world: ClassicWorld, habits: Habits, restart: Callable[[Consumer], object]) -> None:
        self.world = world
        self.habits = habits
        self.phase = Phase.JOINING
        self.member_id = ""
        self.generation = -1
        self.frozen = False
        self._restart = restart
        self._asked = 0
        self._committed = 0
        self._rejoining = False
        join, sync, leave = _VERSIONS[habits.version]
        client = partial(Client, habits.name, "10.0.0.1")
        self._clients = {"join": client(join), "sync": client(sync), "leave": client(leave), "commit": client(9)}
        self._request: HeartbeatRequest | None = None
        self._interval = habits.session_ms // 3
        world.after(world.rng.randrange(self._interval), self._tick)
        self._join()

    @property
    def gone(self) -> bool:
        return self.phase is Phase.GONE

    # What chaos does to it --------------------------------------------------------------------------------------

    def crash(self) -> None:
        """Be gone without a word."""
        self.phase = Phase.GONE
        self._request = None
        self._asked += 1

    def leave(self) -> None:
        """Be gone, and say so."""
        habits = self.habits
        if self.member_id:
            member = LeaveGroupRequest.Member(member_id=self.member_id, group_instance_id=habits.instance_id)
            request = LeaveGroupRequest(group_id=habits.group_id, member_id=self.member_id, members=[member])
            self._send("leave", request, lambda response: None)
        self.crash()

    def change(self, topics: tuple[str, ...]) -> None:
        """Read other topics, which takes a rebalance."""
        self.habits.topics = topics
        if self.phase is Phase.STABLE:
            self._join()

    # Joining ----------------------------------------------------------------------------------------------------

    def _send(self, kind: str, request: Any, receive: Callable[[Any], object]) -> None:
        self.world.send(kind, request, self._clients[kind], receive)

    def _ask(self, kind: str, request: Any, receive: Callable[[Any], object], timeout_ms: int) -> None:
        """Send a request of which one at a time is under way; join again if nothing comes back."""
        self._asked += 1
        asked = self._asked

        def current(action: Callable[[], object]) -> None:
            if self._asked == asked:
                if self.frozen:
                    self.world.after(RETRY_MS, lambda: current(action))
                else:
                    self._asked += 1
                    action()

        self._send(kind, request, lambda response: current(lambda: receive(response)))
        self.world.after(timeout_ms, lambda: current(self._join))

    def _join(self) -> None:
        habits = self.habits
        self.phase = Phase.JOINING
        self._request = None
        self._rejoining = False
        metadata = b"\0\0" + ConsumerProtocolSubscription(topics=habits.topics).encode(0)
        request = JoinGroupRequest(
            group_id=habits.group_id,
            session_timeout_ms=habits.session_ms,
            rebalance_timeout_ms=habits.rebalance_ms if habits.version else -1,
            member_id=self.member_id,
            group_instance_id=habits.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name=name, metadata=metadata) for name in habits.protocols],
        )
        self._ask("join", request, self._joined, 2 * habits.rebalance_ms + 10_000)

    def _joined(self, response: JoinGroupResponse) -> None:
        code = ErrorCode(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._join()
        elif code is not ErrorCode.NONE:
            self._start_over(code)
        else:
            self.member_id = response.member_id
            self.generation = response.generation_id
            self.phase = Phase.SYNCING
            self._request = HeartbeatRequest(
                group_id=self.habits.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.habits.instance_id,
            )
            assigns = response.leader == self.member_id and not response.skip_assignment
            assignments = assign(response, self.habits.confused)
            think = self._time_to_think() if assigns else 0
            self._unless_asked(think, lambda: self._sync(assignments))

    def _time_to_think(self) -> int:
        rng = self.world.rng
        return rng.randrange(2 * self.habits.rebalance_ms if self.habits.slow and rng.random() < 0.3 else 500)

    def _sync(self, assignments: list[SyncGroupRequest.Assignment]) -> None:
        request = SyncGroupRequest(
            group_id=self.habits.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.habits.instance_id,
            protocol_type=None,
            protocol_name=None,
            assignments=assignments,
        )
        self._ask("sync", request, self._synced, SYNC_TIMEOUT_MS + 2 * self.habits.rebalance_ms)

    def _synced(self, response: SyncGroupResponse) -> None:
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE:
            self.phase = Phase.STABLE
        else:
            self._start_over(code)

    def _start_over(self, code: ErrorCode) -> None:
        """Join again after an error, without the id if that isn't good any more."""
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.crash()
            self._restart(self)
            return
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED):
            self.member_id = ""
        self.phase = Phase.JOINING
        self._request = None
        self._unless_asked(0 if code is ErrorCode.REBALANCE_IN_PROGRESS else RETRY_MS, self._join)

    def _unless_asked(self, ms: int, action: Callable[[], object]) -> None:
        """Do something after a while, unless another request has begun by then."""
        asked = self._asked
        self.world.after(ms, lambda: action() if self._asked == asked else None)

    # Heartbeats and commits -------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self.phase is Phase.GONE:
            return
        world = self.world
        world.after(self._interval, self._tick)
        if self.frozen or self._request is None:
            return
        request = self._request
        world.heartbeat(request, partial(self._beat, request))
        if self.phase is Phase.STABLE and world.rng.random() < 0.05:
            self._commit()

    def _beat(self, request: HeartbeatRequest, code: ErrorCode) -> None:
        if code is ErrorCode.NONE or self.frozen or request is not self._request:
            return
        if code is not ErrorCode.REBALANCE_IN_PROGRESS:
            self._asked += 1  # whatever is under way is void
            self._start_over(code)
        elif self.phase is Phase.STABLE and not self._rejoining:
            self._rejoining = True
            self._unless_asked(self._time_to_think(), self._join)

    def _commit(self) -> None:
        self._committed += 1
        partition = self.world.rng.randrange(PARTITIONS)
        offset = OffsetCommitRequest.Topic.Partition(partition_index=partition, committed_offset=self._committed)
        request = OffsetCommitRequest(
            group_id=self.habits.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.habits.instance_id,
            topics=[OffsetCommitRequest.Topic(name="topic", partitions=[offset])],
        )
        self._send("commit", request, lambda response: None)


def assign(response: JoinGroupResponse, confused: bool) -> list[SyncGroupRequest.Assignment]:
    """Deal the partitions out to the members; a confused member that doesn't lead takes them all."""
    members = sorted(member.member_id for member in response.members) or [response.member_id] * confused
    if response.skip_assignment:
        return []
    return [
        SyncGroupRequest.Assignment(
            member_id=member_id,
            assignment=b" ".join(b"%d" % partition for partition in range(number, PARTITIONS, len(members))),
        )
        for number, member_id in enumerate(members)
    ]
