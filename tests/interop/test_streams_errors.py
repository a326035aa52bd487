"""What Kafka Streams is told of topics that don't fit its topology, and of topologies that don't fit each other.

Instances whose topics are wrong have no endpoint here: Apache Kafka 4.2 fails over it before it looks at the topics.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..waiting import eventually
from .streams_apps import WITHIN, Fleet, Instance, share, tasks
from .streams_words import Lines, Output

NewName = Callable[[], str]


def error(instance: Instance) -> tuple[str, str]:
    """The error that an instance ends with: what its thread ran into, not what wraps it."""
    eventually(lambda: instance.state == "ERROR", within=WITHIN, what=f"{instance.name} fails")
    return instance.errors[-1]


def test_a_missing_source_topic(fleet: Fleet, new_name: NewName) -> None:
    missing = new_name()
    kind, text = error(fleet.start(new_name(), "copy", source=missing, target=fleet.topic(new_name()), endpoint=False))
    assert kind == "MissingSourceTopicException"
    assert missing in text


def test_a_source_topic_that_appears_in_time(fleet: Fleet, new_name: NewName) -> None:
    application, source, target = new_name(), new_name(), fleet.topic(new_name())
    # Kafka Streams gives up after two heartbeats.
    fleet.configure(application, streams__heartbeat__interval__ms="2000", streams__session__timeout__ms="10000")
    instance = fleet.start(application, "word-count", source=source, target=target, endpoint=False)
    told = f"groupId={application}] Membership is in the following statuses: (1)"
    eventually(lambda: told in instance.process.complaints(), within=WITHIN, what="it is told")
    fleet.topic(source, 2)
    eventually(lambda: share([instance], tasks(_0=2, _1=2)), within=WITHIN, what="it runs")
    lines, output = Lines(fleet.server.bootstrap, source, 2), Output(fleet.server.bootstrap, target, 1)
    lines.write(10)
    eventually(lambda: output.counts() == lines.counts(), what="all is counted")


def test_joined_topics_of_different_partition_counts(fleet: Fleet, new_name: NewName) -> None:
    left, right, target = fleet.topic(new_name(), 2), fleet.topic(new_name(), 3), fleet.topic(new_name())
    kind, text = error(fleet.start(new_name(), "join", left=left, right=right, target=target, endpoint=False))
    assert kind == "TopologyException"
    assert left in text and right in text


@pytest.mark.parametrize("internal", ["words-repartition", "counts-changelog"])
def test_an_internal_topic_of_a_wrong_partition_count(fleet: Fleet, new_name: NewName, internal: str) -> None:
    application, source, target = new_name(), fleet.topic(new_name(), 3), fleet.topic(new_name())
    topic = fleet.topic(f"{application}-{internal}", 5)
    kind, text = error(fleet.start(application, "word-count", source=source, target=target, endpoint=False))
    assert kind == "TopologyException"
    assert topic in text


def test_two_topologies_under_one_application_id(fleet: Fleet, new_name: NewName) -> None:
    application, source, target = new_name(), fleet.topic(new_name()), fleet.topic(new_name())
    first = fleet.start(application, "word-count", source=source, target=target)
    eventually(lambda: share([first], tasks(_0=1, _1=1)), within=WITHIN, what="the first runs")
    second = fleet.start(application, "copy", source=source, target=target)
    kind, _ = error(second)
    assert kind == "InvalidRequestException"
    assert share([first], tasks(_0=1, _1=1))


def test_one_instance_shuts_down_all(fleet: Fleet, new_name: NewName) -> None:
    application, source, target = new_name(), fleet.topic(new_name(), 2), fleet.topic(new_name())
    topics = {"source": source, "target": target, "on_error": "SHUTDOWN_APPLICATION"}
    both = [fleet.start(application, "word-count", **topics) for _ in range(2)]
    eventually(lambda: share(both, tasks(_0=2, _1=2)), within=WITHIN, what="both run")
    lines = Lines(fleet.server.bootstrap, source, 1)
    lines.producer.produce(source, b"poison")
    lines.flush()
    for instance in both:
        eventually(lambda i=instance: i.state == "ERROR", within=WITHIN, what=f"{instance.name} ends")
    assert sorted(bool(instance.errors) for instance in both) == [False, True], "only one has read the poison"
