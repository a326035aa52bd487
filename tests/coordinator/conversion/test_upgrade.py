from __future__ import annotations

from collections.abc import Iterator

import pytest

from kohort.client.membership.consumer_protocol import encode_assignment
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.protocol.errors import ErrorCode
from tests.coordinator.conversion.driver import GROUP, Driver, assert_replayed, parts, snapshot, told


@pytest.fixture
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    assert_replayed(driver)


def test_a_member_of_the_consumer_protocol_makes_a_classic_group_a_consumer_group(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5))
    generation = 1
    joined = driver.beat("new")
    assert driver.kind() == "consumer"
    assert (joined.error_code, joined.member_epoch, told(joined)) == (ErrorCode.NONE, generation + 1, frozenset())
    assert driver.held() == {first: parts("a", 0, 1, 2), second: parts("a", 3, 4, 5), "new": frozenset()}
    # The classic group goes; members, epoch, targets, their epoch and current assignments, in Kafka's order.
    assert driver.records[:8] == ["2-", "5", "5", "3", "7", "7", "6", "8"]


def test_classic_members_go_on_and_give_up_what_the_new_one_gets(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5))
    generation = 1
    epoch = driver.beat("new").member_epoch
    held = {first: parts("a", 0, 1, 2), second: parts("a", 3, 4, 5)}
    for member in (first, second):
        assert driver.heartbeat(member, generation) is ErrorCode.REBALANCE_IN_PROGRESS
        joined = driver.rejoin(member, owned=held[member])
        assert (joined.error, joined.response.generation_id) == (ErrorCode.NONE, generation)
        assert (joined.response.leader, joined.response.members) == ("", [])
        kept = driver.assigned(member, generation)
        assert len(kept) == 2 and kept < held[member]
        # It has revoked the third one, and says so by joining again.
        assert driver.heartbeat(member, generation) is ErrorCode.REBALANCE_IN_PROGRESS
        joined = driver.rejoin(member, owned=kept)
        assert joined.response.generation_id == epoch
        assert driver.assigned(member, epoch) == kept
        assert driver.heartbeat(member, epoch) is ErrorCode.NONE
    assert len(told(driver.beat("new", epoch, owned=frozenset()))) == 2
    assert sum(map(len, driver.held().values())) == 6


def test_an_eager_member_has_revoked_all_when_it_joins_again(driver: Driver) -> None:
    (only,) = driver.classic_group(parts("a", 0, 1, 2, 3, 4, 5))
    epoch = driver.beat("new").member_epoch
    joined = driver.rejoin(only)
    assert joined.response.generation_id == epoch
    assert len(driver.assigned(only, epoch)) == 3
    assert len(told(driver.beat("new", epoch, owned=frozenset()))) == 3


def test_members_that_wait_for_a_rebalance_are_told_to_join_again(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5))
    waiting = driver.rejoin(first, "a", "b")
    assert not waiting.answered
    driver.beat("new")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    joined = driver.rejoin(first, "a", "b")
    assert joined.error is ErrorCode.NONE
    assert driver.heartbeat(second, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_in_its_first_rebalance_is_upgraded_too(driver: Driver) -> None:
    asked = driver.rejoin("")
    waiting = driver.rejoin(asked.response.member_id)
    assert not waiting.answered
    assert len(told(driver.beat("new"))) == 3
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    joined = driver.rejoin(asked.response.member_id)
    assert len(driver.assigned(asked.response.member_id, joined.response.generation_id)) == 3


def test_static_members_keep_their_instances(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5), instances=("i1", "i2"))
    driver.beat("new")
    group = driver.shard.consumer.get(GROUP)
    assert group is not None and group.static_ids == {"i1": first, "i2": second}
    # The new program of an instance takes the place of the old, whatever the protocols.
    joined = driver.beat("modern", instance="i1")
    assert joined.error_code == ErrorCode.NONE
    assert driver.held().keys() == {second, "new", "modern"}
    assert driver.heartbeat(first, 1, instance="i1") is ErrorCode.FENCED_INSTANCE_ID


def test_a_member_that_is_upgraded_with_its_id_keeps_what_it_has(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5))
    joined = driver.beat(first)
    assert told(joined) == parts("a", 0, 1, 2)
    group = driver.shard.consumer.get(GROUP)
    assert group is not None
    assert group.members[first].metadata.classic is None
    assert group.members[second].metadata.classic is not None


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_refused_by_policy(policy: MigrationPolicy) -> None:
    driver = Driver(policy)
    driver.classic_group(parts("a", 0, 1, 2, 3, 4, 5))
    assert driver.beat("new").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.kind() == "classic" and driver.state() == "Stable"


def test_refused_for_its_size(driver: Driver) -> None:
    driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5))
    driver.consumer_settings = type(driver.consumer_settings)(max_size=1)
    refused = driver.beat("new")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND and "2 members" in (refused.error_message or "")


def test_groups_of_others_than_consumers_are_refused() -> None:
    driver = Driver()
    asked = driver.join("", protocol_type="connect", protocols=[("default", b"x")])
    driver.join(asked.response.member_id, protocol_type="connect", protocols=[("default", b"x")])
    assert driver.beat("new").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.kind() == "classic"


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        (encode_assignment(parts("a", 0))[:-4] + b"\x00\x00\x00\x01x", "unsupported custom assignor is in use"),
        (b"\x00\x00\x7f\xff\xff\xff", "can't be read"),
    ],
)
def test_assignments_that_would_be_lost_are_refused(driver: Driver, assignment: bytes, why: str) -> None:
    (only,) = driver.classic_group(parts("a", 0, 1, 2, 3, 4, 5))
    generation = driver.rejoin(only).response.generation_id
    driver.sync(only, generation, {only: assignment})
    refused = driver.beat("new")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND and why in (refused.error_message or "")
    assert driver.kind() == "classic" and driver.heartbeat(only, generation) is ErrorCode.NONE


def test_a_failed_append_changes_nothing(driver: Driver) -> None:
    first, _ = driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5))
    waiting = driver.rejoin(first, "a", "b")
    before = snapshot(driver.shard)
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.beat("new").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert snapshot(driver.shard) == before and not waiting.answered
    assert driver.state() == "PreparingRebalance"
    assert driver.beat("new").error_code == ErrorCode.NONE
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_sessions_of_classic_members_go_on(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2), parts("a", 3, 4, 5))
    generation = 1
    driver.beat("new")
    driver.sleep(9_000)
    driver.heartbeat(first, generation)
    driver.sleep(2_000)  # their session timeout is 10 s, that of the consumer protocol 45 s
    assert driver.held().keys() == {first, "new"}
    assert second not in driver.shard.consumer.get(GROUP).target  # type: ignore[union-attr]


def test_what_a_member_brought_along_that_has_yet_to_sync_is_still_its_own(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2, 3), parts("a", 4, 5))
    joins = [driver.rejoin(first, owned=parts("a", 0, 1, 2, 3)), driver.rejoin(second, owned=parts("a", 4, 5))]
    assert [join.response.generation_id for join in joins] == [2, 2]
    # The leader has synced; the other, which is to give up partition 5, hasn't.
    targets = {first: encode_assignment(parts("a", 0, 1, 2, 3)), second: encode_assignment(parts("a", 4))}
    assert driver.sync(first, 2, targets).error is ErrorCode.NONE
    assert told(driver.beat("new")) == frozenset()
    assert driver.held()[second] == parts("a", 4, 5)
    assert driver.assigned(second, 2) == parts("a", 4)
    epoch = driver.rejoin(second, owned=parts("a", 4)).response.generation_id
    assert epoch == 3 and driver.held()[second] == parts("a", 4)


def test_what_a_member_brought_along_is_still_its_own_when_the_next_rebalance_has_begun(driver: Driver) -> None:
    (first,) = driver.classic_group(parts("a", 0, 1, 2, 3, 4, 5))
    joining = driver.rejoin("", instance="i")
    driver.rejoin(first, owned=parts("a", 0, 1, 2, 3, 4, 5))
    assert driver.state() == "CompletingRebalance"
    driver.leave((joining.response.member_id, "i"))
    assert driver.state() == "PreparingRebalance"
    assert told(driver.beat("new")) == frozenset()
    assert driver.held()[first] == parts("a", 0, 1, 2, 3, 4, 5)


def test_one_that_was_not_told_its_assignment_keeps_what_it_brought_along_in_the_next_rebalance(driver: Driver) -> None:
    first, second = driver.classic_group(parts("a", 0, 1, 2, 3), parts("a", 4, 5))
    driver.rejoin(first, owned=parts("a", 0, 1, 2, 3))
    driver.rejoin(second, owned=parts("a", 4, 5))
    targets = {first: encode_assignment(parts("a", 0, 1, 2, 3)), second: encode_assignment(parts("a", 4))}
    driver.sync(first, 2, targets)
    driver.rejoin(first, "a", "b", owned=parts("a", 0, 1, 2, 3))
    assert driver.state() == "PreparingRebalance"
    driver.beat("new")
    assert driver.held()[second] == parts("a", 4, 5)


def test_one_that_takes_the_place_of_a_static_member_in_a_rebalance_gets_its_share(driver: Driver) -> None:
    driver.rejoin("", instance="i")
    assert driver.state() == "PreparingRebalance"
    assert told(driver.beat("modern", instance="i")) == parts("a", 0, 1, 2, 3, 4, 5)


def test_one_that_takes_a_static_members_place_between_two_cooperative_rebalances_gets_its_share(
    driver: Driver,
) -> None:
    """The first rebalance takes partitions away, which the second one would give to the other member."""
    first, _ = driver.classic_group(parts("a", 0, 1, 2), frozenset(), instances=("i1", "i2"))
    assert told(driver.beat("modern", instance="i2")) == parts("a", 3, 4, 5)
    assert driver.held()[first] == parts("a", 0, 1, 2)
