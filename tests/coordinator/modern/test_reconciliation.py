from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.reconciliation import reconcile
from kohort.coordinator.modern.states import MemberState
from kohort.streams.tasks import Role
from tests.coordinator.modern.shapes import ACTIVE, CONSUMERS, OWNER, SHARES, STANDBY, STREAMS, WARMUP, Holder

STABLE, UNREVOKED, UNRELEASED = MemberState

Partitions = Mapping[str, Holder]
Tasks = Mapping[str, Role]


def own(items: str) -> dict[str, Holder]:
    return dict.fromkeys(items, OWNER)


def at(
    epoch: int, assigned: str = "", revoking: str = "", state: MemberState = STABLE
) -> CurrentAssignment[str, Holder]:
    assignment_epochs = dict.fromkeys(assigned + revoking, 1)
    return CurrentAssignment(epoch, epoch - 1, state, own(assigned), own(revoking), assignment_epochs)


def consumer(
    current: CurrentAssignment[str, Holder], target: str, epoch: int, owned: str | None = None, taken: str = ""
) -> CurrentAssignment[str, Holder]:
    """The next assignment of a consumer, while others hold what is taken."""
    return reconcile(
        current,
        own(target),
        epoch,
        None if owned is None else own(owned),
        lambda item, role: item not in taken,
        CONSUMERS,
    )


def task(
    current: CurrentAssignment[str, Role],
    target: Tasks,
    epoch: int,
    owned: Tasks | None = None,
    free: Callable[[str, Role], bool] = lambda item, role: True,
) -> CurrentAssignment[str, Role]:
    return reconcile(current, target, epoch, owned, free, STREAMS)


def holding(epoch: int, **assigned: Role) -> CurrentAssignment[str, Role]:
    assignment_epochs = {item: 1 for item, role in assigned.items() if role is ACTIVE}
    return CurrentAssignment(epoch, epoch - 1, STABLE, assigned, {}, assignment_epochs)


# Partitions: consumer groups ------------------------------------------------------------------------------------


def test_at_the_target_nothing_changes() -> None:
    current = at(3, "ab")
    assert consumer(current, "ab", 3) is current


def test_a_new_member_gets_what_is_free() -> None:
    after = consumer(CurrentAssignment(), "ab", 3)
    assert (after.epoch, after.state, after.assigned) == (3, STABLE, own("ab"))


def test_a_new_epoch_that_changes_nothing_for_a_member_is_reached_at_once() -> None:
    after = consumer(at(3, "ab"), "ab", 4)
    assert (after.epoch, after.previous_epoch, after.state, after.assigned) == (4, 3, STABLE, own("ab"))


def test_what_is_taken_away_has_to_be_given_up_first() -> None:
    after = consumer(at(3, "ab"), "ac", 4)
    assert (after.epoch, after.state, after.assigned, after.revoking) == (3, UNREVOKED, own("a"), own("b"))


def test_what_a_member_says_it_does_not_have_it_need_not_give_up() -> None:
    after = consumer(at(3, "ab"), "ac", 4, owned="a")
    assert (after.epoch, after.state, after.assigned, after.revoking) == (4, STABLE, own("ac"), {})


@pytest.mark.parametrize("owned", [None, "ab", "b"])
def test_without_a_word_that_it_is_given_up_a_member_stays(owned: str | None) -> None:
    current = at(3, "a", "b", UNREVOKED)
    assert consumer(current, "ac", 4, owned=owned) is current


@pytest.mark.parametrize("owned", ["", "a"])
def test_what_is_given_up_lets_a_member_go_on(owned: str) -> None:
    after = consumer(at(3, "a", "b", UNREVOKED), "ac", 4, owned=owned)
    assert (after.epoch, after.previous_epoch, after.state, after.assigned) == (4, 3, STABLE, own("ac"))
    assert not after.revoking


def test_more_may_be_taken_away_meanwhile() -> None:
    after = consumer(at(3, "ac", "b", UNREVOKED), "c", 6, owned="ac")
    assert (after.epoch, after.previous_epoch, after.state) == (4, 3, UNREVOKED)
    assert (after.assigned, after.revoking) == (own("c"), own("a"))


def test_what_others_hold_has_to_be_waited_for() -> None:
    after = consumer(at(3, "a"), "abc", 4, taken="b")
    assert (after.epoch, after.state, after.assigned) == (4, UNRELEASED, own("ac"))


def test_what_was_waited_for_comes_when_it_is_free() -> None:
    after = consumer(at(4, "ac", state=UNRELEASED), "abc", 4)
    assert (after.epoch, after.previous_epoch, after.state, after.assigned) == (4, 3, STABLE, own("abc"))


def test_while_others_hold_it_a_member_that_waits_stays_the_same() -> None:
    current = at(4, "ac", state=UNRELEASED)
    assert consumer(current, "abc", 4, taken="b") is current


def test_one_that_waits_may_have_to_give_up_for_a_newer_target() -> None:
    after = consumer(at(4, "ac", state=UNRELEASED), "b", 5)
    assert (after.epoch, after.state, after.revoking) == (4, UNREVOKED, own("ac"))


def test_giving_up_all_ends_with_nothing() -> None:
    after = consumer(at(3, "", "ab", UNREVOKED), "", 4, owned="")
    assert (after.epoch, after.state, after.assigned) == (4, STABLE, {})


def test_since_when_a_member_has_something_is_kept() -> None:
    after = consumer(at(3, "ab"), "abc", 4)
    assert after.assignment_epochs == {"a": 1, "b": 1, "c": 4}


def test_since_when_counts_anew_for_what_comes_back() -> None:
    after = consumer(at(3, "a", "b", UNREVOKED), "ab", 4, owned="a")
    assert after.assignment_epochs == {"a": 1, "b": 4}


# Partitions that nobody has alone: share groups -----------------------------------------------------------------


def test_members_of_a_share_group_wait_for_nobody() -> None:
    after = reconcile(at(3, "ab"), own("bc"), 4, None, lambda item, role: False, SHARES)
    assert (after.epoch, after.previous_epoch, after.state) == (4, 3, STABLE)
    assert (after.assigned, after.revoking, after.assignment_epochs) == (own("bc"), {}, {})


def test_members_of_a_share_group_at_the_target_stay_there() -> None:
    current: CurrentAssignment[str, Holder] = CurrentAssignment(4, 3, STABLE, own("a"))
    assert reconcile(current, own("a"), 4, None, lambda item, role: False, SHARES) is current


# Tasks, and their roles: streams groups -------------------------------------------------------------------------


def test_a_copy_becomes_the_running_task_when_nobody_runs_it() -> None:
    after = task(holding(3, t=STANDBY), {"t": ACTIVE}, 4)
    assert (after.epoch, after.state, after.assigned, after.assignment_epochs) == (4, STABLE, {"t": ACTIVE}, {"t": 4})


@pytest.mark.parametrize("copy", [STANDBY, WARMUP])
def test_a_copy_stays_one_until_the_task_is_free(copy: Role) -> None:
    after = task(holding(3, t=copy), {"t": ACTIVE}, 4, free=lambda item, role: False)
    assert (after.epoch, after.state, after.assigned, after.revoking) == (4, UNRELEASED, {"t": copy}, {})


def test_a_copy_stays_one_while_the_member_has_to_give_up_something_else() -> None:
    after = task(holding(3, t=STANDBY, u=ACTIVE), {"t": ACTIVE}, 4)
    assert (after.epoch, after.state, after.assigned, after.revoking) == (3, UNREVOKED, {"t": STANDBY}, {"u": ACTIVE})


@pytest.mark.parametrize("copy", [STANDBY, WARMUP])
def test_who_runs_a_task_may_keep_a_copy_but_has_to_confirm_that_it_stopped(copy: Role) -> None:
    after = task(holding(3, t=ACTIVE), {"t": copy}, 4)
    assert (after.epoch, after.state, after.assigned, after.revoking) == (3, UNREVOKED, {"t": copy}, {"t": ACTIVE})
    assert task(after, {"t": copy}, 4, owned={"t": ACTIVE}) is after
    done = task(after, {"t": copy}, 4, owned={"t": copy})
    assert (done.epoch, done.state, done.assigned, done.revoking) == (4, STABLE, {"t": copy}, {})


@pytest.mark.parametrize(("before", "after"), [(STANDBY, WARMUP), (WARMUP, STANDBY)])
def test_copies_of_one_kind_become_the_other_without_a_word(before: Role, after: Role) -> None:
    current = task(holding(3, t=before), {"t": after}, 4, free=lambda item, role: False)
    assert (current.epoch, current.state, current.assigned, current.revoking) == (4, STABLE, {"t": after}, {})


def test_copies_have_to_be_given_up_with_a_word() -> None:
    after = task(holding(3, t=STANDBY), {}, 4)
    assert (after.epoch, after.state, after.revoking) == (3, UNREVOKED, {"t": STANDBY})


def test_a_copy_whose_promotion_the_member_has_not_heard_of_has_to_be_given_up_too() -> None:
    after = task(holding(3, t=ACTIVE), {}, 4, owned={"t": WARMUP})
    assert (after.state, after.revoking) == (UNREVOKED, {"t": ACTIVE})
    assert task(after, {}, 4, owned={"t": WARMUP}) is after


def test_a_task_that_stopped_and_starts_again_counts_from_then_on() -> None:
    stopped = task(holding(3, t=ACTIVE), {"t": STANDBY}, 4)
    again = task(stopped, {"t": ACTIVE}, 5, owned={"t": STANDBY})
    assert (again.epoch, again.assigned, again.assignment_epochs) == (5, {"t": ACTIVE}, {"t": 5})


def test_epochs_count_only_for_running_tasks() -> None:
    after = task(CurrentAssignment(), {"t": ACTIVE, "u": STANDBY, "v": WARMUP}, 2)
    assert after.assignment_epochs == {"t": 2}


def test_what_is_held_counts_in_the_role_that_has_to_be_confirmed() -> None:
    current: CurrentAssignment[str, Role] = CurrentAssignment(
        3, 2, UNREVOKED, {"t": STANDBY, "u": STANDBY}, {"t": ACTIVE}
    )
    assert dict(current.held()) == {"t": ACTIVE, "u": STANDBY}
