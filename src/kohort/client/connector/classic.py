"""The classic protocol in the state machine's words: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from kohort.client.assignors import ASSIGNORS
from kohort.client.connector.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kohort.client.connector.membership import Call, ClusterView, Heard, Partitions, heard_error
from kohort.client.connector.settings import MembershipSettings, Subscription
from kohort.client.connector.table import Input
from kohort.client.errors import ConnectionLostError
from kohort.protocol.errors import ErrorCode, ProtocolError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = ["ClassicMembership"]

_PROTOCOL_TYPE = "consumer"
_GRACE_MS = 5_000
"""Beyond the rebalance timeout, until the coordinator must have answered a join."""


class ClassicMembership:
    """A member of a classic group. Assignments are made by the group's leader, who may be this member.

    It's cooperative if all assignors it names are (KIP-429), since the group may choose any of them.
    """

    def __init__(self, settings: MembershipSettings, cluster: ClusterView) -> None:
        self._settings, self._cluster = settings, cluster
        self._assignors = [ASSIGNORS[name] for name in settings.partition_assignment_strategy]
        self.cooperative = all(assignor.cooperative for assignor in self._assignors)
        self.heartbeat_interval_ms = settings.heartbeat_interval_ms
        self.subscription = Subscription()
        self.member_id = ""
        self.generation = -1
        self._protocol: str | None = None
        self._joined: frozenset[str] = frozenset()
        # What the last assignment was, and when, for assignors that keep things in their place.
        self._last: Partitions | None = None
        self._last_generation = -1
        # A leader's business: the members' subscriptions, and the topics as they were assigned.
        self._members: dict[str, bytes] | None = None
        self._instances: dict[str, str | None] = {}
        self._skip = False
        self._counts: dict[str, int] | None = None

    @property
    def unresolved(self) -> bool:
        """Assignments are by name, so never."""
        return False

    def join(self, owned: Partitions) -> Call:
        """JoinGroup, with the subscription as it is now."""
        self._members, self._counts = None, None
        self._joined = self.subscription.matched(self._names())
        keeps = owned if self.cooperative else frozenset()
        return Call(
            JoinGroupRequest(
                group_id=self._settings.group_id,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.max_poll_interval_ms,
                member_id=self.member_id,
                group_instance_id=self._settings.group_instance_id,
                protocol_type=_PROTOCOL_TYPE,
                protocols=[
                    JoinGroupRequest.Protocol(
                        name=assignor.name,
                        metadata=encode_subscription(
                            self._joined,
                            assignor.user_data(self._last, self._last_generation),
                            keeps,
                            self._last_generation if self.generation >= 0 else -1,
                            self._settings.client_rack or None,
                        ),
                    )
                    for assignor in self._assignors
                ],
            ),
            JoinGroupResponse,
            self._settings.max_poll_interval_ms + _GRACE_MS,
        )

    def wanted(self) -> frozenset[str]:
        """All topics that any member reads."""
        metadata = (self._members or {}).values()
        return frozenset[str]().union(*(decode_subscription(data).topics for data in metadata))

    def sync(self) -> Call:
        """SyncGroup; a leader assigns."""
        return Call(
            SyncGroupRequest(
                group_id=self._settings.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._settings.group_instance_id,
                protocol_type=_PROTOCOL_TYPE,
                protocol_name=self._protocol,
                assignments=[] if self._members is None else self._assign(self._members),
            ),
            SyncGroupResponse,
            # A leader that doesn't assign has either died, and then the coordinator notices within a session and says
            # so; or it takes longer than that, and may be given more time by joining anew.
            self._settings.session_timeout_ms,
        )

    def heartbeat(self, owned: Partitions) -> Call:
        """Heartbeat."""
        request = HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        return Call(request, HeartbeatResponse, self._settings.request_timeout_ms)

    def leave(self) -> Call | None:
        """LeaveGroup, unless the member is static: those keep their place until their session ends."""
        member_id, self.member_id = self.member_id, ""
        self.forget()
        if not member_id or self._settings.group_instance_id is not None:
            return None
        request = LeaveGroupRequest(
            group_id=self._settings.group_id,
            members=[LeaveGroupRequest.Member(member_id=member_id, reason="the consumer leaves")],
        )
        return Call(request, LeaveGroupResponse, self._settings.request_timeout_ms)

    def hear(self, request: Request, response: Response) -> Heard:
        """What an answer means; of errors, see `heard_error`."""
        code: int = response.error_code  # type: ignore[attr-defined]
        match response:
            case LeaveGroupResponse():
                return Heard(Input.LEFT)
            case HeartbeatResponse(error_code=ErrorCode.NONE):
                return Heard(Input.KEEP)
            case HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS):
                return Heard(self.told())
            case JoinGroupResponse(error_code=ErrorCode.NONE):
                return self._registered(response)
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = response.member_id
                return Heard(Input.NAMED)
            case SyncGroupResponse(error_code=ErrorCode.NONE):
                return self._given(response)
            case SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS):
                return Heard(self.told())
        heard = heard_error(code, None, self._settings.group_id, self._settings.group_instance_id)
        if heard.input is Input.FENCED:
            self.forget()
            if code != ErrorCode.ILLEGAL_GENERATION:
                self.member_id = ""
        return heard

    def _registered(self, response: JoinGroupResponse) -> Heard:
        # Old brokers don't say the protocol's type. Where others than consumers share the group id, nothing can work.
        if response.protocol_type not in (None, _PROTOCOL_TYPE):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            detail = f"group {self._settings.group_id!r} has members of type {response.protocol_type!r}"
            return heard_error(code, detail, self._settings.group_id, None)
        self.member_id, self.generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name
        if response.leader != response.member_id:
            return Heard(Input.JOINED)
        self._members = {member.member_id: member.metadata for member in response.members}
        self._instances = {member.member_id: member.group_instance_id for member in response.members}
        self._skip = response.skip_assignment
        return Heard(Input.ELECTED)

    def _given(self, response: SyncGroupResponse) -> Heard:
        try:
            return Heard(Input.ASSIGN, decode_assignment(response.assignment))
        except ProtocolError as error:
            return Heard(Input.LOST, error=ConnectionLostError(f"the group's leader sent no assignment: {error}"))

    def _assign(self, metadata: dict[str, bytes]) -> list[SyncGroupRequest.Assignment]:
        members = {
            member_id: decode_subscription(data, self._instances[member_id]) for member_id, data in metadata.items()
        }
        self._counts = self._partitions(self.wanted())
        if self._skip or self._protocol not in ASSIGNORS:
            return []
        assignment = ASSIGNORS[self._protocol].assign(members, self._counts)
        return [
            SyncGroupRequest.Assignment(member_id=member_id, assignment=encode_assignment(partitions))
            for member_id, partitions in assignment.items()
        ]

    def told(self) -> Input:
        """By joining anew."""
        return Input.REJOIN if self.cooperative else Input.YIELD

    def narrowed(self, owned: Partitions) -> Partitions | None:
        """Cooperative members give up topics they no longer read before they join anew."""
        topics = self.subscription.matched(self._names())
        return frozenset(partition for partition in owned if partition.topic in topics) if self.cooperative else None

    def noticed(self) -> Heard | None:
        """A pattern matches other topics, or (the leader) topics have other partitions: join anew."""
        matches = self.subscription.pattern is not None and self.subscription.matched(self._names()) != self._joined
        grown = self._counts is not None and self._partitions(self._counts) != self._counts
        return Heard(self.told()) if matches or grown else None

    def acknowledged(self, *, revoked: bool) -> Input | None:
        """Cooperative members join anew after they gave something up, so that it can be given to others."""
        return Input.REJOIN if revoked and self.cooperative else None

    def assigned(self, partitions: Partitions) -> None:
        """Remember, for the assignors."""
        self._last, self._last_generation = partitions, self.generation

    def unheard(self) -> None:
        """Every request says all there is to say."""

    def forget(self) -> None:
        """The generation is over; the member id may still be good."""
        self.generation = -1
        self._members, self._counts = None, None

    def _names(self) -> list[str]:
        skip = self._settings.exclude_internal_topics
        return [name for name, topic in self._cluster.topics.items() if not (skip and topic.internal)]

    def _partitions(self, topics: frozenset[str] | dict[str, int]) -> dict[str, int]:
        # A topic that isn't there yet has no partitions; that it comes is a change.
        known = self._cluster.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in sorted(topics)}
