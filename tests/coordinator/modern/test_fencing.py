from __future__ import annotations

import pytest

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.epochs import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kohort.coordinator.modern.fencing import check_member_epoch
from kohort.coordinator.modern.states import MemberState
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.streams.tasks import Role
from tests.coordinator.modern.shapes import ACTIVE, STANDBY, WARMUP

CURRENT: CurrentAssignment[str, Role] = CurrentAssignment(
    5, 4, MemberState.UNREVOKED, {"a": ACTIVE, "s": STANDBY}, {"r": ACTIVE}, {"a": 2, "r": 3}
)


def fenced(received: int, owned: dict[str, Role] | None, current: CurrentAssignment[str, Role] = CURRENT) -> bool:
    try:
        check_member_epoch("streams", current, received, owned, {ACTIVE})
    except KafkaError as error:
        assert error.code is ErrorCode.FENCED_MEMBER_EPOCH
        how = "greater" if received > current.epoch else "smaller"
        assert error.detail == (
            f"The streams group member has a {how} member epoch ({received}) than the one known by the group"
            f" coordinator ({current.epoch}). The member must abandon all its partitions and rejoin."
        )
        return True
    return False


@pytest.mark.parametrize("owned", [None, {}, {"x": ACTIVE}])
def test_a_member_on_its_epoch_may_say_anything(owned: dict[str, Role] | None) -> None:
    assert not fenced(5, owned)


@pytest.mark.parametrize("owned", [None, {}, {"x": ACTIVE}])
def test_who_joins_may_say_anything(owned: dict[str, Role] | None) -> None:
    assert not fenced(JOIN_GROUP_MEMBER_EPOCH, owned)


def test_an_epoch_that_the_member_has_not_reached_is_fenced() -> None:
    assert fenced(6, {})


def test_an_epoch_before_the_previous_one_is_fenced() -> None:
    assert fenced(3, {})


def test_on_the_previous_epoch_a_member_has_to_say_what_it_has() -> None:
    assert fenced(4, None)


@pytest.mark.parametrize(
    "owned",
    [
        {},
        {"a": ACTIVE},
        {"a": ACTIVE, "s": STANDBY},
        {"r": ACTIVE},
        {"s": WARMUP},
        {"a": STANDBY},
    ],
    ids=str,
)
def test_on_the_previous_epoch_a_member_may_have_what_it_was_given(owned: dict[str, Role]) -> None:
    assert not fenced(4, owned)


@pytest.mark.parametrize("owned", [{"x": ACTIVE}, {"x": STANDBY}, {"s": ACTIVE}, {"a": ACTIVE, "x": ACTIVE}], ids=str)
def test_on_the_previous_epoch_a_member_may_not_have_more(owned: dict[str, Role]) -> None:
    assert fenced(4, owned)


def test_a_static_member_that_left_cannot_go_on() -> None:
    assert fenced(5, {}, CurrentAssignment(LEAVE_GROUP_STATIC_MEMBER_EPOCH, 4))
