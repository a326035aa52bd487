from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.ownership import Ownership
from kohort.coordinator.modern.states import MemberState
from kohort.streams.tasks import Role
from tests.coordinator.modern.shapes import ACTIVE, STANDBY


def current(assigned: dict[str, Role], revoking: dict[str, Role] | None = None) -> CurrentAssignment[str, Role]:
    return CurrentAssignment(1, 0, MemberState.STABLE, assigned, revoking or {})


def test_nobody_holds_what_was_never_given() -> None:
    ownership: Ownership[str, Role] = Ownership()
    assert ownership.holders("t") == {} and len(ownership) == 0


def test_holders_are_known_with_their_roles() -> None:
    ownership: Ownership[str, Role] = Ownership()
    ownership.change("m1", None, current({"t": ACTIVE}))
    ownership.change("m2", None, current({"t": STANDBY}))
    assert ownership.holders("t") == {"m1": ACTIVE, "m2": STANDBY}


def test_what_is_being_given_up_is_held_still_in_the_old_role() -> None:
    ownership: Ownership[str, Role] = Ownership()
    ownership.change("m", None, current({"t": STANDBY, "u": ACTIVE}, {"t": ACTIVE, "v": ACTIVE}))
    assert [ownership.holders(item) for item in "tuv"] == [{"m": ACTIVE}, {"m": ACTIVE}, {"m": ACTIVE}]


def test_what_nobody_holds_leaves_no_trace() -> None:
    ownership: Ownership[str, Role] = Ownership()
    first = current({"t": ACTIVE})
    ownership.change("m", None, first)
    ownership.change("m", first, None)
    assert len(ownership) == 0


HOLDINGS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(Role))


@given(st.lists(st.tuples(st.sampled_from(["m1", "m2"]), HOLDINGS, HOLDINGS)))
def test_changes_one_by_one_come_to_the_same_as_the_whole(
    changes: list[tuple[str, dict[str, Role], dict[str, Role]]],
) -> None:
    ownership: Ownership[str, Role] = Ownership()
    members: dict[str, CurrentAssignment[str, Role]] = {}
    for member, assigned, revoking in changes:
        after = current(assigned, revoking)
        ownership.change(member, members.get(member), after)
        members[member] = after
    for item in "abcd":
        held = {member: dict(each.held())[item] for member, each in members.items() if item in dict(each.held())}
        assert ownership.holders(item) == held
