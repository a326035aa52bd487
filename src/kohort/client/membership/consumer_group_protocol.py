"""The consumer group protocol (KIP-848) as events and requests: ConsumerGroupHeartbeat alone."""

from __future__ import annotations

from uuid import UUID

from kohort.client.errors import UnsupportedError
from kohort.client.membership.group_protocol import Call, Event, Partitions, error_event
from kohort.client.membership.member_states import EventType
from kohort.client.membership.settings import MembershipSettings, Subscription
from kohort.client.server_cluster_info import ServerClusterInfo
from kohort.client.types import TopicPartition, by_topic
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_JOIN, _LEAVE, _LEAVE_STATIC = 0, -1, -2


class ConsumerGroupProtocol:
    """A member of a consumer group: the coordinator assigns, and heartbeats say everything.

    Args:
        member_id: chosen by the client, for its lifetime.
    """

    def __init__(self, settings: MembershipSettings, cluster: ServerClusterInfo, member_id: str) -> None:
        self._settings, self._cluster = settings, cluster
        self.member_id = member_id
        self.generation = -1
        self.heartbeat_interval_ms = settings.heartbeat_interval_ms
        self.subscription = Subscription()
        self._ids: dict[str, UUID] = {}
        # What was sent last, so that only changes are sent. Owned partitions are sent with topic ids: a topic that was
        # deleted and created again is another one.
        self._sent_subscription: Subscription | None = None
        self._sent_owned: dict[UUID, tuple[int, ...]] | None = None
        # For good: a member that joins again is one that the coordinator may still know, with its pattern.
        self._sent_pattern = False
        self._assignment: dict[UUID, tuple[int, ...]] | None = None

    def join(self, owned: Partitions) -> Call:
        """Returns the first heartbeat, with everything. The member owns nothing yet, whatever it had before."""
        self.reset_generation()
        self.generation = _JOIN
        request = self._request(_JOIN)
        request.rack_id = self._settings.client_rack or None
        request.server_assignor = self._settings.group_remote_assignor
        self._add_changes(request, frozenset())
        return self._call(request)

    def heartbeat(self, owned: Partitions) -> Call:
        request = self._request(self.generation)
        self._add_changes(request, owned)
        return self._call(request)

    def _add_changes(self, request: ConsumerGroupHeartbeatRequest, owned: Partitions) -> None:
        if self._sent_owned is None:
            # With this, the subscription and what is owned, the response has the assignment even if it's unchanged: an
            # earlier response with it may have been lost.
            request.rebalance_timeout_ms = self._settings.max_poll_interval_ms
        if self.subscription != self._sent_subscription:
            self._add_subscription(request)
        by_id = {self._ids[topic]: numbers for topic, numbers in by_topic(owned).items()}
        if by_id != self._sent_owned:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartition(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_id.items()
            ]
            self._sent_owned = by_id

    def _add_subscription(self, request: ConsumerGroupHeartbeatRequest) -> None:
        request.subscribed_topic_names = tuple(sorted(self.subscription.topics))
        if self.subscription.pattern is not None:
            request.subscribed_topic_regex = self.subscription.pattern
        elif self._sent_pattern:
            request.subscribed_topic_regex = ""  # no longer
        self._sent_pattern = self._sent_pattern or self.subscription.pattern is not None
        self._sent_subscription = self.subscription

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )

    def _call(self, request: ConsumerGroupHeartbeatRequest) -> Call:
        return Call(request, ConsumerGroupHeartbeatResponse, self._settings.request_timeout_ms)

    def sync(self) -> Call:
        raise AssertionError("a consumer group isn't synced")

    def group_topics(self) -> frozenset[str]:
        return frozenset()

    def leave(self, *, busy: bool = False) -> Call | None:
        # A heartbeat has no room for a reason. A static member may come back within the session timeout (epoch -2).
        joined = self.generation >= 0
        self.reset_generation()
        if not joined:
            return None
        return self._call(self._request(_LEAVE if self._settings.group_instance_id is None else _LEAVE_STATIC))

    def on_response(self, request: Request, response: Response) -> Event:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        if request.member_epoch in (_LEAVE, _LEAVE_STATIC):
            return Event(EventType.LEFT)
        if response.error_code == ErrorCode.NONE:
            self.generation = response.member_epoch
            self.heartbeat_interval_ms = max(1, response.heartbeat_interval_ms)
            if response.assignment is None:
                return Event(EventType.UNCHANGED)
            self._assignment = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
            return Event(EventType.ASSIGN, self._resolved())
        self.resend_all()
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            return Event(EventType.FATAL_ERROR, error=unsupported(response.error_message))
        event = error_event(
            response.error_code, response.error_message, self._settings.group_id, self._settings.group_instance_id
        )
        if event.type is EventType.FENCED:
            self.reset_generation()
        return event

    def _resolved(self) -> Partitions:
        """Returns the assignment of topics whose names are known; the rest waits for metadata (`metadata_changed`)."""
        resolved = set()
        for topic_id, numbers in (self._assignment or {}).items():
            if name := self._cluster.names.get(topic_id):
                self._ids[name] = topic_id
                resolved |= {TopicPartition(name, number) for number in numbers}
        return frozenset(resolved)

    @property
    def unresolved(self) -> bool:
        return any(topic_id not in self._cluster.names for topic_id in self._assignment or {})

    def subscription_changed(self) -> EventType:
        return EventType.HEARTBEAT_NOW

    def still_subscribed(self, owned: Partitions) -> Partitions | None:
        return None  # the coordinator revokes what isn't subscribed to

    def metadata_changed(self) -> Event | None:
        # Names of topics may have become known.
        return None if self._assignment is None else Event(EventType.ASSIGN, self._resolved())

    def acknowledgement(self, *, revoked: bool) -> EventType | None:
        return EventType.HEARTBEAT_NOW

    def assigned(self, partitions: Partitions) -> None:
        """Nothing to keep: heartbeats say what is owned."""

    def resend_all(self) -> None:
        self._sent_subscription = self._sent_owned = None

    def reset_generation(self) -> None:
        self.resend_all()
        self.generation, self._assignment = -1, None


def unsupported(detail: str | None) -> UnsupportedError:
    """Returns the error for brokers without consumer groups."""
    return UnsupportedError(
        'the brokers have no consumer groups of the new protocol (KIP-848); use group_protocol="classic"'
        + (f" ({detail})" if detail else "")
    )
