from __future__ import annotations

from kohort.protocol.errors import ErrorCode
from tests.coordinator.classic.driver import REBALANCE, SESSION, Driver

LONG = 10 * REBALANCE


def static_group(count: int = 2, **options: object) -> tuple[Driver, list[str]]:
    """A stable group of static members named "0", "1" …, of which the first leads."""
    driver = Driver()
    joins = [driver.join(instance=str(number), **options) for number in range(count)]  # type: ignore[arg-type]
    driver.sleep(6_000)
    members = [join.response.member_id for join in joins]
    driver.settle(members, 1)
    return driver, members


def test_a_static_member_joins_without_asking_for_an_id() -> None:
    _, members = static_group()
    assert members == ["0-1", "1-2"]


def test_a_follower_comes_back_without_a_rebalance_to_its_old_assignment() -> None:
    driver, (leader, old) = static_group()
    back = driver.join(instance="1")
    new = back.response.member_id
    assert (back.error, back.response.generation_id, back.response.leader) == (ErrorCode.NONE, 1, leader)
    assert new != old and driver.state() == "Stable" and driver.members() == [leader, new]
    assert driver.sync(new, 1, instance="1").response.assignment == old.encode()


def test_the_former_self_is_fenced_in_everything_it_does() -> None:
    driver, (_, old) = static_group()
    driver.join(instance="1")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert driver.heartbeat(old, 1, instance="1") is fenced
    assert driver.sync(old, 1, instance="1").error is fenced
    assert driver.join(old, instance="1").error is fenced
    assert driver.leave((old, "1")) == [fenced]


def test_a_former_self_that_does_not_name_its_instance_is_unknown() -> None:
    driver, (_, old) = static_group()
    driver.join(instance="1")
    assert driver.heartbeat(old, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_that_nobody_has_is_unknown() -> None:
    driver, (_, member) = static_group()
    assert driver.heartbeat(member, 1, instance="2") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_comes_back_leads_and_skips_the_assignment() -> None:
    driver, (_, follower) = static_group()
    back = driver.join(instance="0")
    new = back.response.member_id
    assert (back.response.leader, back.response.skip_assignment) == (new, True)
    assert [member.member_id for member in back.response.members] == [new, follower]
    assert driver.sync(new, 1, instance="0").response.assignment == b"0-1"
    assert driver.state() == "Stable"


def test_a_leader_that_cannot_be_told_to_skip_believes_that_another_leads() -> None:
    driver, (old, _) = static_group()
    back = driver.join(instance="0", version=8)
    assert (back.response.leader, back.response.members) == (old, [])
    group = driver.shard.classic.get("group")
    assert group is not None and group.leader == back.response.member_id


def test_a_return_is_in_the_log() -> None:
    driver, (leader, _) = static_group()
    new = driver.join(instance="1").response.member_id
    described = driver.replayed().describe_group("group", 6)
    assert [member.member_id for member in described.members] == [leader, new]


def test_a_return_that_cannot_be_stored_changes_nothing() -> None:
    driver, (leader, old) = static_group()
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    back = driver.join(instance="1")
    assert back.error is ErrorCode.COORDINATOR_NOT_AVAILABLE and back.response.member_id == ""
    assert driver.members() == [leader, old] and driver.heartbeat(old, 1, instance="1") is ErrorCode.NONE
    assert driver.shard.classic.rebalancer.heartbeats.delayed == 2


def test_a_return_starts_a_new_session() -> None:
    driver, (leader, _) = static_group()
    driver.sleep(SESSION - 1)
    driver.heartbeat(leader, 1)
    new = driver.join(instance="1").response.member_id
    driver.sleep(SESSION - 1)
    assert new in driver.members()
    driver.sleep(1)
    assert new not in driver.members()


def test_a_return_with_another_choice_of_protocol_rebalances() -> None:
    driver, (_, old) = static_group(protocols=[("a", b""), ("b", b"")])
    back = driver.join(instance="1", protocols=[("b", b"")])
    assert not back.answered and driver.state() == "PreparingRebalance"
    assert old not in driver.members()


def test_a_return_while_members_sync_rebalances() -> None:
    driver = Driver()
    for number in range(2):
        driver.join(instance=str(number))
    driver.sleep(6_000)
    back = driver.join(instance="1")
    assert not back.answered and driver.state() == "PreparingRebalance"


def test_a_return_while_members_join_fences_the_join_that_waits() -> None:
    driver, (leader, old, _) = static_group(3)
    driver.join(leader, instance="0")
    waits = driver.join(old, instance="1")
    driver.join(instance="1")
    assert (waits.error, waits.response.member_id) == (ErrorCode.FENCED_INSTANCE_ID, old)
    assert old not in driver.members() and driver.state() == "PreparingRebalance"


def test_a_return_while_members_sync_fences_the_sync_that_waits() -> None:
    driver = Driver()
    joins = [driver.join(instance=str(number)) for number in range(2)]
    driver.sleep(6_000)
    waits = driver.sync(joins[1].response.member_id, 1, instance="1")
    driver.join(instance="1")
    assert waits.error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_away_keeps_its_place_over_rebalances() -> None:
    driver, (leader, away) = static_group(session=LONG)
    join = driver.join(leader, instance="0", session=LONG)
    driver.sleep(REBALANCE)
    assert join.response.generation_id == 2
    assert {member.member_id for member in join.response.members} == {leader, away}


def test_a_static_member_away_is_removed_at_its_session_timeout_whatever_happens_meanwhile() -> None:
    driver, (leader, away) = static_group(session=30_000, rebalance=4_000)
    for generation in range(2, 10):
        assert driver.members() == [leader, away]
        protocols = [("range", str(generation).encode())]
        join = driver.join(leader, instance="0", session=30_000, rebalance=4_000, protocols=protocols)
        driver.sleep(4_000)
        assert join.response.generation_id == generation
    assert driver.members() == [leader]


def test_when_all_static_members_are_away_the_rebalance_waits_for_one() -> None:
    driver, (first, second) = static_group(session=LONG)
    joined = driver.join(first, instance="0", session=LONG)
    back = driver.join(instance="0", session=LONG)
    assert joined.error is ErrorCode.FENCED_INSTANCE_ID
    driver.leave((back.response.member_id if back.answered else "", "0"))
    driver.sleep(3 * REBALANCE)
    assert driver.state() == "PreparingRebalance" and driver.members() == [second]
    assert driver.join(second, instance="1", session=LONG).response.leader == second


def test_a_static_member_comes_back_to_a_full_group() -> None:
    driver = Driver(group_max_size=2)
    joins = [driver.join(instance=str(number)) for number in range(2)]
    driver.sleep(6_000)
    driver.settle([join.response.member_id for join in joins], 1)
    assert driver.join(instance="1").error is ErrorCode.NONE
    assert driver.join(instance="2").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_administrator_removes_a_static_member_by_instance() -> None:
    driver, (leader, _) = static_group()
    assert driver.leave(("", "1"), ("", "9")) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.members() == [leader]


def test_members_that_are_all_away_are_waited_for_even_if_they_want_no_time() -> None:
    driver, (leader, follower) = static_group()
    dynamic, join = driver.enter(rebalance=0)
    driver.join(leader, instance="0", rebalance=0)
    driver.join(follower, instance="1", rebalance=0)
    assert join.response.generation_id == 2
    driver.settle([leader, follower, dynamic], 2)
    driver.leave((dynamic, None))
    driver.sleep(SESSION - 1)
    assert driver.state() == "PreparingRebalance" and driver.members() == [leader, follower]
    driver.sleep(REBALANCE)
    assert driver.state() == "Empty"


def test_a_member_that_comes_back_before_it_has_synced_is_not_missed() -> None:
    driver = Driver()
    joins = [driver.join(instance=str(number)) for number in range(2)]
    driver.sleep(6_000)
    leader, old = [join.response.member_id for join in joins]
    driver.sync(leader, 1, {leader: b"a", old: b"b"}, instance="0")
    new = driver.join(instance="1").response.member_id
    for _ in range(2 * REBALANCE // SESSION):
        driver.sleep(SESSION - 1)
        assert driver.heartbeat(leader, 1) is driver.heartbeat(new, 1) is ErrorCode.NONE
    assert driver.state() == "Stable"


def test_the_longest_instance_id_makes_a_member_id_that_can_be_stored() -> None:
    driver = Driver()
    join = driver.join(instance="i" * 32_767)
    driver.sleep(3_000)
    member = join.response.member_id
    assert driver.sync(member, 1, {member: b"a"}).response.assignment == b"a"
