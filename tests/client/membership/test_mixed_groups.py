"""Groups of our members and librdkafka's: either kind leads, and the other understands what it's given."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from confluent_kafka import Consumer

from kohort.testing.broker import Broker
from tests.client.membership.members import create_topics, member, partitions
from tests.waiting import run, until


class Librdkafka:
    """A consumer in a thread, which polls."""

    def __init__(self, servers: str, strategy: str) -> None:
        self.assigned: frozenset[Any] = frozenset()
        self._stop = threading.Event()
        config = {
            "bootstrap.servers": servers,
            "group.id": "g",
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6_000,
        }
        self._thread = threading.Thread(target=self._run, args=(Consumer(config),))
        self._thread.start()

    def _run(self, consumer: Any) -> None:
        consumer.subscribe(["t"])
        while not self._stop.is_set():
            consumer.poll(0.02)
            self.assigned = frozenset((each.topic, each.partition) for each in consumer.assignment())
        consumer.close()
        self.assigned = frozenset()

    def stop(self) -> None:
        self._stop.set()

    def join(self) -> None:
        self._thread.join()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("leads", ["librdkafka", "we"])
def test_mixed_groups(strategy: str, leads: str) -> None:
    async def test() -> None:
        async with Broker() as broker:
            servers = broker.bootstrap_servers
            await create_topics(servers, t=4)
            everything = partitions("t", 0, 1, 2, 3)
            theirs = None
            try:
                if leads == "librdkafka":
                    theirs = Librdkafka(servers, strategy)
                    await until(lambda: theirs.assigned == everything)
                async with member(servers, "t", partition_assignment_strategy=(strategy,)) as ours:
                    if theirs is None:
                        await until(lambda: ours.assigned == everything)
                        theirs = Librdkafka(servers, strategy)
                    await until(lambda: len(ours.assigned) == len(theirs.assigned) == 2)
                    assert ours.assigned | theirs.assigned == everything
                    if leads == "we":
                        theirs.stop()
                        await until(lambda: ours.assigned == everything)
                if leads == "librdkafka":
                    await until(lambda: theirs.assigned == everything)
            finally:
                if theirs is not None:
                    theirs.stop()
                    await asyncio.to_thread(theirs.join)

    run(test(), timeout_s=40)
