"""Which partitions of a share group have a state at the share coordinator: initialized, tried again, deleted."""

from __future__ import annotations

from kohort.coordinator.share.state_partitions import StatePartitions, TopicState
from kohort.protocol.errors import ErrorCode
from tests.coordinator.share.driver import Driver, told


def partitions(states: dict[str, object] | object) -> dict[str, list[int]]:
    assert isinstance(states, dict)
    return {each.name: sorted(each.partitions) for each in states.values()}


def test_a_first_member_has_all_its_partitions_initialized_in_the_groups_epoch() -> None:
    driver = Driver(automatic=False)

    initialization = driver.heartbeat("m", 0, "a", "b", "absent").initialization

    assert initialization is not None
    assert initialization.state_epoch == 2
    assert initialization.start_offsets == {
        driver.id("a"): {0: -1, 1: -1, 2: -1},
        driver.id("b"): {0: -1, 1: -1},
    }
    assert partitions(driver.group.states.initializing) == {"a": [0, 1, 2], "b": [0, 1]}
    driver.initialize()
    assert partitions(driver.group.states.initialized) == {"a": [0, 1, 2], "b": [0, 1]}
    assert not driver.group.states.initializing


def test_what_is_initializing_is_not_asked_for_twice_until_a_while_later() -> None:
    driver = Driver({"a": 1}, automatic=False)
    driver.beat("m", 0, "a")
    driver.wait(29_999)
    assert driver.heartbeat("m", 2).initialization is None
    driver.wait(1)

    again = driver.heartbeat("m", 2).initialization

    assert again is not None and again.start_offsets == {driver.id("a"): {0: -1}}
    assert driver.heartbeat("m", 2).initialization is None


def test_after_a_restart_what_was_initializing_is_asked_for_again() -> None:
    driver = Driver({"a": 1}, automatic=False)
    driver.beat("m", 0, "a")
    driver.restart()

    assert driver.heartbeat("m", 2).initialization is not None


def test_what_could_not_be_initialized_is_asked_for_with_the_next_heartbeat() -> None:
    driver = Driver({"a": 1}, automatic=False)
    driver.beat("m", 0, "a")

    driver.fail_to_initialize()

    assert not driver.group.states.initializing
    assert driver.heartbeat("m", 2).initialization is not None


def test_a_topic_that_appears_is_initialized_and_assigned() -> None:
    driver = Driver({"a": 1})
    epoch = driver.settle("m", "a", "later")
    driver.topic("later", 2)

    epoch = driver.beat("m", epoch).member_epoch

    assert told(driver, driver.beat("m", epoch)) == {"a": [0], "later": [0, 1]}


def test_a_topic_that_grows_has_its_new_partitions_initialized() -> None:
    driver = Driver({"a": 1})
    epoch = driver.settle("m", "a")
    driver.topic("a", 3)

    grown = driver.heartbeat("m", epoch)

    assert grown.initialization is not None
    assert grown.initialization.start_offsets == {driver.id("a"): {1: -1, 2: -1}}
    assert grown.initialization.state_epoch == epoch + 1
    assert told(driver, driver.beat("m", grown.response.member_epoch)) == {"a": [0, 1, 2]}


def test_a_topic_that_is_deleted_is_forgotten() -> None:
    driver = Driver()
    epoch = driver.settle("m", "a", "b")

    driver.delete_topic("a")

    assert partitions(driver.group.states.initialized) == {"b": [0, 1]}
    assert told(driver, driver.beat("m", epoch)) == {"b": [0, 1]}
    assert driver.kinds and driver.beat("m", epoch + 1).member_epoch == epoch + 1


def test_a_topic_of_the_same_name_is_another_one() -> None:
    driver = Driver({"a": 1})
    epoch = driver.settle("m", "a")
    before = driver.id("a")
    driver.delete_topic("a")
    driver.cluster.ids["other"] = before  # so that the id isn't given again
    driver.topic("a", 1)

    epoch = driver.beat("m", epoch).member_epoch
    driver.beat("m", epoch)

    assert driver.id("a") != before
    assert driver.assigned("m") == {"a": [0]}


def test_states_that_could_not_be_recorded_are_asked_for_again() -> None:
    driver = Driver({"a": 1}, automatic=False)
    driver.beat("m", 0, "a")
    driver.failing = ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.initialize()
    driver.failing = None

    assert not driver.group.states.initialized
    driver.wait(30_000)
    assert driver.heartbeat("m", 2).initialization is not None


def test_a_group_that_is_gone_takes_no_states() -> None:
    driver = Driver()
    assert driver.perform(driver.groups.initialized("gone", {driver.id("a"): [0]})) == []
    assert driver.perform(driver.groups.not_initialized("gone", {driver.id("a"): [0]})) == []


def test_the_table_of_states() -> None:
    a, b = Driver().id("a"), Driver(topics={"x": 1, "b": 1}).id("x")
    assert a == b
    begun = StatePartitions().begin({a: TopicState("a", frozenset({0, 1}))})
    assert begun.known() == begun.initializing
    partly = begun.finish({a: TopicState("a", frozenset({0}))})
    assert partly.initializing == {a: TopicState("a", frozenset({1}))}
    assert partly.assignable == {a: frozenset({0})}
    assert partly.give_up({a: TopicState("a", frozenset({1}))}).initializing == {}
    deleting = partly.delete({a: "a"})
    assert (deleting.initialized, deleting.deleting) == ({}, {a: "a"})
    assert deleting.begin({a: TopicState("a", frozenset({0}))}).deleting == {}
    assert deleting.deleted({a}).deleting == {}
    assert deleting.without_topic(a) == StatePartitions({}, {}, {})
