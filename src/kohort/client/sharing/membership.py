"""A member of a share group: what it sends, and what it does about the answers. No socket, clock or randomness.

| state | what it means | next |
| --- | --- | --- |
| UNSUBSCRIBED | no topics, no member | `subscribe`: JOINING |
| JOINING | sends heartbeats with epoch 0, until one is answered | STABLE, FAILED |
| STABLE | a member; fetches what it is assigned | fenced: JOINING, without an assignment |
| LEAVING | sends the last heartbeat, once | UNSUBSCRIBED |
| FAILED | the group refused it, or its user may not; a new subscription tries again | JOINING |

Partitions of a share group have many readers: nothing has to be given back before others may read it, so that an
assignment is simply taken.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Final

from kohort.client.backoff import Backoff
from kohort.client.heartbeat_errors import HeartbeatErrors, Reaction
from kohort.client.sharing.share_session import PartitionKey
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_JOIN: Final = 0
_LEAVE: Final = -1
_DEFAULT_INTERVAL_MS: Final = 5_000


class State(enum.Enum):
    """A member's state; see the module's table."""

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    STABLE = "stable"
    LEAVING = "leaving"
    FAILED = "failed"


E = ErrorCode
HEARTBEAT_ERRORS: Final = HeartbeatErrors(
    {
        E.GROUP_MAX_SIZE_REACHED: (Reaction.FAIL, "stop another member, or raise group.share.max.size on the brokers"),
        E.UNSUPPORTED_VERSION: (
            Reaction.FAIL,
            "the brokers have no share groups: they take Apache Kafka 4.2 or kohort serve, and share.version 1",
        ),
        E.TOPIC_AUTHORIZATION_FAILED: (Reaction.FAIL, "the user needs DESCRIBE on the topics, and READ to fetch"),
    }
)
"""The reaction to each error, and what people can do."""


class ShareMembership:
    """Joins, sends heartbeats, is fenced and leaves. All times are ms of one clock, given as `now`.

    Its driver sends `request` at `due_at`, one at a time, and calls `on_response` or `on_failure` after it.

    Args:
        member_id: made up by the member, for its life.
        rack: empty for none.

    Attributes:
        epoch: its member epoch; 0 while it joins.
        assignment: the partitions to fetch.
        due_at: when to send the next heartbeat; None while there's nothing to say.
        error: why it failed.
    """

    def __init__(self, group_id: str, member_id: str, rack: str, backoff: Backoff) -> None:
        self.group_id, self.member_id = group_id, member_id
        self._rack = rack
        self._backoff = backoff
        self._topics: frozenset[str] = frozenset()
        self._told: frozenset[str] | None = None
        self._sending: frozenset[str] | None = None
        self.state = State.UNSUBSCRIBED
        self.epoch = _JOIN
        self.assignment: frozenset[PartitionKey] = frozenset()
        self.due_at: float | None = None
        self.error: Exception | None = None

    @property
    def topics(self) -> frozenset[str]:
        """What is subscribed to."""
        return self._topics

    def subscribe(self, topics: Collection[str], now: float) -> None:
        """Reads these topics, and no others, from the next heartbeat on, which is due at once; none: leaves."""
        self._topics = frozenset(topics)
        if not topics:
            self.leave(now)
            return
        if self.state in (State.UNSUBSCRIBED, State.FAILED, State.LEAVING):
            self._join(now)
        self.due_at = now

    def leave(self, now: float) -> None:
        """Leaves the group; the heartbeat that says so is due at once, and isn't repeated if it fails."""
        self._topics = frozenset()
        self.assignment = frozenset()
        if self.state in (State.STABLE, State.JOINING):
            self.state, self.due_at = State.LEAVING, now
        elif self.state is State.FAILED:
            self.state, self.due_at = State.UNSUBSCRIBED, None

    def _join(self, now: float) -> None:
        self.state, self.epoch, self.error = State.JOINING, _JOIN, None
        self.assignment, self._told = frozenset(), None
        self.due_at = now

    def request(self) -> ShareGroupHeartbeatRequest:
        """Returns the heartbeat to send; what the coordinator knows already isn't said again."""
        self.due_at = None
        if self.state is State.LEAVING:
            return ShareGroupHeartbeatRequest(group_id=self.group_id, member_id=self.member_id, member_epoch=_LEAVE)
        self._sending = self._topics
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rack_id=self._rack or None if self.epoch == _JOIN else None,
            subscribed_topic_names=None if self._topics == self._told else tuple(sorted(self._topics)),
        )

    def on_response(
        self, request: ShareGroupHeartbeatRequest, response: ShareGroupHeartbeatResponse, now: float
    ) -> Reaction:
        """Takes the answer to a request; returns what was done about it."""
        if request.member_epoch == _LEAVE or self.state in (State.UNSUBSCRIBED, State.FAILED):
            if self.state is State.LEAVING:
                self.state = State.UNSUBSCRIBED
            return Reaction.ACCEPT
        if self.state is State.LEAVING:
            return Reaction.ACCEPT  # the last heartbeat is still to be sent
        if request.member_epoch != self.epoch:
            return Reaction.ACCEPT  # it has left since, and joins again
        reaction = HEARTBEAT_ERRORS.reaction_to(response.error_code, joining=request.member_epoch == _JOIN)
        if reaction is Reaction.ACCEPT:
            self._accept(response, now)
        elif reaction is Reaction.REJOIN:
            self._join(now)
        elif reaction is Reaction.FAIL:
            self.fail(HEARTBEAT_ERRORS.fatal_error(response.error_code, response.error_message))
        else:
            self.on_failure(now)
        return reaction

    def _accept(self, response: ShareGroupHeartbeatResponse, now: float) -> None:
        self._backoff.reset()
        self.state, self.epoch, self._told = State.STABLE, response.member_epoch, self._sending
        if response.assignment is not None:
            self.assignment = frozenset(
                (topic.topic_id, number)
                for topic in response.assignment.topic_partitions
                for number in topic.partitions
            )
        interval = response.heartbeat_interval_ms
        self.due_at = now if self._topics != self._told else now + (interval if interval > 0 else _DEFAULT_INTERVAL_MS)

    def on_failure(self, now: float) -> None:
        """The request wasn't answered, or with an error that is retried: everything is said again."""
        if self.state is State.LEAVING:
            self.state, self.due_at = State.UNSUBSCRIBED, None
        elif self.state in (State.JOINING, State.STABLE):
            self._told = None
            self.due_at = now + self._backoff.next()

    def fail(self, error: Exception) -> None:
        """The member can't go on; one that leaves anyway has left."""
        if self.state is State.LEAVING:
            self.state, self.due_at = State.UNSUBSCRIBED, None
            return
        self.state, self.error, self.due_at = State.FAILED, error, None
        self.assignment = frozenset()
