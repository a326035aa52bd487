"""The consumer protocol (KIP-848) in the state machine's words: ConsumerGroupHeartbeat alone."""

from __future__ import annotations

from uuid import UUID

from kohort.client.connector.consumer_protocol import by_topic
from kohort.client.connector.membership import Call, ClusterView, Heard, Partitions, heard_error
from kohort.client.connector.settings import MembershipSettings, Subscription
from kohort.client.connector.table import Input
from kohort.client.errors import UnsupportedError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

__all__ = ["ConsumerMembership"]

_JOIN, _LEAVE, _LEAVE_FOR_A_WHILE = 0, -1, -2


class ConsumerMembership:
    """A member of a consumer group: the coordinator assigns, a heartbeat says all.

    Args:
        member_id: made up by the client, for as long as it lives.
    """

    def __init__(self, settings: MembershipSettings, cluster: ClusterView, member_id: str) -> None:
        self._settings, self._cluster = settings, cluster
        self.member_id = member_id
        self.generation = -1
        self.heartbeat_interval_ms = settings.heartbeat_interval_ms
        self.subscription = Subscription()
        self._ids: dict[str, UUID] = {}
        # What the coordinator last heard, so that only changes are sent. What is owned is told by ids of topics: one
        # that was made anew is another topic.
        self._told_subscription: Subscription | None = None
        self._told_owned: dict[UUID, tuple[int, ...]] | None = None
        self._told_pattern = False
        self._assignment: dict[UUID, tuple[int, ...]] | None = None

    def join(self, owned: Partitions) -> Call:
        """The first heartbeat: everything there is to say. It owns nothing yet, whatever it had before."""
        self.forget()
        self.generation = _JOIN
        request = self._request(_JOIN)
        request.rack_id = self._settings.client_rack or None
        request.server_assignor = self._settings.group_remote_assignor
        self._tell(request, frozenset())
        return self._call(request)

    def heartbeat(self, owned: Partitions) -> Call:
        """A heartbeat, with what changed since the last one that the coordinator answered."""
        request = self._request(self.generation)
        self._tell(request, owned)
        return self._call(request)

    def _tell(self, request: ConsumerGroupHeartbeatRequest, owned: Partitions) -> None:
        if self._told_owned is None:
            # With this, the subscription and what is owned, the answer has the assignment, be it news or not: an
            # earlier one may have got lost with it.
            request.rebalance_timeout_ms = self._settings.max_poll_interval_ms
        if self.subscription != self._told_subscription:
            self._tell_subscription(request)
        by_id = {self._ids[topic]: numbers for topic, numbers in by_topic(owned).items()}
        if by_id != self._told_owned:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartition(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_id.items()
            ]
            self._told_owned = by_id

    def _tell_subscription(self, request: ConsumerGroupHeartbeatRequest) -> None:
        request.subscribed_topic_names = tuple(sorted(self.subscription.topics))
        if self.subscription.pattern is not None:
            request.subscribed_topic_regex = self.subscription.pattern
        elif self._told_pattern:
            request.subscribed_topic_regex = ""  # no longer
        self._told_pattern = self._told_pattern or self.subscription.pattern is not None
        self._told_subscription = self.subscription

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
        """There's no such thing here: the coordinator assigns."""
        raise AssertionError("a consumer group isn't synced")

    def wanted(self) -> frozenset[str]:
        """Nothing: nobody here is a leader."""
        return frozenset()

    def leave(self) -> Call | None:
        """The last heartbeat. A static member leaves its place free for a while."""
        joined = self.generation >= 0
        self.forget()
        if not joined:
            return None
        return self._call(self._request(_LEAVE if self._settings.group_instance_id is None else _LEAVE_FOR_A_WHILE))

    def hear(self, request: Request, response: Response) -> Heard:
        """What an answer means; of errors, see `heard_error`."""
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        if request.member_epoch in (_LEAVE, _LEAVE_FOR_A_WHILE):
            return Heard(Input.LEFT)
        if response.error_code == ErrorCode.NONE:
            self.generation = response.member_epoch
            self.heartbeat_interval_ms = max(1, response.heartbeat_interval_ms)
            if response.assignment is None:
                return Heard(Input.KEEP)
            self._assignment = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
            return Heard(Input.ASSIGN, self._resolved())
        self.unheard()
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            return Heard(Input.REFUSED, error=unsupported(response.error_message))
        heard = heard_error(
            response.error_code, response.error_message, self._settings.group_id, self._settings.group_instance_id
        )
        if heard.input is Input.FENCED:
            self.forget()
        return heard

    def _resolved(self) -> Partitions:
        """The assignment as far as the topics' names are known; the rest waits for metadata (`noticed`)."""
        resolved = set()
        for topic_id, numbers in (self._assignment or {}).items():
            if name := self._cluster.names.get(topic_id):
                self._ids[name] = topic_id
                resolved |= {TopicPartition(name, number) for number in numbers}
        return frozenset(resolved)

    @property
    def unresolved(self) -> bool:
        """Whether the assignment has topics whose names aren't known."""
        return any(topic_id not in self._cluster.names for topic_id in self._assignment or {})

    def told(self) -> Input:
        """By a heartbeat."""
        return Input.TELL

    def narrowed(self, owned: Partitions) -> Partitions | None:
        """The coordinator takes away what isn't subscribed to."""
        return None

    def noticed(self) -> Heard | None:
        """Names of topics may have become known."""
        return None if self._assignment is None else Heard(Input.ASSIGN, self._resolved())

    def acknowledged(self, *, revoked: bool) -> Input | None:
        """By a heartbeat that says what the member has now."""
        return Input.TELL

    def assigned(self, partitions: Partitions) -> None:
        """Nothing to remember: heartbeats say what is owned."""

    def unheard(self) -> None:
        """The coordinator may not have taken in what it was told, so all is said again."""
        self._told_subscription = self._told_owned = None

    def forget(self) -> None:
        """The member joins anew with epoch 0 and says everything."""
        self.unheard()
        self.generation, self._assignment, self._told_pattern = -1, None, False


def unsupported(detail: str | None) -> UnsupportedError:
    """The error for brokers without consumer groups."""
    return UnsupportedError(
        'the brokers have no consumer groups of the new protocol (KIP-848); use group_protocol="classic"'
        + (f" ({detail})" if detail else "")
    )
