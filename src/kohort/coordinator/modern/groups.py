"""The groups of a shard of one modern kind: heartbeats, timeouts, listing, deletion, and the log."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from kohort.coordinator.modern.cached_results import CachedResult
from kohort.coordinator.modern.draft import ModernDraft
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH
from kohort.coordinator.modern.group import ModernGroup
from kohort.coordinator.modern.states import MemberState
from kohort.coordinator.modern.timeouts import MemberTimer, MemberTimers
from kohort.coordinator.refusals import LONGEST, Refusals
from kohort.coordinator.step import Answer, Client, Record, Reply, Step
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.messages.list_groups import ListGroupsResponse

log = logging.getLogger(__name__)


class Heartbeat(Protocol):
    """What all heartbeat requests of modern groups have."""

    @property
    def group_id(self) -> str: ...

    @property
    def member_id(self) -> str: ...

    @property
    def member_epoch(self) -> int: ...


G = TypeVar("G", bound=ModernGroup[Any, Any, Any, Any])
D = TypeVar("D", bound=ModernDraft[Any, Any, Any, Any])
Q = TypeVar("Q", bound=Heartbeat)
S = TypeVar("S")


class ModernGroups(ABC, Generic[G, D, Q, S]):
    """Groups of one kind, by id.

    Args:
        pending_steps: gets the steps that timers cause.
        convert: returns the records that remove an empty group of another kind, so that a group of this kind can have
            its id; None if that group isn't empty.

    Attributes:
        kind: the type of these groups as ListGroups has it, such as "streams".
        protocol_type: their protocol type as ListGroups has it.
    """

    kind: ClassVar[str]
    protocol_type: ClassVar[str]

    def __init__(
        self, wheel: TimingWheel, pending_steps: list[Step], convert: Callable[[str], list[Record] | None]
    ) -> None:
        self._wheel: Final = wheel
        self._pending: Final = pending_steps
        self._convert: Final = convert
        self._timed: dict[str, D] = {}
        self._groups: dict[str, G] = {}
        self._timers: Final = MemberTimers(wheel, self._on_timeout)
        self._refusals: Final = Refusals()

    # What differs between kinds -----------------------------------------------------------------------------------

    @abstractmethod
    def _new_group(self, group_id: str) -> G: ...

    @abstractmethod
    def _draft(self, group: G) -> D:
        """Returns a draft without changes."""

    @abstractmethod
    def _check(self, request: Q, client: Client) -> None:
        """Raises KafkaError for a heartbeat that is wrong whatever the group."""

    @abstractmethod
    def _join_or_stay(self, draft: D, request: Q, client: Client, now: int) -> Any:
        """Handles the heartbeat of a member that joins or stays, and returns its result.

        Raises:
            KafkaError: the member is refused.
        """

    @abstractmethod
    def _leave(self, draft: D, request: Q, now: int) -> Any:
        """Handles the heartbeat of a member that leaves, and returns its result.

        Raises:
            KafkaError: the member is refused.
        """

    @abstractmethod
    def _refused(self, error: KafkaError) -> Any:
        """The result of a heartbeat that is refused."""

    @abstractmethod
    def _remove_member(self, draft: D, member_id: str, why: str, now: int) -> None:
        """Removes a member that timed out."""

    @abstractmethod
    def _replay(self, group: G, key: Any, value: Data | None) -> bool:
        """Applies a record to a group; returns whether it removes the group."""

    @abstractmethod
    def _tombstones(self, group: G) -> list[Record]:
        """The records that remove a group without members."""

    @abstractmethod
    def _session_timeout_ms(self, group_id: str) -> int: ...

    def _take_over(self, group_id: str) -> D:
        """Returns a draft that makes a group of another kind, which has members, one of this kind.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, if it stays what it is.
        """
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {self.kind} group.")

    def _may_cache(self, draft: D, result: Any) -> bool:
        """Whether a heartbeat that says the same, of a group in which nothing changes, has the same result."""
        del draft, result
        return True

    def _before_apply(self, draft: D, group: G) -> None:
        """Called when a draft's records have been replayed, before its other changes are applied."""

    def _loaded(self, group: G, now: int) -> None:
        """Called for each group when the log was replayed."""

    def _stopped(self, group: G) -> None:
        """Called when a group is removed; stops its timers."""

    # Access -----------------------------------------------------------------------------------------------------

    def get(self, group_id: str) -> G | None:
        return self._groups.get(group_id)

    def group_ids(self) -> Collection[str]:
        return self._groups.keys()

    def count_by_state(self) -> Counter[Any]:
        return Counter(group.state for group in self._groups.values())

    # Members ----------------------------------------------------------------------------------------------------

    def heartbeat(self, request: Q, client: Client, now: int, reply: Reply) -> Step:
        """A member joins, stays or leaves; answers with the result, errors included."""
        group = self._groups.get(request.group_id)
        cached = None if group is None else group.cached_results.get(request.member_id)
        if cached is not None and cached.answers(request, client):  # as is the case with almost all heartbeats
            cached.timer.last_heartbeat = now
            return Step(answers=[Answer(reply, cached.result)])
        try:
            self._check(request, client)
            return self._heartbeat(request, client, now, reply)
        except KafkaError as error:
            # A client that joins may have another member id each time; of members, each one counts.
            who = client.client_id if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH else request.member_id
            if self._refusals.is_news(now, request.group_id, who, error.code.name):
                named = request.group_id[:LONGEST], request.member_id[:LONGEST], request.member_epoch
                log.info(
                    "heartbeat refused group=%r member=%r epoch=%d error=%s because=%s",
                    *named, error.code.name, (error.detail or "")[:LONGEST],
                )  # fmt: skip
            return Step(answers=[Answer(reply, self._refused(error))])

    def _heartbeat(self, request: Q, client: Client, now: int, reply: Reply) -> Step:
        group = self._groups.get(request.group_id)
        leaves = request.member_epoch < JOIN_GROUP_MEMBER_EPOCH
        room: list[Record] | None = []
        draft = None
        if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH:
            room = self._convert(request.group_id)
            if room is None:
                draft = self._take_over(request.group_id)
            group = group or self._new_group(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no {self.kind} group {request.group_id}.")
        if draft is None:
            draft = self._draft(group)
        result = self._leave(draft, request, now) if leaves else self._join_or_stay(draft, request, client, now)
        step = self._step(draft, [Answer(reply, result)], reply, room or ())
        if not leaves and self._may_cache(draft, result):
            step.apply = partial(self._apply_and_cache, draft, request, client, result)
        return step

    def _apply_and_cache(self, draft: D, request: Q, client: Client, result: Any) -> None:
        """Applies the draft of a heartbeat, and caches its result if the heartbeat changed nothing."""
        group_id, member_id = draft.group_id, request.member_id
        self._apply(draft)
        group = self._groups[group_id]
        if group.revision == draft.revision and (timer := self._timers.get(group_id, member_id)) is not None:
            group.cached_results[member_id] = CachedResult(request, client, result, timer)

    # What happens elsewhere, and timeouts -----------------------------------------------------------------------

    def _on_timeout(self, timer: MemberTimer, why: str) -> bool:
        """Fences a member whose session timeout or rebalance timeout has expired; returns whether it does."""
        group = self._groups[timer.group_id]
        if timer.rebalance_deadline is not None and timer.last_heartbeat + timer.session_timeout_ms > self._wheel.now:
            current = group.members[timer.member_id].current
            if current.state is not MemberState.UNREVOKED or current.epoch != timer.rebalance_epoch:
                return False
        self._remove_member(self._timed_draft(group), timer.member_id, why, self._wheel.now)
        return True

    def _happened(self, group: G, change: Callable[[S], S]) -> None:
        """Changes soft state because of what has happened: it has, whether or not records can be appended.

        A draft that timers have begun in this turn knows of it, too.
        """
        group.soft = change(group.soft)
        group.bump_revision()
        if draft := self._timed.get(group.group_id):
            draft.soft = change(draft.soft)

    # Steps ------------------------------------------------------------------------------------------------------

    def _now(self, group: G) -> int:
        """About the time, in ms since 1970, for what isn't a request: a wheel in which no timer is due stands still."""
        return max(self._wheel.now, group.assigned_at)

    def _timed_draft(self, group: G) -> D:
        """Returns the draft for changes by a timer; timers that run in the same turn share one step."""
        draft = self._timed.get(group.group_id)
        if draft is None:
            draft = self._timed[group.group_id] = self._draft(group)
            self._pending.append(self._step(draft))
        return draft

    def _step(
        self, draft: D, answers: Iterable[Answer] = (), reply: Reply | None = None, before: Collection[Record] = ()
    ) -> Step:
        records = [*before, *draft.records] if before else draft.records  # timers add records to a draft in its step
        return Step(
            records, [*draft.answers, *answers], partial(self._failed, draft, reply), apply=partial(self._apply, draft)
        )

    def _apply(self, draft: D) -> None:
        self._timed.pop(draft.group_id, None)
        group = self._groups.get(draft.group_id)
        if group is not None:
            self._before_apply(draft, group)
            draft.apply(group)
        elif draft.converted is not None:
            draft.converted()

    def _failed(self, draft: D, reply: Reply | None, code: ErrorCode) -> Step:
        """Records couldn't be appended, so nothing has changed; or not be synced, so the log is offline."""
        self._timed.pop(draft.group_id, None)
        log.error("records could not be stored group=%s error=%s", draft.group_id, code.name)
        if reply is None:
            return Step()
        return Step(answers=[Answer(reply, self._refused(KafkaError(code)))])

    # Administrators ---------------------------------------------------------------------------------------------

    def listed(self, states: Iterable[str] = ()) -> list[ListGroupsResponse.Group]:
        """Returns the groups in one of these states, such as "NotReady" or "not_ready"; without states, all groups."""
        wanted = {state.strip().lower().replace("_", "") for state in states}
        return [
            ListGroupsResponse.Group(
                group_id=group.group_id,
                protocol_type=self.protocol_type,
                group_state=group.state.value,
                group_type=self.kind,
            )
            for group in self._groups.values()
            if not wanted or group.state.value.lower() in wanted
        ]

    def check_delete(self, group_id: str) -> ErrorCode:
        """Returns NONE if a group may be deleted, or why not."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if group.members else ErrorCode.NONE

    def maybe_delete_empty(self, group_id: str) -> list[Record] | None:
        """Returns the records that remove a group if it is empty, so that another type can have its id; None if not."""
        group = self._groups.get(group_id)
        if group is None:
            return []
        return None if group.members else self.delete(group_id)

    def delete(self, group_id: str) -> list[Record]:
        """Returns the records that remove a group without members; not its offsets."""
        log.info("group deleted group=%s", group_id)
        return self._tombstones(self._groups[group_id])

    # The log ----------------------------------------------------------------------------------------------------

    def replay(self, key: Data, value: Data | None) -> None:
        """Applies a record of a group."""
        untyped: Any = key
        group = self._groups.get(untyped.group_id)
        if group is None:
            if value is None:
                return
            group = self._groups[untyped.group_id] = self._new_group(untyped.group_id)
        removes = self._replay(group, key, value)
        group.bump_revision()
        if removes:
            self._remove(group)

    def loaded(self, now: int) -> None:
        """The log was replayed: session timeouts start now."""
        for group in self._groups.values():
            self._start_timeouts(group, now)
            self._loaded(group, now)

    def _start_timeouts(self, group: G, now: int) -> None:
        session_timeout_ms = self._session_timeout_ms(group.group_id)
        for member_id, member in group.members.items():
            self._timers.reset_session_timeout(group.group_id, member_id, now, session_timeout_ms)
            epoch, unrevoked = member.current.epoch, member.current.state is MemberState.UNREVOKED
            if unrevoked and (timeout := member.metadata.rebalance_timeout_ms) > 0:
                self._timers.start_rebalance_timeout(group.group_id, member_id, epoch, now + timeout)

    def unload(self) -> None:
        """Forgets all groups."""
        for group in list(self._groups.values()):
            self._remove(group)

    def _remove(self, group: G) -> None:
        self._groups.pop(group.group_id, None)
        self._stopped(group)
        for member_id in group.members:
            self._timers.stop(group.group_id, member_id)
