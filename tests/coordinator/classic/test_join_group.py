from __future__ import annotations

import logging

import pytest

from kohort.protocol.errors import ErrorCode
from tests.coordinator.classic.driver import REBALANCE, SESSION, Driver

DELAY = 3_000


def test_a_new_client_gets_an_id_first_and_joins_with_it() -> None:
    driver = Driver()
    asked = driver.join()
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED and asked.response.member_id == "client-1"
    join = driver.join(asked.response.member_id)
    driver.sleep(DELAY)
    assert join.error is ErrorCode.NONE and join.response.member_id == "client-1"


def test_a_client_older_than_kip_394_joins_at_once() -> None:
    driver = Driver()
    join = driver.join(version=3)
    driver.sleep(DELAY)
    assert join.error is ErrorCode.NONE and join.response.member_id == "client-1"


def test_a_pending_id_is_void_after_the_session_timeout() -> None:
    driver = Driver()
    asked = driver.join()
    driver.sleep(SESSION)
    assert driver.join(asked.response.member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_generation_has_number_one_and_its_leader_sees_all() -> None:
    driver = Driver()
    entered = [driver.enter() for _ in range(3)]
    driver.sleep(2 * DELAY)
    responses = [join.response for _, join in entered]
    assert {response.generation_id for response in responses} == {1}
    assert {response.leader for response in responses} == {entered[0][0]}
    assert [len(response.members) for response in responses] == [3, 0, 0]


def test_the_first_member_waits_out_the_initial_delay() -> None:
    driver = Driver()
    _, join = driver.enter()
    driver.sleep(DELAY - 1)
    assert not join.answered
    driver.sleep(1)
    assert join.answered


def test_newcomers_extend_the_initial_delay_up_to_the_rebalance_timeout() -> None:
    driver = Driver()
    joins = [driver.enter(rebalance=10_000)[1]]
    for _ in range(9):
        driver.sleep(1_000)
        joins.append(driver.enter(rebalance=10_000)[1])
    assert not any(join.answered for join in joins)
    driver.sleep(999)
    assert not any(join.answered for join in joins)
    driver.sleep(1)
    assert all(join.answered for join in joins)


def test_without_newcomers_the_initial_delay_is_not_extended() -> None:
    driver = Driver()
    _, first = driver.enter()
    driver.sleep(1_000)
    _, second = driver.enter()
    driver.sleep(2 * DELAY - 1_001)
    assert not first.answered
    driver.sleep(1)
    assert first.answered and second.answered


def test_with_no_initial_delay_the_group_forms_at_once() -> None:
    driver = Driver(group_initial_rebalance_delay_ms=0)
    _, join = driver.enter()
    driver.sleep(0)
    assert join.response.generation_id == 1


def test_a_new_member_of_a_stable_group_waits_for_the_others() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    third, join = driver.enter()
    driver.join(first)
    assert not join.answered
    driver.join(second)
    assert join.response.generation_id == 2
    assert driver.members() == [first, second, third]


def test_a_pending_id_holds_up_the_rebalance() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.join()
    join = driver.join(member)
    assert not join.answered
    driver.sleep(SESSION)
    assert join.response.generation_id == 2


def test_members_that_do_not_rejoin_are_left_behind_at_the_rebalance_timeout() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    join = driver.join(first)
    for _ in range(REBALANCE // 5_000 - 1):
        driver.sleep(5_000)
        assert driver.heartbeat(second, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.sleep(4_999)
    assert not join.answered
    driver.sleep(1)
    assert join.response.generation_id == 2
    assert driver.members() == [first]
    assert driver.heartbeat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_version_0_waits_for_the_session_timeout() -> None:
    driver = Driver()
    join = driver.join(version=0, rebalance=-1)
    driver.sleep(DELAY)
    member = join.response.member_id
    driver.settle([member], 1)
    group = driver.shard.classic.get("group")
    assert group is not None and group.rebalance_timeout_ms == SESSION


def test_a_leader_left_behind_is_replaced() -> None:
    driver = Driver()
    leader, other = driver.stable_group(2)
    driver.join(other, protocols=[("range", b"changed")])
    driver.sleep(SESSION)
    join = driver.join(other)
    assert join.response.leader == other and len(join.response.members) == 1
    assert leader not in driver.members()


def test_a_leaders_join_rebalances_a_stable_group() -> None:
    driver = Driver()
    leader, _ = driver.stable_group(2)
    assert not driver.join(leader).answered
    assert driver.state() == "PreparingRebalance"


def test_a_followers_unchanged_join_gets_the_generation_that_is() -> None:
    driver = Driver()
    leader, follower = driver.stable_group(2)
    join = driver.join(follower)
    assert (join.response.generation_id, join.response.leader, join.response.members) == (1, leader, [])
    assert driver.state() == "Stable"


def test_a_followers_change_rebalances() -> None:
    driver = Driver()
    _, follower = driver.stable_group(2)
    driver.join(follower, protocols=[("range", b"other topics")])
    assert driver.state() == "PreparingRebalance"


def test_a_lost_join_response_is_given_again() -> None:
    driver = Driver()
    member, join = driver.enter()
    driver.sleep(DELAY)
    again = driver.join(member)
    assert again.response == join.response and driver.state() == "CompletingRebalance"


def test_a_change_while_members_sync_makes_them_join_again() -> None:
    driver = Driver()
    first, second = (driver.enter()[0] for _ in range(2))
    driver.sleep(2 * DELAY)
    waits = driver.sync(second, 1)
    driver.join(first, protocols=[("range", b"changed")])
    assert waits.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.state() == "PreparingRebalance"


def test_a_join_sent_twice_is_answered_twice_once_each() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    early = driver.join(first)
    late = driver.join(first)
    assert early.error is ErrorCode.REBALANCE_IN_PROGRESS and early.response.member_id == first
    driver.join(second)
    assert late.response.generation_id == 2


def test_a_first_join_that_waits_too_long_is_given_up() -> None:
    driver = Driver()
    join = driver.join(version=3, rebalance=1_800_000)
    for _ in range(200):
        driver.sleep(2_000)  # newcomers delay the first generation
        if join.answered:
            break
        driver.join(version=3, rebalance=1_800_000)
    assert join.error is ErrorCode.UNKNOWN_MEMBER_ID and join.response.member_id == ""


def test_the_protocol_that_most_prefer_among_those_all_know_is_chosen() -> None:
    driver = Driver()
    preferences = [("a", "b", "c"), ("b", "a", "d"), ("b", "a")]
    joins = [driver.enter(protocols=[(name, name.encode()) for name in names])[1] for names in preferences]
    driver.sleep(2 * DELAY)
    assert joins[0].response.protocol_name == "b"
    assert [member.metadata for member in joins[0].response.members] == [b"b", b"b", b"b"]


@pytest.mark.parametrize(
    ("protocol_type", "names"),
    [("connect", ["range"]), ("consumer", ["unheard-of"]), ("consumer", []), ("", ["range"])],
)
def test_a_member_that_shares_no_protocol_is_refused(protocol_type: str, names: list[str]) -> None:
    driver = Driver()
    driver.stable_group(1)
    join = driver.join(protocol_type=protocol_type, protocols=[(name, b"") for name in names])
    assert join.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_of_a_client_that_is_refused_a_line_in_ten_seconds_says_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    driver = Driver()
    driver.stable_group(1)
    for _ in range(3):
        driver.join(protocols=[("cooperative-sticky", b"")])
    driver.now += 10_000
    driver.join(protocol_type="connect")
    reasons = [line for line in caplog.messages if line.startswith("join refused")]
    assert reasons == [
        "join refused group=group client=client reason=has cooperative-sticky, the members have range",
        "join refused group=group client=client reason=is of type connect, the members are of type consumer",
    ]


def test_a_refused_first_member_leaves_no_group_behind() -> None:
    driver = Driver()
    assert driver.join(protocols=[]).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.shard.list_groups() == []


def test_an_empty_group_takes_another_protocol_type() -> None:
    driver = Driver()
    driver.stable_group(1)
    driver.sleep(SESSION)
    _, join = driver.enter(protocol_type="connect", protocols=[("eager", b"")])
    driver.sleep(DELAY)
    assert (join.response.protocol_type, join.response.generation_id) == ("connect", 3)


@pytest.mark.parametrize("session", [5_999, 1_800_001, -1])
def test_a_session_timeout_out_of_bounds_is_refused(session: int) -> None:
    assert Driver().join(session=session).error is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session", [6_000, 1_800_000])
def test_session_timeouts_include_the_bounds(session: int) -> None:
    assert Driver().join(session=session).error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_group_has_to_have_an_id() -> None:
    join = Driver().join("member", group="")
    assert join.error is ErrorCode.INVALID_GROUP_ID and join.response.member_id == "member"


def test_an_unknown_member_of_an_unknown_group() -> None:
    assert Driver().join("member").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_member_of_a_stable_group() -> None:
    driver = Driver()
    driver.stable_group(1)
    assert driver.join("member").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.state() == "Stable"


def test_a_full_group_takes_nobody() -> None:
    driver = Driver(group_max_size=2)
    first, _ = driver.stable_group(2)
    join = driver.join()
    assert join.error is ErrorCode.GROUP_MAX_SIZE_REACHED and join.response.member_id == ""
    assert driver.heartbeat(first, 1) is ErrorCode.NONE


def test_while_joining_the_first_to_come_have_their_place() -> None:
    driver = Driver(group_max_size=2)
    calls = [driver.join(version=3) for _ in range(3)]
    assert calls[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    driver.sleep(2 * DELAY)
    assert [call.error for call in calls[:2]] == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_member_that_has_lost_its_place_to_another_is_turned_away() -> None:
    driver = Driver(group_max_size=2)
    first, second = driver.stable_group(2)
    driver.join(first)
    newcomer = driver.join(version=3)
    late = driver.join(second)
    assert late.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert newcomer.error is ErrorCode.NONE


def test_older_versions_get_an_empty_protocol_with_an_error_and_newer_ones_none() -> None:
    assert Driver().join("member", version=6).response.protocol_name == ""
    assert Driver().join("member", version=7).response.protocol_name is None


def test_protocols_that_nobody_names_any_more_leave_no_trace() -> None:
    driver = Driver()
    member, _ = driver.enter()
    for number in range(100):
        driver.join(member, protocols=[("range", b""), (f"other-{number}", b"")])
    group = driver.shard.classic.get("group")
    assert group is not None and group._support.keys() == {"range", "other-99"}
