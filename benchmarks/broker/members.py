"""Members of classic groups, as few bytes of Python as can be."""

from __future__ import annotations

import asyncio

from benchmarks.broker.wire import Connection
from kohort.protocol.error_codes import ErrorCode
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

SUBSCRIPTION = bytes(60)
ASSIGNMENT = bytes(40)
HEARTBEAT_VERSION = 4
NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


async def await_coordinator(connection: Connection, group: str) -> None:
    """The first question for a coordinator makes the server create its topic."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
    while (await connection.call(request, 4, FindCoordinatorResponse)).coordinators[0].error_code:
        await asyncio.sleep(0.05)


class Member:
    """A connection that is a member of a group."""

    def __init__(self, connection: Connection, group: str) -> None:
        self.connection = connection
        self.group = group
        self.member_id = ""
        self.generation = -1

    async def join(self) -> None:
        """Join and sync, as often as it takes to have an assignment."""
        while not await self._join_once():
            pass

    async def _join_once(self) -> bool:
        protocol = JoinGroupRequest.Protocol(name="range", metadata=SUBSCRIPTION)
        joined = await self.connection.call(
            JoinGroupRequest(
                group_id=self.group, session_timeout_ms=300_000, rebalance_timeout_ms=300_000,
                member_id=self.member_id, protocol_type="consumer", protocols=[protocol],
            ), 9, JoinGroupResponse,
        )  # fmt: skip
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return False
        if joined.error_code in NOT_YET:
            await asyncio.sleep(0.05)
            return False
        check(joined.error_code, "join")
        self.generation = joined.generation_id
        synced = await self.connection.call(
            SyncGroupRequest(
                group_id=self.group, generation_id=self.generation, member_id=self.member_id,
                protocol_type="consumer", protocol_name=joined.protocol_name,
                assignments=[
                    SyncGroupRequest.Assignment(member_id=member.member_id, assignment=ASSIGNMENT)
                    for member in joined.members
                ],
            ), 5, SyncGroupResponse,
        )  # fmt: skip
        if synced.error_code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            return False
        check(synced.error_code, "sync")
        return True

    def heartbeat(self) -> HeartbeatRequest:
        """What it says to stay alive."""
        return HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)

    async def stable(self) -> bool:
        """Whether a heartbeat hears that all is well."""
        answer = await self.connection.call(self.heartbeat(), HEARTBEAT_VERSION, HeartbeatResponse)
        return not answer.error_code


def check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} failed: {ErrorCode(code).name}")
