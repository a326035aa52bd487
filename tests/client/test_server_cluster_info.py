from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.server_cluster_info import Changes, CoordinatorKind, ServerClusterInfo
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.metadata import MetadataResponse

Topic = MetadataResponse.Topic
Partition = MetadataResponse.Topic.Partition

AT = TopicPartition("t", 0)


def answer(*topics: Topic, brokers: tuple[int, ...] = (1, 2, 3), controller: int = 1) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponse.Broker(node_id=n, host=f"b{n}", port=9092) for n in brokers],
        cluster_id="c",
        controller_id=controller,
        topics=list(topics),
    )


def topic(*leaders: tuple[int, int], name: str = "t", topic_id: int = 1, error: int = 0) -> Topic:
    """A topic whose partitions have these (leader, leader epoch)."""
    partitions = [
        Partition(partition_index=n, leader_id=leader, leader_epoch=epoch, replica_nodes=(1, 2), isr_nodes=(1,))
        for n, (leader, epoch) in enumerate(leaders)
    ]
    return Topic(name=name, topic_id=UUID(int=topic_id), partitions=partitions, error_code=error)


def test_an_answer_says_where_everything_is() -> None:
    info = ServerClusterInfo()
    changes = info.update(answer(topic((1, 4), (2, 5))), {"t"})

    assert changes == Changes(True, frozenset({"t"}), frozenset({AT, TopicPartition("t", 1)}))
    assert info.brokers[2] == Broker(2, "b2", 9092)
    assert (info.cluster_id, info.controller) == ("c", 1)
    assert info.leader(AT) == Broker(1, "b1", 9092)
    assert info.leader_epoch(TopicPartition("t", 1)) == 5
    assert info.names == {UUID(int=1): "t"}
    assert info.leader(TopicPartition("t", 2)) is None
    assert info.leader_epoch(TopicPartition("u", 0)) == -1
    assert not info.update(answer(topic((1, 4), (2, 5))), {"t"})


def test_an_older_leader_does_not_come_back() -> None:
    info = ServerClusterInfo()
    info.update(answer(topic((1, 4))), {"t"})
    assert not info.update(answer(topic((2, 3))), {"t"})
    assert info.leader(AT) == Broker(1, "b1", 9092)
    assert info.update(answer(topic((2, 5))), {"t"}).leaders == {AT}
    assert info.leader(AT) == Broker(2, "b2", 9092)


def test_a_topic_created_again_replaces_the_deleted_one() -> None:
    info = ServerClusterInfo()
    info.update(answer(topic((1, 4), (1, 4))), {"t"})
    changes = info.update(answer(topic((2, 0), topic_id=2)), {"t"})
    assert changes == Changes(False, frozenset({"t"}), frozenset({AT}))
    assert info.leader_epoch(AT) == 0
    assert info.names == {UUID(int=2): "t"}


def test_a_partition_without_a_leader_is_unsettled_and_keeps_its_epoch() -> None:
    info = ServerClusterInfo()
    info.update(answer(topic((1, 4))), {"t"})
    assert not info.incomplete
    assert info.update(answer(topic((-1, -1))), {"t"}).leaders == {AT}
    assert (info.leader(AT), info.leader_epoch(AT), info.incomplete) == (None, 4, True)
    info.update(answer(topic((1, 3))), {"t"})
    assert info.leader(AT) is None, "from a broker that lags behind"
    info.update(answer(topic((2, 5))), {"t"})
    assert (info.leader(AT), info.incomplete) == (Broker(2, "b2", 9092), False)


def test_topics_that_are_gone_or_refused_have_errors() -> None:
    info = ServerClusterInfo()
    info.update(answer(topic((1, 4)), topic((1, 0), name="u", topic_id=7)), {"t", "u"})
    changes = info.update(answer(topic(error=3), topic(name="u", error=29)), {"t", "u"})
    assert changes.topics == {"t"}
    assert info.errors == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "u": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert "t" not in info.topics
    assert info.names == {UUID(int=7): "u"}
    assert info.incomplete
    info.update(answer(topic((1, 0), topic_id=9)), {"t"})
    assert info.errors == {"u": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    info.update(answer(topic(error=4242)), {"t"})
    assert info.errors["t"] is ErrorCode.UNKNOWN_SERVER_ERROR


def test_who_asks_for_all_topics_hears_which_are_gone() -> None:
    info = ServerClusterInfo()
    info.update(answer(topic((1, 4)), topic((1, 0), name="u", topic_id=7)), None)
    assert info.update(answer(topic((1, 0), name="u", topic_id=7)), {"u"}).topics == set()
    assert info.update(answer(topic((1, 0), name="u", topic_id=7)), None).topics == {"t"}
    assert [*info.topics] == ["u"]
    info.forget_topics(["u", "v"])
    assert (info.topics, info.names) == ({}, {})


def test_hints_count_if_they_are_newer_and_say_who_leads() -> None:
    info = ServerClusterInfo()
    info.update(answer(topic((1, 4))), {"t"})
    assert not info.learn_leader(AT, 2, 4)
    assert not info.learn_leader(AT, -1, 9)
    assert not info.learn_leader(AT, 8, 5), "nobody knows where 8 is"
    assert not info.learn_leader(TopicPartition("u", 0), 2, 9)
    assert info.learn_leader(AT, 8, 5, Broker(8, "b8", 9093, "rack"))
    assert info.leader(AT) == Broker(8, "b8", 9093, "rack")
    info.update(answer(topic((1, 4))), {"t"})
    assert info.leader_epoch(AT) == 5


def test_brokers_forgotten_take_their_offices_with_them() -> None:
    info = ServerClusterInfo()
    info.update(answer(topic((1, 4)), controller=2), {"t"})
    info.coordinators[CoordinatorKind.GROUP, "g"] = 1
    info.learn_broker(Broker(1, "elsewhere", 1))
    assert info.brokers[1].host == "elsewhere"
    info.forget_brokers()
    assert (info.brokers, info.controller, info.coordinators) == ({}, None, {})
    assert info.leader(AT) is None
    info.update(answer(brokers=(), controller=-1), set())
    assert info.brokers == {}


events = st.tuples(
    st.sampled_from(["metadata", "metadata", "hint", "created again"]), st.integers(-1, 3), st.integers(-1, 8)
)


@given(st.lists(events, max_size=30))
def test_epochs_never_go_back_and_the_newest_word_counts(history: list[tuple[str, int, int]]) -> None:
    info = ServerClusterInfo()
    topic_id, epoch, leader = 1, -1, None
    for kind, node, said in history:
        before = info.leader_epoch(AT)
        if kind == "hint":
            newer = info.learn_leader(AT, node, said)
            assert newer == (AT.topic in info.topics and node in info.brokers and said > epoch)
            if newer:
                epoch, leader = said, node
        else:
            if kind == "created again":
                topic_id, epoch = topic_id + 1, -1
            info.update(answer(topic((node, said), topic_id=topic_id)), {"t"})
            if said < 0 or said >= epoch:
                epoch, leader = max(said, epoch), node
        if kind != "created again":
            assert info.leader_epoch(AT) >= before
        assert info.leader_epoch(AT) == epoch
        assert info.leader(AT) == info.brokers.get(-1 if leader is None else leader)
        assert len(info.names) == len(info.topics)


def test_brokers_that_tell_no_topic_ids_are_believed() -> None:
    info = ServerClusterInfo()
    for topic_id, epoch in ((0, 1), (1, 2), (0, 1), (1, 1)):
        info.update(answer(topic((epoch, epoch), topic_id=topic_id)), {"t"})
    assert (info.leader_epoch(AT), info.names) == (2, {UUID(int=1): "t"})
