"""Does the simulation bite? Breaks consumer groups on purpose, and says after how many seeds which invariant notices.

python -m tests.simulation.consumer_groups.breakages
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from kohort.client.membership.consumer_group_protocol import ConsumerGroupProtocol
from kohort.client.membership.member_states import EventType
from kohort.client.membership.state_machine import MemberStateMachine
from kohort.coordinator.assignors import CONSUMER_ASSIGNORS
from kohort.coordinator.consumer import heartbeats, member_identity, records, target_assignment
from kohort.coordinator.consumer import offset_rules as consumer_offset_rules
from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.groups import ConsumerGroups
from kohort.coordinator.consumer.heartbeats import Heartbeats
from kohort.coordinator.consumer.offset_rules import ConsumerOffsetRules
from kohort.coordinator.modern import offset_rules
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.draft import ModernDraft
from kohort.coordinator.modern.group import ModernGroup
from kohort.coordinator.modern.groups import ModernGroups
from kohort.coordinator.modern.ownership import Ownership
from kohort.coordinator.modern.timeouts import MemberTimers
from kohort.coordinator.step import Step
from kohort.protocol.errors import ErrorCode
from tests.simulation.books import InvariantError
from tests.simulation.consumer_groups.scenario import simulate

Breakage = Callable[[], Any]
"""A context in which consumer groups are broken."""
WORLDS: Final = 40
"""How many are tried before a breakage counts as not noticed."""

_RECONCILE = heartbeats.reconcile


# Reconciliation -------------------------------------------------------------------------------------------------------


def revoked_ones_free() -> Any:
    """What has to be revoked counts as free at once."""

    def held(self: CurrentAssignment[Any, Any]) -> Iterator[Any]:
        yield from self.assigned.items()

    return patch.object(CurrentAssignment, "held", held)


def everything_free() -> Any:
    """Nobody waits for a partition that another member has."""
    return patch.object(Ownership, "holders", lambda self, item: {})


def revocations_unconfirmed() -> Any:
    """A member needn't confirm that it revoked something."""
    return patch.object(heartbeats, "RULES", replace(heartbeats.RULES, waits=False))


def owned_ignored() -> Any:
    """Any heartbeat confirms a revocation, whatever the member says that it has."""

    def lenient(current: Any, target: Any, epoch: int, owned: Any, *others: Any, **named: Any) -> Any:
        return _RECONCILE(current, target, epoch, {}, *others, **named)

    return patch.object(heartbeats, "reconcile", lenient)


def never_reconciled() -> Any:
    """Members stay on what they have."""
    return patch.object(heartbeats, "reconcile", lambda current, *others, **named: current)


def subscription_ignored() -> Any:
    """A member keeps partitions of topics that it doesn't subscribe to any longer, until the next target."""

    def everything(draft: Draft, metadata: Any, cluster: Any) -> frozenset[Any]:
        return frozenset(cluster.names)

    return patch.object(target_assignment, "subscribed_ids", everything)


# Targets --------------------------------------------------------------------------------------------------------------


def _assignor(change: Callable[[dict[str, Any]], None]) -> Any:
    def broken(name: str) -> Callable[[Any], Any]:
        assign = CONSUMER_ASSIGNORS[name]

        def run(spec: Any) -> dict[str, Any]:
            targets = {member: set(partitions) for member, partitions in assign(spec).items()}
            change(targets)
            return {member: frozenset(partitions) for member, partitions in targets.items()}

        return run

    return patch.object(target_assignment, "CONSUMER_ASSIGNORS", {name: broken(name) for name in CONSUMER_ASSIGNORS})


def partition_forgotten() -> Any:
    """An assignor leaves a partition out."""

    def change(targets: dict[str, Any]) -> None:
        for partitions in targets.values():
            if len(partitions) > 1:
                partitions.remove(min(partitions))
                return

    return _assignor(change)


def partition_twice() -> Any:
    """An assignor gives a partition to two members."""

    def change(targets: dict[str, Any]) -> None:
        owners = [partitions for partitions in targets.values() if partitions]
        if len(owners) > 1:
            owners[1].add(min(owners[0]))

    return _assignor(change)


def all_to_one() -> Any:
    """An assignor gives everything to one member."""

    def change(targets: dict[str, Any]) -> None:
        everything = set().union(*targets.values())
        for member in targets:
            targets[member] = set()
        targets[min(targets)] = everything

    return _assignor(change)


def topics_unnoticed() -> Any:
    """A group doesn't notice that topics come and grow."""
    return patch.object(ConsumerGroups, "topics_changed", lambda self, names: Step())


def departure_unnoticed() -> Any:
    """The partitions of a member that is gone stay where they were."""

    def remove(self: Heartbeats, draft: Draft, member_id: str, why: str) -> None:
        draft.then(self._timers.stop, draft.group_id, member_id)
        draft.remove_member(member_id)

    return patch.object(Heartbeats, "remove_member", remove)


def regexes_unresolved() -> Any:
    """What regular expressions were resolved to is thrown away."""
    return patch.object(ConsumerGroups, "resolved", lambda self, job, topics: Step())


def never_due() -> Any:
    """After the assignment interval nobody makes the target that is due."""
    return patch.object(ConsumerGroups, "_may_cache", lambda self, draft, result: True)


# Members --------------------------------------------------------------------------------------------------------------


def epochs_unchecked() -> Any:
    """A member may be on any epoch."""
    return patch.object(member_identity, "check_member_epoch", lambda *given: None)


def instances_unchecked() -> Any:
    """A static member that was replaced goes on."""
    return patch.object(heartbeats, "check_known", lambda *given: None)


def static_ones_start_over() -> Any:
    """A static member that is back has nothing, and its former self stays."""
    return patch.object(member_identity, "replaced_member", lambda *given: None)


def lost_answers_not_repeated() -> Any:
    """A member that missed an answer isn't told its assignment again."""
    identified = heartbeats.identified_member

    def never_behind(*given: Any) -> Any:
        return replace(identified(*given), behind=False)

    return patch.object(heartbeats, "identified_member", never_behind)


def sessions_never_end() -> Any:
    """Nobody is fenced for silence, or for keeping what is revoked."""
    return patch.object(MemberTimers, "check", lambda self, timer: None)


def no_rebalance_timeout() -> Any:
    """Nobody is fenced for keeping what is revoked."""
    return patch.object(MemberTimers, "start_rebalance_timeout", lambda *given: None)


def no_timeouts_after_a_restart() -> Any:
    """After a restart, members that are gone stay."""
    return patch.object(ModernGroups, "_start_timeouts", lambda self, group, now: None)


def stale_answers() -> Any:
    """Answers are kept although the group has changed."""
    return patch.object(ModernGroup, "bump_revision", lambda self: None)


# The log --------------------------------------------------------------------------------------------------------------


def _without(method: str) -> Any:
    """A change without its record."""
    original = getattr(ModernDraft, method)

    def silent(self: Any, *given: Any) -> None:
        count = len(self.records)
        original(self, *given)
        del self.records[count:]

    return patch.object(ModernDraft, method, silent)


def member_unwritten() -> Any:
    """A member's metadata isn't in the log."""
    return _without("put_member")


def target_unwritten() -> Any:
    """Targets aren't in the log."""
    return _without("put_target")


def current_unwritten() -> Any:
    """Current assignments aren't in the log."""
    return _without("put_current")


def tombstones_unwritten() -> Any:
    """That a member is gone isn't in the log."""
    return _without("remove_member")


def epoch_unwritten() -> Any:
    """The group's epoch isn't in the log."""
    return _without("bump")


def time_of_assignment_unwritten() -> Any:
    """A restart doesn't know when the target was made; nor does the log say that it was."""
    original = records.assignment_epoch_record
    return patch.object(
        records, "assignment_epoch_record", lambda group_id, epoch, at: original(group_id, epoch - 1, at)
    )


def kept_in_memory() -> Any:
    """A change of metadata is made to the group though the log doesn't have it."""
    original = ModernDraft.put_member

    def early(self: Any, member_id: str, metadata: Any) -> None:
        original(self, member_id, metadata)
        self._modern.epoch += 1

    return patch.object(ModernDraft, "put_member", early)


# Offsets --------------------------------------------------------------------------------------------------------------


def commits_unfenced() -> Any:
    """Anybody may commit."""
    return patch.object(ConsumerOffsetRules, "validate_commit", lambda *given, **named: ErrorCode.NONE)


def old_commits_taken() -> Any:
    """A member may commit on any of its epochs."""
    original = offset_rules.validate_commit

    def lenient(members: Any, member_id: str, epoch: int, *others: Any, **named: Any) -> ErrorCode:
        code = original(members, member_id, epoch, *others, **named)
        return ErrorCode.NONE if code is ErrorCode.STALE_MEMBER_EPOCH else code

    return patch.object(consumer_offset_rules, "validate_commit", lenient)


# The client -----------------------------------------------------------------------------------------------------------


def fenced_and_going_on() -> Any:
    """A client that was fenced keeps its partitions while it joins again."""

    def keep(self: MemberStateMachine, event: Any, now: int) -> None:
        self._deferred.clear()
        self._give_up(frozenset(), EventType.PARTITIONS_LOST, lost=True)

    return patch.object(MemberStateMachine, "_lose", keep)


def revoked_before_it_is() -> Any:
    """A client says that it has given up what it is still giving up."""
    original = ConsumerGroupProtocol.heartbeat

    def early(self: ConsumerGroupProtocol, owned: Iterable[Any]) -> Any:
        return original(self, frozenset(owned) & self._resolved())

    return patch.object(ConsumerGroupProtocol, "heartbeat", early)


def never_acknowledged() -> Any:
    """A client doesn't say that it revoked something until it has something else to say."""
    return patch.object(ConsumerGroupProtocol, "_add_changes", lambda self, request, owned: None)


def nothing_repeated() -> Any:
    """A client that missed an answer doesn't say everything again."""
    return patch.object(ConsumerGroupProtocol, "resend_all", lambda self: None)


BREAKAGES: Final[tuple[Breakage, ...]] = (
    revoked_ones_free,
    everything_free,
    revocations_unconfirmed,
    owned_ignored,
    never_reconciled,
    subscription_ignored,
    partition_forgotten,
    partition_twice,
    all_to_one,
    topics_unnoticed,
    departure_unnoticed,
    regexes_unresolved,
    never_due,
    instances_unchecked,
    sessions_never_end,
    no_rebalance_timeout,
    no_timeouts_after_a_restart,
    stale_answers,
    member_unwritten,
    target_unwritten,
    current_unwritten,
    tombstones_unwritten,
    epoch_unwritten,
    time_of_assignment_unwritten,
    kept_in_memory,
    commits_unfenced,
    fenced_and_going_on,
    revoked_before_it_is,
    never_acknowledged,
    nothing_repeated,
)

UNNOTICED: Final[tuple[Breakage, ...]] = (
    epochs_unchecked,
    old_commits_taken,
    static_ones_start_over,
    lost_answers_not_repeated,
)
"""What no world has noticed yet: another rule stands behind each, or it takes rarer luck than `WORLDS` have."""


def noticed(breakage: Breakage, seeds: int, first: int = 1) -> tuple[int, str] | None:
    """The first seed that notices a breakage, and what it says; None if none of so many does."""
    for seed in range(first, first + seeds):
        try:
            with breakage():
                simulate(seed)
        except InvariantError as error:
            return seed, str(error).splitlines()[0]
    return None


def main() -> int:
    logging.getLogger("kohort").setLevel(logging.CRITICAL)
    found = 0
    for breakage in (*BREAKAGES, *UNNOTICED):
        outcome = noticed(breakage, WORLDS)
        found += outcome is not None
        text = "not noticed" if outcome is None else f"seed {outcome[0]}: {outcome[1][:160]}"
        sys.stdout.write(f"{breakage.__name__:28} {text}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{found} of {len(BREAKAGES) + len(UNNOTICED)} are noticed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
