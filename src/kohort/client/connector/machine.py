"""The coordinator connector without I/O: goes by the table of transitions, and keeps what its words stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kohort.client.connector.effects import Ask, Effect, Give, Learn, Resume, Seek, Suspend, Take, Tell
from kohort.client.connector.membership import Call, Heard, Membership, Partitions
from kohort.client.connector.settings import MembershipSettings, Subscription
from kohort.client.connector.table import HEARTBEATING, TRANSITIONS, Action, Input, State
from kohort.client.errors import ConnectionLostError, RequestTimeoutError
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response

__all__ = ["Machine"]

_NOTHING: Final[Partitions] = frozenset()


class Machine:
    """A member's state, from inputs to effects. Times are ms of the caller's clock, which never goes back.

    Every method that returns effects must have them carried out, in order, before the next is called.

    Attributes:
        state: where the member stands.
        owned: what the consumer may fetch: from the moment it's asked to take it, until it has given it up.
        giving: the part of it that is being given up.
        error: why the state is FAILED.
    """

    def __init__(self, settings: MembershipSettings, membership: Membership) -> None:
        self.state = State.OUT
        self.owned: Partitions = _NOTHING
        self.giving: Partitions = _NOTHING
        self.error: Exception | None = None
        self._settings, self._membership = settings, membership
        self._effects: list[Effect] = []
        # The newest assignment; whether the consumer had to give up something for it; what to hear later.
        self._target: Partitions = _NOTHING
        self._revoked = False
        self._deferred: list[Heard] = []
        # Answers to what was asked in another turn are of no interest any more.
        self._turn = 0
        self._search = 0
        self._channel = False
        self._asked: Call | None = None
        self._waiting = False
        self._suspended = False
        self._quiet = False
        self._heard_at = self._heartbeat_at = 0
        self._left_at = 0
        self._unreleased_at: int | None = None
        self._do: dict[Action, Callable[[Heard, int], None]] = {
            Action.SEEK: self._seek,
            Action.JOIN: self._join,
            Action.SYNC: self._sync,
            Action.LEARN: self._learn,
            Action.REPEAT: self._repeat,
            Action.HEARTBEAT: self._heartbeat,
            Action.PAUSE: self._pause,
            Action.SUSPEND: self._suspend,
            Action.RESUME: self._resume,
            Action.REVOKE: self._revoke,
            Action.ASSIGN: self._assign,
            Action.YIELD: self._yield,
            Action.DROP: self._drop,
            Action.PART: self._part,
            Action.ACKNOWLEDGE: self._acknowledge,
            Action.DEFER: self._defer,
            Action.LEAVE: self._leave,
            Action.COMPLAIN: self._complain,
            Action.FAIL: self._fail,
        }

    @property
    def turn(self) -> int:
        """Effects of other turns need not be carried out any more."""
        return self._turn

    @property
    def waiting(self) -> bool:
        """Whether the channel's next answer waits for other members, so that what else is asked on it waits, too."""
        return self._waiting

    # What happens ------------------------------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription, now: int) -> list[Effect]:
        """The user subscribes, to something else, or (empty) no longer."""
        if not subscription:
            return self.leave(now)
        self._membership.subscription = subscription
        if self.state is State.FAILED and self.giving:
            self._deferred = [Heard(Input.ENTER)]  # once all is given up
            return []
        if self.state in (State.OUT, State.FAILED, State.PARTING, State.LEAVING):
            return self._take(Heard(Input.ENTER), now)
        keep = self._membership.narrowed(self.owned)
        if keep is not None and keep != self.owned and self.state is State.STABLE:
            return self._take(Heard(Input.REVOKE, keep), now)
        return self._take(Heard(self._membership.told()), now)

    def leave(self, now: int, *, quietly: bool = False) -> list[Effect]:
        """The user unsubscribes, or closes; `quietly` without telling the coordinator."""
        self._quiet = quietly
        self._membership.subscription = Subscription()
        self._deferred.clear()
        return self._take(Heard(Input.LEAVE), now)

    def found(self, search: int, now: int) -> list[Effect]:
        """The channel to the coordinator is open."""
        if search != self._search:
            return []
        self._channel, self._heartbeat_at = True, now
        return self._take(Heard(Input.FOUND), now)

    def refused(self, error: Exception, now: int) -> list[Effect]:
        """The coordinator can't be found or asked, and trying again won't help."""
        return self._take(Heard(Input.REFUSED, error=error), now)

    def learned(self, turn: int, now: int) -> list[Effect]:
        """The topics that were asked for are known."""
        return self._take(Heard(Input.LEARNED), now) if turn == self._turn else []

    def answered(self, turn: int, request: Request, response: Response, now: int) -> list[Effect]:
        """An answer came."""
        if turn != self._turn:
            return []
        heard = self._patient(self._membership.hear(request, response), now)
        # Whom the coordinator keeps waiting for others, it keeps alive.
        if self._waiting or heard.input not in (Input.LOST, Input.FENCED):
            self._heard_at = now
        # What was to be told meanwhile stays due.
        due = now + self._membership.heartbeat_interval_ms
        self._heartbeat_at = due if self._waiting else min(due, self._heartbeat_at)
        self._asked, self._waiting = None, False
        if heard.input is Input.LOST:
            self._channel = False
        return self._take(heard, now)

    def unanswered(self, turn: int, error: Exception, now: int) -> list[Effect]:
        """No answer will come. A broken channel is a lost connection; other errors won't heal."""
        if turn != self._turn:
            return []
        if self._waiting:
            self._heard_at = now
        self._asked, self._waiting = None, False
        if isinstance(error, (ConnectionLostError, RequestTimeoutError)):
            self._channel = False
            return self._take(Heard(Input.LOST, error=error), now)
        if self.state in (State.LEAVING, State.PARTING, State.AWAY):
            return self._take(Heard(Input.LEFT), now)
        return self.refused(error, now)

    def done(self, what: Input, partitions: Partitions, now: int) -> list[Effect]:
        """The consumer has given up, or taken, what it was asked to."""
        if what is not Input.ASSIGNED:
            self.owned -= partitions
            self.giving -= partitions
        effects = self._take(Heard(what), now)
        self._settle(now)
        return effects + self._flushed()

    def noticed(self, now: int) -> list[Effect]:
        """The cluster's topics have changed."""
        heard = self._membership.noticed()
        # While the channel is lost, only the coordinator's own word brings the member back.
        if heard is None or (self.state is State.SUSPENDED and heard.assignment is not None):
            return []
        return self._take(heard, now)

    def tick(self, now: int, user_heard: int) -> list[Effect]:
        """Time has passed. `user_heard` is when the user last asked for records."""
        effects: list[Effect] = []
        silence = now - self._heard_at
        if silence > self._settings.session_timeout_ms and (self.state is not State.SEEKING or self.owned):
            before = self.state
            effects += self._take(Heard(Input.EXPIRED), now)
            if self.state is not before:
                self._membership.forget()
        if now - user_heard > self._settings.max_poll_interval_ms:
            effects += self._take(Heard(Input.OVERDUE), now)
        elif user_heard > self._left_at and not self.giving:
            effects += self._take(Heard(Input.HEARD), now)
        if self._may_heartbeat() and now >= self._heartbeat_at:
            effects += self._send_heartbeat(now)
        return effects

    def next_tick(self, user_heard: int) -> int | None:
        """When `tick` is due, in ms; None: when something happens. The user may ask for records in the meantime."""
        due = []
        if self._may_heartbeat():
            due.append(self._heartbeat_at)
        if (self.state, Input.EXPIRED) in TRANSITIONS and (self.state is not State.SEEKING or self.owned):
            due.append(self._heard_at + self._settings.session_timeout_ms + 1)
        if (self.state, Input.OVERDUE) in TRANSITIONS:
            due.append(user_heard + self._settings.max_poll_interval_ms + 1)
        return min(due, default=None)

    # The table ---------------------------------------------------------------------------------------------------

    def _take(self, heard: Heard, now: int) -> list[Effect]:
        self._step(heard, now)
        return self._flushed()

    def _flushed(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _step(self, heard: Heard, now: int) -> None:
        heard = self._classified(heard)
        row = TRANSITIONS.get((self.state, heard.input))
        if row is None:
            return
        actions, self.state = row
        for action in actions:
            self._do[action](heard, now)
        self._settle(now)

    def _settle(self, now: int) -> None:
        settled = self.state in (State.STABLE, State.OUT) or (self.state is State.FAILED and not self.giving)
        if settled and self._deferred:
            later, self._deferred = self._deferred, []
            for heard in later:
                self._step(heard, now)

    def _classified(self, heard: Heard) -> Heard:
        """An assignment that takes something away is to be revoked first; one that changes nothing is no news."""
        if heard.assignment is None:
            return heard
        if self.owned - self.giving - heard.assignment:
            return Heard(Input.REVOKE, heard.assignment)
        if heard.assignment == self.owned and self.state in (State.STABLE, State.SUSPENDED):
            return Heard(Input.KEEP)
        return Heard(Input.ASSIGN, heard.assignment)

    def _patient(self, heard: Heard, now: int) -> Heard:
        """A static member that died holds its name until its session ends; one that lives on holds it for good."""
        if getattr(heard.error, "code", None) != ErrorCode.UNRELEASED_INSTANCE_ID:
            self._unreleased_at = None
            return heard
        if self._unreleased_at is None:
            self._unreleased_at = now
        patient = now - self._unreleased_at <= self._settings.session_timeout_ms
        return heard if patient else Heard(Input.REFUSED, error=heard.error)

    # What the actions are ----------------------------------------------------------------------------------------

    def _seek(self, heard: Heard, now: int) -> None:
        self._new_turn()
        if heard.input is Input.LOST:
            self._membership.unheard()
        self._search += 1
        self._effects.append(Seek(self._search, lost=heard.input is Input.LOST))

    def _new_turn(self) -> None:
        self._turn += 1
        self._asked, self._waiting = None, False

    def _ask(self, call: Call, *, again: bool = False, waits: bool = False, aside: bool = False) -> None:
        self._asked, self._waiting = call, waits
        self._effects.append(Ask(self._turn, call, again, aside))

    def _join(self, heard: Heard, now: int) -> None:
        self._new_turn()
        self._deferred.clear()
        self._ask(self._membership.join(self.owned), waits=True)

    def _learn(self, heard: Heard, now: int) -> None:
        self._effects.append(Learn(self._turn, self._membership.wanted()))

    def _sync(self, heard: Heard, now: int) -> None:
        self._new_turn()
        self._ask(self._membership.sync(), waits=True)

    def _repeat(self, heard: Heard, now: int) -> None:
        call = self._membership.join(self.owned) if self.state is State.JOINING else self._membership.sync()
        self._new_turn()
        self._ask(call, again=True, waits=True)

    def _may_heartbeat(self) -> bool:
        return self.state in HEARTBEATING and self._channel and self._asked is None and self._membership.generation >= 0

    def _send_heartbeat(self, now: int) -> list[Effect]:
        self._heartbeat_at = now + self._membership.heartbeat_interval_ms
        # What the member was given counts as its own, though it will take it later: the coordinator must not believe
        # that it has given back what it may begin to fetch before the answer comes.
        given = (later.assignment for later in self._deferred if later.assignment is not None)
        self._ask(self._membership.heartbeat(self.owned.union(*given)))
        return self._flushed()

    def _heartbeat(self, heard: Heard, now: int) -> None:
        self._heartbeat_at = now

    def _pause(self, heard: Heard, now: int) -> None:
        self._heartbeat_at = now + self._settings.retry_backoff_max_ms

    def _suspend(self, heard: Heard, now: int) -> None:
        if not self._suspended:
            self._suspended = True
            self._effects.append(Suspend())

    def _resume(self, heard: Heard, now: int) -> None:
        if self._suspended:
            self._suspended = False
            self._effects.append(Resume())

    def _revoke(self, heard: Heard, now: int) -> None:
        assert heard.assignment is not None
        self._target = heard.assignment
        self._revoked = True
        self._give(self.owned - self.giving - heard.assignment, Input.REVOKED)

    def _assign(self, heard: Heard, now: int) -> None:
        if heard.assignment is not None:
            self._target = heard.assignment
        target = self._target
        added = target - self.owned
        self.owned |= added
        self._membership.assigned(target)
        self._effects.append(Take(added, target))

    def _yield(self, heard: Heard, now: int) -> None:
        self._give(self.owned - self.giving, Input.YIELDED)

    def _part(self, heard: Heard, now: int) -> None:
        self._give(self.owned - self.giving, Input.PARTED)

    def _drop(self, heard: Heard, now: int) -> None:
        self._deferred.clear()
        self._revoked = False
        self._give(self.owned - self.giving, Input.DROPPED, lost=True)

    def _give(self, partitions: Partitions, done: Input, *, lost: bool = False) -> None:
        self.giving |= partitions
        self._effects.append(Give(partitions, lost, done))

    def _acknowledge(self, heard: Heard, now: int) -> None:
        told = self._membership.acknowledged(revoked=self._revoked)
        if told is Input.TELL:
            self._heartbeat_at = now
        elif told is not None and heard.input is Input.REVOKED:
            self._deferred.append(Heard(told))
        self._revoked = False

    def _defer(self, heard: Heard, now: int) -> None:
        self._deferred = [later for later in self._deferred if later.input is not heard.input]
        if heard.assignment is not None:
            self._deferred = [later for later in self._deferred if later.assignment is None]
        self._deferred.append(heard)

    def _leave(self, heard: Heard, now: int) -> None:
        self._left_at = now
        waiting = self._waiting
        self._new_turn()
        call = self._membership.leave()
        if call is None or self._quiet:
            self._step(Heard(Input.LEFT), now)
        else:
            self._ask(call, aside=waiting)

    def _complain(self, heard: Heard, now: int) -> None:
        assert heard.error is not None
        self._effects.append(Tell(heard.error))

    def _fail(self, heard: Heard, now: int) -> None:
        assert heard.error is not None
        self.error = heard.error
        self._new_turn()
        self._membership.forget()
        self._effects.append(Tell(heard.error))
