"""A worker is killed with its work undone: another has it when its session is over, which no test waits for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

from confluent_kafka import Consumer

from kohort.testing import Broker

WORKER = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "workers", "auto.offset.reset": "earliest",
                     "enable.auto.commit": False})
consumer.subscribe([sys.argv[2]])
while True:
    if message := consumer.poll(1):
        print(message.value().decode(), flush=True)
"""


def test_another_does_what_a_dead_worker_had(
    kohort_fresh_broker: Broker, kohort_time: Broker, kohort_topic: Callable[..., str]
) -> None:
    """`session.timeout.ms` is 45 s. A member that is alive would learn with its next heartbeat that it was fenced."""
    servers, topic = kohort_fresh_broker.bootstrap_servers, kohort_topic([b"tea"])
    with subprocess.Popen([sys.executable, "-c", WORKER, servers, topic], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"tea\n"
        worker.kill()  # without a good-bye: to the broker it is a member as before
    kohort_time.advance(timedelta(seconds=46))
    other = Consumer({"bootstrap.servers": servers, "group.id": "workers", "auto.offset.reset": "earliest"})
    other.subscribe([topic])
    try:
        assert [message.value() for message in other.consume(1, timeout=20)] == [b"tea"]
    finally:
        other.close()
