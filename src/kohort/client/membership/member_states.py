"""A group member's states, the events it handles, the actions these cause, and every transition, in one table.

The table keeps a member in its group. Events come from the coordinator's responses, from the consumer (the end of a
revoke or an assign), from the user, and from the clock. Both group protocols use the same events
(`classic_group_protocol` and `consumer_group_protocol` translate). A state and an event give actions, in order, and the
next state. **What the table doesn't list is ignored.**

States are named after those of Kafka's Java consumer (`MemberState`) where they are the same. Its RECONCILING is
REVOKING and ASSIGNING here; its ACKNOWLEDGING is an action; the classic protocol's COMPLETING_REBALANCE is SYNCING.

The order of actions is the lightweight consumer's: on *revoke*, stop the fetchers of what is revoked, clear their
queues, report the consumed offsets, acknowledge; on *assign*, refresh the consumed partition info, start the
fetchers, acknowledge; on a lost connection, close all fetchers and clear their queues, shut the channel down, start
again from the cluster info. The consumer does one thing at a time, and works only in REVOKING, ASSIGNING,
PREPARE_JOINING, FENCED and PREPARE_LEAVING; heartbeats go on meanwhile.

`python -m kohort.client.membership` prints the table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final


class State(enum.Enum):
    """A member's state. The value explains it."""

    UNSUBSCRIBED = "not a member: no subscription, or closed"
    FINDING_COORDINATOR = "looks for the coordinator and opens the channel, to join"
    JOINING = "has sent a join (JoinGroup, or the first heartbeat)"
    SYNCING = "has joined, and waits for the group's leader to assign (classic only; Kafka's COMPLETING_REBALANCE)"
    STABLE = "a member; fetchers run as assigned"
    REVOKING = "revokes what the coordinator wants back"
    ASSIGNING = "takes what the coordinator assigns"
    PREPARE_JOINING = "revokes everything before it joins again (classic, eager assignors)"
    FENCED = "has lost its place in the group: abandons everything, then joins again"
    SUSPENDED = "a member as far as it knows, but the channel is lost; fetchers are closed"
    STALE = "has left, since the user didn't poll for max.poll.interval.ms"
    PREPARE_LEAVING = "revokes everything, to leave"
    LEAVING = "has reported to the coordinator that it leaves"
    FATAL = "out until the subscription changes: the coordinator refused with a fatal error"


class EventType(enum.Enum):
    """What a member handles. The value says from whom it comes, and what it is."""

    SUBSCRIBED = "user: subscribed"
    HEARTBEAT_NOW = "user: subscribed to something else; a heartbeat says so (consumer protocol)"
    LEAVE = "user: unsubscribed, or closes"
    POLL_INTERVAL_EXCEEDED = "clock: the user hasn't polled for max.poll.interval.ms"
    POLLED = "user: polls again"
    COORDINATOR_FOUND = "network: the channel to the coordinator is open"
    CONNECTION_LOST = "network: the channel is closed, a response is overdue, or the coordinator is elsewhere"
    SESSION_EXPIRED = "clock: no response from the coordinator for the session timeout"
    MEMBER_ID_REQUIRED = "coordinator: join again, with this member id (classic)"
    JOINED = "coordinator: joined; sync (classic)"
    JOINED_AS_LEADER = "coordinator: joined as the leader; assign (classic)"
    METADATA_READY = "network: the topics to assign are known (classic, leader)"
    UNCHANGED = "coordinator: all is well, the assignment is unchanged"
    REVOKE = "coordinator: an assignment without some of what the member has"
    ASSIGN = "coordinator: an assignment with all that the member has, and perhaps more"
    REJOIN = "coordinator or metadata: join again, keeping everything (classic, cooperative assignors)"
    REVOKE_AND_REJOIN = "coordinator or metadata: revoke everything, then join again (classic, eager assignors)"
    FENCED = "coordinator: it doesn't know this member, generation or epoch (any more)"
    RETRY = "coordinator: a retriable error"
    NON_FATAL_ERROR = "coordinator: an error that the user must know, and may mend meanwhile"
    FATAL_ERROR = "coordinator: an error that no retry mends"
    REVOKED = "consumer: has revoked what the coordinator wanted back"
    ASSIGNED = "consumer: has taken what was assigned"
    REVOKED_TO_REJOIN = "consumer: has revoked everything, to join again"
    PARTITIONS_LOST = "consumer: has abandoned everything"
    REVOKED_TO_LEAVE = "consumer: has revoked everything, to leave"
    LEFT = "coordinator: has noted that the member leaves; or it couldn't be reached"


class Action(enum.Enum):
    """What a member does. The value explains it."""

    FIND_COORDINATOR = "shut the channel down, find the coordinator, open a new one"
    JOIN = "send a join"
    SYNC = "ask for the assignment; the leader hands in everyone's"
    FETCH_METADATA = "look up the topics that the group reads"
    RETRY = "send the same again, after a backoff"
    HEARTBEAT = "send a heartbeat now"
    DELAY_HEARTBEAT = "send the next heartbeat after retry.backoff.max.ms"
    SUSPEND = "close all fetchers, clear their queues; positions stay"
    RESUME = "start the fetchers again, if they were suspended"
    REVOKE = "of what's revoked: stop fetchers, clear queues, report consumed offsets"
    ASSIGN = "refresh the consumed partition info, start fetchers"
    REVOKE_TO_REJOIN = "the same as revoke, of everything"
    LOSE = "of everything: stop fetchers, clear queues; report nothing"
    REVOKE_TO_LEAVE = "the same as revoke, of everything, to leave"
    ACKNOWLEDGE = "tell the coordinator: a heartbeat with what's owned, or (classic) join again after a revoke"
    DEFER = "handle it once stable, or unsubscribed; of assignments, the latest"
    LEAVE = "tell the coordinator that the member leaves"
    REPORT_ERROR = "raise the error in the user's loop"
    FAIL = "raise the error in the user's loop, and give up"


_S, _E, _A = State, EventType, Action

_BUSY: Final = (_S.REVOKING, _S.ASSIGNING, _S.PREPARE_JOINING)
"""States in which the consumer revokes or takes partitions, and the member has its place."""

_MEMBER: Final = (_S.STABLE, *_BUSY)
"""States of a member that has its place, as far as it knows, and a channel."""

_OR_SUSPENDED: Final = (*_MEMBER, _S.SUSPENDED)
_REGISTERING: Final = (_S.JOINING, _S.SYNCING)
_IDLE: Final = (_S.STABLE, _S.SUSPENDED)

HEARTBEATING: Final = frozenset({*_OR_SUSPENDED, _S.SYNCING, _S.PREPARE_LEAVING})
"""States in which heartbeats are sent while the channel is open."""

_ROWS: Final[tuple[tuple[tuple[State, ...], EventType, tuple[Action, ...], State | None], ...]] = (
    # Joining: steps 1 to 5 of the start-up.
    ((_S.UNSUBSCRIBED, _S.FATAL), _E.SUBSCRIBED, (_A.FIND_COORDINATOR,), _S.FINDING_COORDINATOR),
    ((_S.FINDING_COORDINATOR,), _E.COORDINATOR_FOUND, (_A.JOIN,), _S.JOINING),
    ((_S.JOINING,), _E.MEMBER_ID_REQUIRED, (_A.JOIN,), None),
    ((_S.JOINING,), _E.JOINED, (_A.SYNC,), _S.SYNCING),
    ((_S.JOINING,), _E.JOINED_AS_LEADER, (_A.FETCH_METADATA,), _S.SYNCING),
    ((_S.SYNCING,), _E.METADATA_READY, (_A.SYNC,), None),
    ((_S.JOINING, _S.SUSPENDED), _E.UNCHANGED, (_A.RESUME,), _S.STABLE),
    # On revoke, and on assign.
    ((*_REGISTERING, *_IDLE), _E.REVOKE, (_A.RESUME, _A.REVOKE), _S.REVOKING),
    ((*_REGISTERING, *_IDLE), _E.ASSIGN, (_A.RESUME, _A.ASSIGN), _S.ASSIGNING),
    ((_S.REVOKING,), _E.REVOKED, (_A.ACKNOWLEDGE, _A.ASSIGN), _S.ASSIGNING),
    ((_S.ASSIGNING,), _E.ASSIGNED, (_A.ACKNOWLEDGE,), _S.STABLE),
    # A rebalance of a classic group; a changed subscription.
    (_IDLE, _E.REJOIN, (_A.RESUME, _A.JOIN), _S.JOINING),
    (_IDLE, _E.REVOKE_AND_REJOIN, (_A.RESUME, _A.REVOKE_TO_REJOIN), _S.PREPARE_JOINING),
    ((_S.PREPARE_JOINING,), _E.REVOKED_TO_REJOIN, (_A.JOIN,), _S.JOINING),
    ((_S.SYNCING,), _E.REJOIN, (_A.JOIN,), _S.JOINING),
    ((_S.SYNCING,), _E.REVOKE_AND_REJOIN, (_A.JOIN,), _S.JOINING),
    (_IDLE, _E.HEARTBEAT_NOW, (_A.HEARTBEAT,), None),
    *(
        ((_S.JOINING, _S.REVOKING, _S.ASSIGNING), event, (_A.DEFER,), None)
        for event in (_E.REJOIN, _E.REVOKE_AND_REJOIN, _E.HEARTBEAT_NOW)
    ),
    *(((_S.REVOKING, _S.ASSIGNING), event, (_A.DEFER,), None) for event in (_E.REVOKE, _E.ASSIGN)),
    # Errors after which the member goes on.
    (_REGISTERING, _E.RETRY, (_A.RETRY,), None),
    (_REGISTERING, _E.NON_FATAL_ERROR, (_A.REPORT_ERROR, _A.RETRY), None),
    ((*_OR_SUSPENDED, _S.PREPARE_LEAVING), _E.RETRY, (_A.DELAY_HEARTBEAT,), None),
    (_OR_SUSPENDED, _E.NON_FATAL_ERROR, (_A.REPORT_ERROR, _A.DELAY_HEARTBEAT), None),
    # The lost connection. While the consumer is at work, only the channel is replaced.
    ((_S.STABLE,), _E.CONNECTION_LOST, (_A.SUSPEND, _A.FIND_COORDINATOR), _S.SUSPENDED),
    (_REGISTERING, _E.CONNECTION_LOST, (_A.SUSPEND, _A.FIND_COORDINATOR), _S.FINDING_COORDINATOR),
    (
        (*_BUSY, _S.SUSPENDED, _S.FINDING_COORDINATOR, _S.PREPARE_LEAVING),
        _E.CONNECTION_LOST, (_A.FIND_COORDINATOR,), None,
    ),
    ((*_OR_SUSPENDED, _S.PREPARE_LEAVING), _E.COORDINATOR_FOUND, (_A.HEARTBEAT,), None),
    # Fenced, or the session timeout has passed. A join or sync may take as long as the other members.
    ((*_OR_SUSPENDED, *_REGISTERING), _E.FENCED, (_A.SUSPEND, _A.LOSE), _S.FENCED),
    ((*_OR_SUSPENDED, _S.FINDING_COORDINATOR), _E.SESSION_EXPIRED, (_A.SUSPEND, _A.LOSE), _S.FENCED),
    ((_S.FENCED,), _E.PARTITIONS_LOST, (_A.FIND_COORDINATOR,), _S.FINDING_COORDINATOR),
    # The user doesn't poll for max.poll.interval.ms.
    (_OR_SUSPENDED, _E.POLL_INTERVAL_EXCEEDED, (_A.SUSPEND, _A.LOSE, _A.LEAVE), _S.STALE),
    ((_S.STALE,), _E.POLLED, (_A.FIND_COORDINATOR,), _S.FINDING_COORDINATOR),
    # Fatal errors.
    (
        (*_OR_SUSPENDED, _S.FINDING_COORDINATOR, *_REGISTERING),
        _E.FATAL_ERROR, (_A.SUSPEND, _A.LOSE, _A.FAIL), _S.FATAL,
    ),
    # Leaving, from any state; it ends whatever the coordinator does.
    (
        (*_OR_SUSPENDED, _S.FINDING_COORDINATOR, *_REGISTERING, _S.FENCED, _S.STALE, _S.FATAL),
        _E.LEAVE, (_A.REVOKE_TO_LEAVE,), _S.PREPARE_LEAVING,
    ),
    ((_S.PREPARE_LEAVING,), _E.REVOKED_TO_LEAVE, (_A.RESUME, _A.LEAVE), _S.LEAVING),
    ((_S.LEAVING,), _E.LEFT, (), _S.UNSUBSCRIBED),
    ((_S.LEAVING,), _E.CONNECTION_LOST, (), _S.UNSUBSCRIBED),
    ((_S.PREPARE_LEAVING, _S.LEAVING), _E.SUBSCRIBED, (_A.DEFER,), None),
)  # fmt: skip
"""(states, event, actions, next state); None: the state stays."""

TRANSITIONS: Final[dict[tuple[State, EventType], tuple[tuple[Action, ...], State]]] = {
    (state, event): (actions, state if following is None else following)
    for states, event, actions, following in _ROWS
    for state in states
}
"""(state, event) -> (actions, next state)."""


def shown() -> str:
    """Returns the table as Markdown, rows in the order of the states; then the meaning of each name."""
    order = list(State)
    befores: dict[tuple[EventType, tuple[Action, ...], State | None], list[State]] = {}
    for (state, event), (actions, following) in sorted(TRANSITIONS.items(), key=lambda row: order.index(row[0][0])):
        befores.setdefault((event, actions, None if following is state else following), []).append(state)
    rows: dict[tuple[tuple[State, ...], tuple[Action, ...], State | None], list[EventType]] = {}
    for (event, actions, after), states in befores.items():
        rows.setdefault((tuple(states), actions, after), []).append(event)
    lines = ["| state | event | actions | next state |", "| --- | --- | --- | --- |"]
    for (before, actions, after), events in rows.items():
        does = ", ".join(action.name.lower() for action in actions) or "none"
        lines.append(f"| {_names(before)} | {_names(events)} | {does} | {after.name if after else 'stays'} |")
    for title, kind in (("state", State), ("event", EventType), ("action", Action)):
        lines += ["", f"| {title} | meaning |", "| --- | --- |"]
        for item in kind:
            lines.append(f"| {item.name.lower() if kind is Action else item.name} | {item.value} |")
    return "\n".join(lines)


def _names(items: Iterable[State | EventType]) -> str:
    return ", ".join(item.name for item in items)
