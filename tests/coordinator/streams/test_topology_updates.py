"""What a group makes of its members' topologies, and of the topics that there are."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import TaskIds, TopicInfo
from tests.coordinator.streams.driver import GROUP, App, Driver, TopologyRequest, joined, reconcile, stateful, stateless

STALE, NO_SOURCES, WRONG_PARTITIONS, NO_INTERNALS = 0, 1, 2, 3


def patterned(pattern: str) -> TopologyRequest.Subtopology:
    return TopologyRequest.Subtopology(subtopology_id="0", source_topic_regex=(pattern,))


def repartitioned() -> tuple[TopologyRequest.Subtopology, TopologyRequest.Subtopology]:
    topic = f"{GROUP}-by-key-repartition"
    return (
        TopologyRequest.Subtopology(subtopology_id="0", source_topics=("in",), repartition_sink_topics=(topic,)),
        TopologyRequest.Subtopology(subtopology_id="1", repartition_source_topics=[TopicInfo(name=topic)]),
    )


# The topology ---------------------------------------------------------------------------------------------------


def test_the_first_member_tells_the_topology() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    assert driver.group.topology is not None
    assert list(driver.group.topology.subtopologies) == ["0"]
    assert driver.group.validated_topology_epoch == app.topology.epoch == 0


def test_another_topology_under_the_same_epoch_is_refused() -> None:
    driver = Driver({"in": 2, "other": 2})
    joined(driver, ["m1"])
    other = App(driver, "m2", stateless("0", "other"))
    response = other.join()
    assert other.error is ErrorCode.INVALID_REQUEST
    assert response.error_message is not None and "Topology" in response.error_message
    assert list(driver.group.members) == ["m1"]


def test_the_same_topology_told_in_another_order_is_the_same() -> None:
    driver = Driver({"in": 2, "other": 2})
    joined(driver, ["m1"], stateless("0", "in"), stateless("1", "other"))
    second = App(driver, "m2", stateless("1", "other"), stateless("0", "in"))
    second.join()
    assert second.error is ErrorCode.NONE


def test_a_bad_topology_is_refused_and_makes_no_group() -> None:
    driver = Driver()
    app = App(driver, "m1", TopologyRequest.Subtopology(subtopology_id="0"))
    app.join()
    assert app.error is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert driver.shard.streams.get(GROUP) is None


def test_a_higher_epoch_replaces_the_topology() -> None:
    driver = Driver({"in": 2, "more": 2})
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2", stateless("0", "in"), stateless("1", "more"), epoch=1)
    second.join()
    reconcile(first, second)
    assert (first.have(), first.status) == ([], [STALE])
    assert (second.have(), second.status) == (["0_0", "0_1", "1_0", "1_1"], [])
    assert driver.dump() == driver.dump(driver.replayed())


def test_a_replaced_topology_may_drop_what_members_run() -> None:
    driver = Driver({"in": 2, "more": 2})
    (first,) = joined(driver, ["m1"], stateless("old", "in"))
    second = App(driver, "m2", stateless("new", "more"), epoch=1)
    second.join()
    reconcile(first, second)
    assert (first.have(), second.have()) == ([], ["new_0", "new_1"])


def test_who_joins_with_an_older_topology_gets_no_tasks() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"], epoch=3)
    late = App(driver, "m2", stateless("0", "elsewhere"), epoch=2)
    late.join()
    reconcile(first, late)
    assert (late.error, late.status, late.have()) == (ErrorCode.NONE, [STALE], [])
    assert len(first.have()) == 4


# Topics ---------------------------------------------------------------------------------------------------------


def test_without_its_source_topics_a_group_is_not_ready() -> None:
    driver = Driver({})
    app = App(driver, "m1")
    response = app.join()
    assert (driver.state(), app.status, app.have()) == ("NotReady", [NO_SOURCES], [])
    assert response.status is not None and "in" in response.status[0].status_detail


def test_a_group_heals_as_soon_as_its_topic_is_there() -> None:
    driver = Driver({})
    app = App(driver, "m1")
    app.join()
    driver.topic("in", 2)
    assert driver.state() == "Reconciling"
    app.beat()
    assert (app.have(), app.status, driver.state()) == (["0_0", "0_1"], [], "Stable")


def test_a_topic_that_vanishes_takes_the_tasks_with_it() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    driver.topic("in", None)
    reconcile(app)
    assert (app.have(), app.status, driver.state()) == ([], [NO_SOURCES], "NotReady")
    assert driver.group.validated_topology_epoch == -1


def test_a_topic_that_grows_brings_tasks() -> None:
    driver = Driver({"in": 2})
    (app,) = joined(driver, ["m1"])
    epoch = driver.group.epoch
    driver.topic("in", 3)
    assert driver.group.epoch == epoch + 1
    app.beat()
    assert app.have() == ["0_0", "0_1", "0_2"]


def test_topics_of_others_are_nothing_to_a_group() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    size = len(driver.log)
    driver.topic("other", 2)
    assert len(driver.log) == size


def test_a_topic_that_is_replaced_by_one_of_the_same_name_is_a_change() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    epoch = driver.group.epoch
    driver.cluster.ids["in"] = UUID(int=99)
    driver.topic("in", 4)
    assert driver.group.epoch == epoch + 1


def test_a_pattern_takes_in_new_topics() -> None:
    driver = Driver({"events-a": 1})
    (app,) = joined(driver, ["m1"], patterned("events-.*"))
    assert app.have() == ["0_0"]
    driver.topic("events-b", 3)
    app.beat()
    assert app.have() == ["0_0", "0_1", "0_2"]


def test_an_empty_group_looks_at_the_topics_when_somebody_joins() -> None:
    driver = Driver({"in": 2})
    (app,) = joined(driver, ["m1"])
    app.leave()
    size = len(driver.log)
    driver.topic("in", 3)
    assert len(driver.log) == size
    app.join()
    assert app.have() == ["0_0", "0_1", "0_2"]


def test_internal_topics_are_asked_for_until_they_are_there() -> None:
    driver = Driver({"in": 3})
    app = App(driver, "m1", *repartitioned())
    app.join()
    assert app.status == [NO_INTERNALS]
    assert [(topic.name, topic.partitions) for topic in driver.result.missing_topics] == [
        (f"{GROUP}-by-key-repartition", 3)
    ]
    app.beat()
    assert driver.result.missing_topics
    driver.create_missing()
    app.beat()
    assert (app.status, len(app.have()), driver.result.missing_topics) == ([], 6, ())


def test_a_changelog_with_the_wrong_number_of_partitions_stops_the_group() -> None:
    driver = Driver({"in": 3, f"{GROUP}-store-0-changelog": 2})
    app = App(driver, "m1", stateful())
    app.join()
    assert (app.status, driver.state()) == ([WRONG_PARTITIONS], "NotReady")


def test_after_a_restart_the_topics_are_what_they_were() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    size = len(driver.log)
    driver.restart()
    app.beat()
    assert (len(driver.log), driver.state()) == (size, "Stable")


def test_after_a_restart_topics_that_changed_meanwhile_are_noticed() -> None:
    driver = Driver({"in": 2})
    (app,) = joined(driver, ["m1"])
    driver.cluster.topics["in"] = 3
    driver.restart()
    app.beat()
    assert app.have() == ["0_0", "0_1", "0_2"]


# Tasks that members say they have -------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "partition"), [("0", 4), ("nonsense", 0)])
def test_tasks_that_do_not_exist_cannot_be_had(name: str, partition: int) -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    owned = [TaskIds(subtopology_id=name, partitions=(partition,))]
    response = app.beat(active_tasks=owned, standby_tasks=[], warmup_tasks=[])
    assert app.error is ErrorCode.INVALID_REQUEST
    assert response.error_message is not None and f"{name}_{partition}" in response.error_message


def test_tasks_that_went_with_their_topic_may_be_had_until_they_are_given_up() -> None:
    driver = Driver({"in": 4})
    (app,) = joined(driver, ["m1"])
    driver.topic("in", 2)
    app.full()
    assert (app.error, app.have()) == (ErrorCode.NONE, ["0_0", "0_1"])


def test_a_request_that_is_out_of_order_is_refused() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.beat(member_epoch=-3)
    assert app.error is ErrorCode.INVALID_REQUEST
