"""Share groups of Kafka's Java clients: KafkaShareConsumer with every way to acknowledge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.tools import MAVEN

from .java.jvm import Scenarios
from .servers import Server
from .topics import create_topic

QUICK = {
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "4",
}


@pytest.fixture(scope="module")
def scenarios() -> Iterator[Scenarios]:
    MAVEN.require()
    running = Scenarios()
    yield running
    running.close()


@pytest.mark.parametrize("own_server", [QUICK], indirect=True)
def test_a_share_consumer(scenarios: Scenarios, own_server: Server) -> None:
    create_topic(AdminClient({"bootstrap.servers": own_server.bootstrap}), "jobs", 3)
    found = scenarios.run("share", own_server.bootstrap, topic="jobs", lock=1500, group__id="workers")
    assert found == {
        "implicit": [40, 40],
        "implicit commit": "none",
        "released": True,
        "nothing more": 0,
        "renewed": [1, 1],
        "renewed commit": "none",
        "record limit": True,
    }
