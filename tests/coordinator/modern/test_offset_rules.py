from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.group import Member
from kohort.coordinator.modern.offset_rules import validate_commit, validate_fetch
from kohort.protocol.errors import ErrorCode
from tests.coordinator.modern.shapes import ACTIVE

NONE, STALE, UNKNOWN = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID

CURRENT: CurrentAssignment[int, Any] = CurrentAssignment(
    7, 6, assigned={0: ACTIVE, 1: ACTIVE}, assignment_epochs={0: 3, 1: 6}
)
MEMBERS: dict[str, Member[Any, Any, Any]] = {"m": Member("m", SimpleNamespace(instance_id=None), CURRENT)}


def commit(
    member: str,
    epoch: int,
    *partitions: int,
    members: dict[str, Member[Any, Any, Any]] = MEMBERS,
    transactional: bool = False,
    version: int = 9,
) -> ErrorCode:
    return validate_commit(
        members,
        member,
        epoch,
        None,
        [("topic", partition) for partition in partitions],
        lambda current, topic, partition: current.assignment_epochs.get(partition),
        transactional=transactional,
        version=version,
    )


@pytest.mark.parametrize(
    ("epoch", "partitions", "code"),
    [
        (7, (0, 1), NONE),
        (7, (9,), NONE),
        (8, (0,), STALE),
        (6, (0, 1), NONE),
        (5, (0,), NONE),
        (5, (1,), STALE),
        (5, (0, 1), STALE),
        (6, (9,), STALE),
        (2, (0,), STALE),
        (-1, (0,), STALE),
    ],
)
def test_a_member_commits_for_what_it_had_then(epoch: int, partitions: tuple[int, ...], code: ErrorCode) -> None:
    assert commit("m", epoch, *partitions) is code


def test_a_stranger_commits_nothing() -> None:
    assert commit("stranger", 7, 0) is UNKNOWN


def test_anybody_may_commit_for_a_group_without_members() -> None:
    assert commit("", -1, 0, members={}) is NONE


def test_nobody_is_a_member_of_a_group_without_members() -> None:
    assert commit("m", 7, 0, members={}) is UNKNOWN


def test_a_transaction_need_not_say_whose_it_is() -> None:
    assert commit("", -1, 0, transactional=True) is NONE


def test_a_transaction_of_a_member_is_checked() -> None:
    assert commit("m", 2, 0, transactional=True) is STALE


def test_versions_without_member_epochs_are_of_no_use_to_members() -> None:
    assert commit("m", 7, 0, version=8) is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [(None, -1, NONE), ("m", 7, NONE), ("m", 6, STALE), ("m", 8, STALE), ("x", 7, UNKNOWN), (None, 7, UNKNOWN)],
)
def test_members_fetch_on_their_epoch_and_others_as_they_like(member: str | None, epoch: int, code: ErrorCode) -> None:
    assert validate_fetch(MEMBERS, member, epoch) is code
