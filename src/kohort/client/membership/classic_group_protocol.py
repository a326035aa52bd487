"""The classic group protocol as events and requests: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from kohort.client.assignors import ASSIGNORS
from kohort.client.errors import ConnectionLostError
from kohort.client.membership.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kohort.client.membership.group_protocol import Call, Event, Partitions, error_event
from kohort.client.membership.member_states import EventType
from kohort.client.membership.settings import MembershipSettings, Subscription
from kohort.client.server_cluster_info import ServerClusterInfo
from kohort.protocol.errors import ErrorCode, ProtocolError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_TYPE = "consumer"
_JOIN_GRACE_MS = 5_000
"""Beyond the rebalance timeout, until the coordinator must have responded to a join."""


class ClassicGroupProtocol:
    """A member of a classic group. The group's leader assigns, which may be this member.

    It's cooperative if all the assignors that it names are (KIP-429), since the group may choose any of them.
    """

    def __init__(self, settings: MembershipSettings, cluster: ServerClusterInfo) -> None:
        self._settings, self._cluster = settings, cluster
        self._assignors = [ASSIGNORS[name] for name in settings.partition_assignment_strategy]
        self.cooperative = all(assignor.cooperative for assignor in self._assignors)
        self.heartbeat_interval_ms = settings.heartbeat_interval_ms
        self.subscription = Subscription()
        self.member_id = ""
        self.generation = -1
        self._protocol: str | None = None
        self._joined: frozenset[str] = frozenset()
        # The last assignment and its generation, for sticky assignors.
        self._last: Partitions | None = None
        self._last_generation = -1
        # For the leader: the members' subscriptions, and the topics' partition counts as they were assigned.
        self._members: dict[str, bytes] | None = None
        self._instances: dict[str, str | None] = {}
        self._skip_assignment = False
        self._counts: dict[str, int] | None = None

    @property
    def unresolved(self) -> bool:
        # Assignments name topics.
        return False

    def join(self, owned: Partitions) -> Call:
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
            self._settings.max_poll_interval_ms + _JOIN_GRACE_MS,
        )

    def group_topics(self) -> frozenset[str]:
        metadata = (self._members or {}).values()
        return frozenset[str]().union(*(decode_subscription(data).topics for data in metadata))

    def sync(self) -> Call:
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
            # A leader that doesn't assign has died, and then the coordinator says so within the session timeout; or it
            # takes longer than that, and gets more time when the member joins again.
            self._settings.session_timeout_ms,
        )

    def heartbeat(self, owned: Partitions) -> Call:
        request = HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        return Call(request, HeartbeatResponse, self._settings.request_timeout_ms)

    def leave(self, *, busy: bool = False) -> Call | None:
        # Static members keep their place until their session ends.
        member_id, self.member_id = self.member_id, ""
        self.reset_generation()
        if not member_id or self._settings.group_instance_id is not None:
            return None
        limit = self._settings.max_poll_interval_ms
        reason = f"busy for longer than max.poll.interval.ms ({limit})" if busy else "the consumer leaves"
        request = LeaveGroupRequest(
            group_id=self._settings.group_id, members=[LeaveGroupRequest.Member(member_id=member_id, reason=reason)]
        )
        return Call(request, LeaveGroupResponse, self._settings.request_timeout_ms)

    def on_response(self, request: Request, response: Response) -> Event:
        code: int = response.error_code  # type: ignore[attr-defined]
        match response:
            case LeaveGroupResponse():
                return Event(EventType.LEFT)
            case HeartbeatResponse(error_code=ErrorCode.NONE):
                return Event(EventType.UNCHANGED)
            case HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS):
                return Event(self.subscription_changed())
            case JoinGroupResponse(error_code=ErrorCode.NONE):
                return self._joined_group(response)
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = response.member_id
                return Event(EventType.MEMBER_ID_REQUIRED)
            case SyncGroupResponse(error_code=ErrorCode.NONE):
                return self._synced(response)
            case SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS):
                return Event(self.subscription_changed())
        event = error_event(code, None, self._settings.group_id, self._settings.group_instance_id)
        if event.type is EventType.FENCED:
            self.reset_generation()
            if code != ErrorCode.ILLEGAL_GENERATION:
                self.member_id = ""
        return event

    def _joined_group(self, response: JoinGroupResponse) -> Event:
        # Old brokers don't send the protocol's type. If others than consumers share the group id, nothing can work.
        if response.protocol_type not in (None, _PROTOCOL_TYPE):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            detail = f"group {self._settings.group_id!r} has members of type {response.protocol_type!r}"
            return error_event(code, detail, self._settings.group_id, None)
        self.member_id, self.generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name
        if response.leader != response.member_id:
            return Event(EventType.JOINED)
        self._members = {member.member_id: member.metadata for member in response.members}
        self._instances = {member.member_id: member.group_instance_id for member in response.members}
        self._skip_assignment = response.skip_assignment
        return Event(EventType.JOINED_AS_LEADER)

    def _synced(self, response: SyncGroupResponse) -> Event:
        try:
            return Event(EventType.ASSIGN, decode_assignment(response.assignment))
        except ProtocolError as error:
            return Event(
                EventType.CONNECTION_LOST, error=ConnectionLostError(f"the group's leader sent no assignment: {error}")
            )

    def _assign(self, metadata: dict[str, bytes]) -> list[SyncGroupRequest.Assignment]:
        members = {
            member_id: decode_subscription(data, self._instances[member_id]) for member_id, data in metadata.items()
        }
        self._counts = self._partitions(self.group_topics())
        if self._skip_assignment or self._protocol not in ASSIGNORS:
            return []
        assignment = ASSIGNORS[self._protocol].assign(members, self._counts)
        return [
            SyncGroupRequest.Assignment(member_id=member_id, assignment=encode_assignment(partitions))
            for member_id, partitions in assignment.items()
        ]

    def subscription_changed(self) -> EventType:
        return EventType.REJOIN if self.cooperative else EventType.REVOKE_AND_REJOIN

    def still_subscribed(self, owned: Partitions) -> Partitions | None:
        # Cooperative members revoke topics that they no longer read before they join again.
        topics = self.subscription.matched(self._names())
        return frozenset(partition for partition in owned if partition.topic in topics) if self.cooperative else None

    def metadata_changed(self) -> Event | None:
        """If a pattern matches other topics, or (for the leader) topics have other partitions, the member rejoins."""
        matches = self.subscription.pattern is not None and self.subscription.matched(self._names()) != self._joined
        grown = self._counts is not None and self._partitions(self._counts) != self._counts
        return Event(self.subscription_changed()) if matches or grown else None

    def acknowledgement(self, *, revoked: bool) -> EventType | None:
        # Cooperative members join again after they revoked something, so that others can get it.
        return EventType.REJOIN if revoked and self.cooperative else None

    def assigned(self, partitions: Partitions) -> None:
        self._last, self._last_generation = partitions, self.generation

    def resend_all(self) -> None:
        """Every request says everything anyway."""

    def reset_generation(self) -> None:
        """The generation is over; the member id may still be good."""
        self.generation = -1
        self._members, self._counts = None, None

    def _names(self) -> list[str]:
        skip = self._settings.exclude_internal_topics
        return [name for name, topic in self._cluster.topics.items() if not (skip and topic.internal)]

    def _partitions(self, topics: frozenset[str] | dict[str, int]) -> dict[str, int]:
        # A topic that doesn't exist yet has no partitions; its creation is a change.
        known = self._cluster.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in sorted(topics)}
