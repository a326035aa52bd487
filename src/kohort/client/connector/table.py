"""The coordinator connector's rules: its states, what it hears, what it does, and every move it makes.

Theory of operation. A connector keeps a member in its group. It hears answers from the coordinator, ends of what the
consumer was told to do, the user, and the clock; both group protocols speak in the same inputs (`classic` and `modern`
translate). A state and an input give actions, in order, and the next state. **What the table doesn't have is ignored.**

The order of actions is the lightweight consumer's: on *revoke*, stop the fetchers of what is revoked, clear their
queues, report the consumed offsets, acknowledge; on *assign*, refresh the consumed partition info, start the
fetchers, acknowledge; on a lost connection, close all fetchers and clear their queues, shut the channel down, start
again from the cluster info. Only one thing is asked of the consumer at a time, and only in REVOKING, ASSIGNING,
YIELDING, LOSING and PARTING is something asked of it; heartbeats go on meanwhile.

`python -m kohort.client.connector` prints the table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final

__all__ = ["HEARTBEATING", "TRANSITIONS", "Action", "Input", "State", "shown"]


class State(enum.Enum):
    """Where a member stands. The value says what that means."""

    OUT = "not a member: no subscription, or closed"
    SEEKING = "looks for the coordinator and opens the channel, to register"
    JOINING = "has asked to be registered"
    SYNCING = "is registered, and waits for the group's leader to assign (classic only)"
    STABLE = "a member; fetchers run as assigned"
    REVOKING = "gives up what the coordinator wants back"
    ASSIGNING = "takes what the coordinator gives"
    YIELDING = "gives up everything before it registers anew (classic, eager assignors)"
    LOSING = "abandons everything: its place in the group is gone"
    SUSPENDED = "a member as far as it knows, but the channel is lost; fetchers are closed"
    AWAY = "has left, since the user didn't ask for records for max.poll.interval.ms"
    PARTING = "gives up everything, to leave"
    LEAVING = "has told the coordinator that it leaves"
    FAILED = "out until the subscription changes: the coordinator refused for good"


class Input(enum.Enum):
    """What a connector hears. The value says from whom, and what."""

    ENTER = "user: subscribed"
    TELL = "user: subscribed to something else; a heartbeat tells (consumer protocol)"
    LEAVE = "user: unsubscribed, or closes"
    OVERDUE = "clock: the user hasn't asked for records for max.poll.interval.ms"
    HEARD = "user: asks for records again"
    FOUND = "network: the channel to the coordinator is open"
    LOST = "network: the channel is closed, an answer is overdue, or the coordinator is elsewhere"
    EXPIRED = "clock: nothing heard from the coordinator for the session timeout"
    NAMED = "coordinator: register again, with this member id (classic)"
    JOINED = "coordinator: registered; ask for the assignment (classic)"
    ELECTED = "coordinator: registered as the leader; assign (classic)"
    LEARNED = "network: the topics to assign are known (classic, leader)"
    KEEP = "coordinator: all is well, nothing new"
    REVOKE = "coordinator: an assignment without some of what the member has"
    ASSIGN = "coordinator: an assignment with all that the member has, and perhaps more"
    REJOIN = "coordinator or metadata: register anew, keeping everything (classic, cooperative assignors)"
    YIELD = "coordinator or metadata: register anew, after giving up everything (classic, eager assignors)"
    FENCED = "coordinator: it doesn't know this member, generation or epoch (any more)"
    AGAIN = "coordinator: not now, ask again"
    COMPLAINT = "coordinator: something the user must know, and may mend meanwhile"
    REFUSED = "coordinator: never"
    REVOKED = "consumer: has given up what it was asked to"
    ASSIGNED = "consumer: has taken it"
    YIELDED = "consumer: has given up everything"
    DROPPED = "consumer: has abandoned everything"
    PARTED = "consumer: has given up everything, to leave"
    LEFT = "coordinator: has noted that the member leaves; or it couldn't be told"


class Action(enum.Enum):
    """What a connector does. The value says what that is."""

    SEEK = "shut the channel down, find the coordinator, open a new one"
    JOIN = "ask to be registered"
    SYNC = "ask for the assignment; the leader hands in everyone's"
    LEARN = "look up the topics that the group reads"
    REPEAT = "ask the same again, after a pause"
    HEARTBEAT = "send a heartbeat now"
    PAUSE = "send the next heartbeat after a pause"
    SUSPEND = "close all fetchers, clear their queues; positions stay"
    RESUME = "start the fetchers again, if they were suspended"
    REVOKE = "of what's revoked: stop fetchers, clear queues, report consumed offsets"
    ASSIGN = "refresh the consumed partition info, start fetchers"
    YIELD = "the same as revoke, of everything"
    DROP = "of everything: stop fetchers, clear queues; report nothing"
    PART = "the same as revoke, of everything, to leave"
    ACKNOWLEDGE = "tell the coordinator: a heartbeat with what's owned, or (classic) register anew after a revoke"
    DEFER = "hear it again once stable, or out; of assignments, the latest"
    LEAVE = "tell the coordinator that the member leaves"
    COMPLAIN = "raise the error in the user's loop"
    FAIL = "raise the error in the user's loop; it's over"


_S, _I, _A = State, Input, Action
_Row = tuple[tuple[Action, ...], State]

_MEMBER: Final = (_S.STABLE, _S.REVOKING, _S.ASSIGNING, _S.YIELDING)
"""States in which the member has its place, as far as it knows, and a channel."""

_BUSY: Final = (_S.REVOKING, _S.ASSIGNING, _S.YIELDING)
"""Those of them in which the consumer is at work."""

HEARTBEATING: Final = frozenset({*_MEMBER, _S.SYNCING, _S.PARTING, _S.SUSPENDED})
"""States in which heartbeats are sent, while there's a channel."""

TRANSITIONS: Final[dict[tuple[State, Input], _Row]] = {
    # Registering: steps 1 to 5 of the start-up.
    (_S.OUT, _I.ENTER): ((_A.SEEK,), _S.SEEKING),
    (_S.FAILED, _I.ENTER): ((_A.SEEK,), _S.SEEKING),
    (_S.SEEKING, _I.FOUND): ((_A.JOIN,), _S.JOINING),
    (_S.JOINING, _I.NAMED): ((_A.JOIN,), _S.JOINING),
    (_S.JOINING, _I.JOINED): ((_A.SYNC,), _S.SYNCING),
    (_S.JOINING, _I.ELECTED): ((_A.LEARN,), _S.SYNCING),
    (_S.SYNCING, _I.LEARNED): ((_A.SYNC,), _S.SYNCING),
    **{(state, _I.KEEP): ((_A.RESUME,), _S.STABLE) for state in (_S.JOINING, _S.SUSPENDED)},
    # On revoke, and on assign.
    **{
        (state, _I.REVOKE): ((_A.RESUME, _A.REVOKE), _S.REVOKING)
        for state in (_S.JOINING, _S.SYNCING, _S.STABLE, _S.SUSPENDED)
    },
    **{
        (state, _I.ASSIGN): ((_A.RESUME, _A.ASSIGN), _S.ASSIGNING)
        for state in (_S.JOINING, _S.SYNCING, _S.STABLE, _S.SUSPENDED)
    },
    (_S.REVOKING, _I.REVOKED): ((_A.ACKNOWLEDGE, _A.ASSIGN), _S.ASSIGNING),
    (_S.ASSIGNING, _I.ASSIGNED): ((_A.ACKNOWLEDGE,), _S.STABLE),
    # A rebalance of a classic group.
    **{(state, _I.REJOIN): ((_A.RESUME, _A.JOIN), _S.JOINING) for state in (_S.STABLE, _S.SUSPENDED)},
    **{(state, _I.YIELD): ((_A.RESUME, _A.YIELD), _S.YIELDING) for state in (_S.STABLE, _S.SUSPENDED)},
    (_S.YIELDING, _I.YIELDED): ((_A.JOIN,), _S.JOINING),
    **{
        (state, heard): ((_A.DEFER,), state)
        for state in (_S.JOINING, _S.REVOKING, _S.ASSIGNING)
        for heard in (_I.REJOIN, _I.YIELD, _I.TELL)
    },
    **{
        (state, heard): ((_A.DEFER,), state)
        for state in (_S.REVOKING, _S.ASSIGNING)
        for heard in (_I.REVOKE, _I.ASSIGN)
    },
    (_S.SYNCING, _I.REJOIN): ((_A.JOIN,), _S.JOINING),
    (_S.SYNCING, _I.YIELD): ((_A.JOIN,), _S.JOINING),
    **{(state, _I.TELL): ((_A.HEARTBEAT,), state) for state in (_S.STABLE, _S.SUSPENDED)},
    # Answers that ask for patience.
    **{(state, _I.AGAIN): ((_A.REPEAT,), state) for state in (_S.JOINING, _S.SYNCING)},
    **{(state, _I.COMPLAINT): ((_A.COMPLAIN, _A.REPEAT), state) for state in (_S.JOINING, _S.SYNCING)},
    **{(state, _I.AGAIN): ((_A.PAUSE,), state) for state in (*_MEMBER, _S.SUSPENDED, _S.PARTING)},
    **{(state, _I.COMPLAINT): ((_A.COMPLAIN, _A.PAUSE), state) for state in (*_MEMBER, _S.SUSPENDED)},
    # The lost connection. While the consumer is at work, only the channel is made anew.
    (_S.STABLE, _I.LOST): ((_A.SUSPEND, _A.SEEK), _S.SUSPENDED),
    (_S.SUSPENDED, _I.LOST): ((_A.SEEK,), _S.SUSPENDED),
    **{(state, _I.LOST): ((_A.SUSPEND, _A.SEEK), _S.SEEKING) for state in (_S.JOINING, _S.SYNCING)},
    **{(state, _I.LOST): ((_A.SEEK,), state) for state in (*_BUSY, _S.SEEKING, _S.PARTING)},
    **{(state, _I.FOUND): ((_A.HEARTBEAT,), state) for state in (*_MEMBER, _S.SUSPENDED, _S.PARTING)},
    # The lost place: abandon, and start again. A join or sync may wait as long as the others take.
    **{
        (state, _I.FENCED): ((_A.SUSPEND, _A.DROP), _S.LOSING)
        for state in (*_MEMBER, _S.SUSPENDED, _S.JOINING, _S.SYNCING)
    },
    **{(state, _I.EXPIRED): ((_A.SUSPEND, _A.DROP), _S.LOSING) for state in (*_MEMBER, _S.SUSPENDED, _S.SEEKING)},
    (_S.LOSING, _I.DROPPED): ((_A.SEEK,), _S.SEEKING),
    # The user is too slow.
    **{
        (state, _I.OVERDUE): ((_A.SUSPEND, _A.DROP, _A.LEAVE), _S.AWAY)
        for state in (*_MEMBER, _S.SUSPENDED)
    },
    (_S.AWAY, _I.HEARD): ((_A.SEEK,), _S.SEEKING),
    # Refused for good.
    **{
        (state, _I.REFUSED): ((_A.SUSPEND, _A.DROP, _A.FAIL), _S.FAILED)
        for state in (*_MEMBER, _S.SUSPENDED, _S.SEEKING, _S.JOINING, _S.SYNCING)
    },
    # Leaving, from anywhere; it ends whatever the coordinator does.
    **{
        (state, _I.LEAVE): ((_A.PART,), _S.PARTING)
        for state in (*_MEMBER, _S.SUSPENDED, _S.SEEKING, _S.JOINING, _S.SYNCING, _S.LOSING, _S.AWAY, _S.FAILED)
    },
    (_S.PARTING, _I.PARTED): ((_A.RESUME, _A.LEAVE), _S.LEAVING),
    (_S.LEAVING, _I.LEFT): ((), _S.OUT),
    (_S.LEAVING, _I.LOST): ((), _S.OUT),
    **{(state, _I.ENTER): ((_A.DEFER,), state) for state in (_S.PARTING, _S.LEAVING)},
}  # fmt: skip
"""(state, input) -> (actions, next state)."""


def shown() -> str:
    """The table as Markdown: a row for what gives the same, in the order of the states; then what the words mean."""
    order = list(State)
    befores: dict[tuple[Input, tuple[Action, ...], State | None], list[State]] = {}
    for (state, heard), (actions, goal) in sorted(TRANSITIONS.items(), key=lambda row: order.index(row[0][0])):
        befores.setdefault((heard, actions, None if goal is state else goal), []).append(state)
    rows: dict[tuple[tuple[State, ...], tuple[Action, ...], State | None], list[Input]] = {}
    for (heard, actions, after), states in befores.items():
        rows.setdefault((tuple(states), actions, after), []).append(heard)
    lines = ["| in | hears | does | goes to |", "| --- | --- | --- | --- |"]
    for (before, actions, after), inputs in rows.items():
        does = ", ".join(action.name.lower() for action in actions) or "nothing"
        lines.append(f"| {_names(before)} | {_names(inputs)} | {does} | {after.name if after else 'stays'} |")
    for title, kind in (("state", State), ("input", Input), ("action", Action)):
        lines += ["", f"| {title} | meaning |", "| --- | --- |"]
        for item in kind:
            lines.append(f"| {item.name.lower() if kind is Action else item.name} | {item.value} |")
    return "\n".join(lines)


def _names(words: Iterable[State | Input]) -> str:
    return ", ".join(word.name for word in words)
