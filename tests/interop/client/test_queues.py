"""Work queues on Kohort and on Apache Kafka: more workers than partitions, of which one is killed amid its job."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from kohort.client import Admin
from kohort.protocol.errors import KafkaError
from tests.tools import JAVA, MAVEN

from ...waiting import eventually
from ..servers import Server
from ..topics import create_topic

JOBS = 200
WORKERS = 3
REJECTED = {number for number in range(JOBS) if number % 50 == 7}
LONG_JOBS, LONG_MS = 6, 2_000
"""Jobs that are taken together, and take more than twice the time of a lock."""
LOCK = {"group.share.min.record.lock.duration.ms": "1000", "group.share.record.lock.duration.ms": "5000"}


class Results:
    """What is in the results' topic and in the dead letters', as far as it was read."""

    def __init__(self, servers: str, application: str) -> None:
        self.done: dict[int, list[int]] = {}
        self.dead: dict[int, str] = {}
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": servers, "group.id": f"{application}-watch", "enable.auto.commit": False}
        )
        self._dead = f"{application}-dead"
        self._consumer.assign(
            [confluent_kafka.TopicPartition(topic, 0, 0) for topic in (f"{application}-done", self._dead)]
        )

    def read(self) -> Results:
        for message in self._consumer.consume(1_000, timeout=0.5):
            assert message.error() is None, message.error()
            row = json.loads(message.value() or b"")
            if message.topic() == self._dead:
                headers = {name: value.decode() for name, value in message.headers() or []}
                self.dead[row["id"]] = headers["__streams.errors.message"]
            else:
                self.done.setdefault(row["id"], []).append(row["worker"])
        return self

    def by(self) -> set[int]:
        """The processes that have done some."""
        return {worker for workers in self.done.values() for worker in workers}

    def complete(self, jobs: int = JOBS) -> bool:
        return len(self.read().done) + len(self.dead) == jobs

    def close(self) -> None:
        self._consumer.close()


def members_of(servers: str, group: str) -> list[Any]:
    async def described() -> list[Any]:
        async with Admin(servers) as admin:
            try:
                return list((await admin.groups.describe(group))[group].members)
            except KafkaError:  # there is no group yet
                return []

    return asyncio.run(described())


def produce(servers: str, topic: str, jobs: int = JOBS, ms: int = 100) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(jobs):
        producer.produce(topic, json.dumps({"id": number, "ms": ms}).encode())
    assert not producer.flush(30)


class Workers:
    """Processes that work on the queue of an application."""

    def __init__(self, servers: str, application: str, directory: Path) -> None:
        self._command = [sys.executable, "-m", "tests.interop.client.queue_worker", servers, application]
        self._directory = directory
        self.application = application
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        path = self._directory / f"worker-{len(self.running)}.txt"
        with path.open("wb") as said:
            self.running.append(
                subprocess.Popen(self._command, stderr=said, stdout=said, start_new_session=True, cwd=Path.cwd())
            )

    def kill(self, pid: int) -> None:
        """As a machine that is gone: the worker with all that it has started."""
        (worker,) = (each for each in self.running if each.pid == pid)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        self.running.remove(worker)

    def said(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self._directory.glob("worker-*.txt")))

    def close(self) -> None:
        for each in self.running:
            if each.poll() is None:
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


@pytest.fixture(params=["kohort", "kafka", "kafka-4.2"])
def queue_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """One whose locks are short, so that what a killed worker had comes again soon."""
    from ..newest_kafka import Kafka42, NewestKafka, running
    from ..servers import new_server

    if request.param != "kohort":
        MAVEN.require()
        kafka = Kafka42 if request.param == "kafka-4.2" else NewestKafka
        with running(kafka(tmp_path / "kafka", LOCK)) as node:
            yield node
    else:
        server = new_server(tmp_path / "server", LOCK)
        yield server
        server.stop()


@pytest.fixture
def workers(queue_broker: Server, new_name: Callable[[], str], tmp_path: Path) -> Iterator[Workers]:
    JAVA.require()
    application = new_name()
    admin = AdminClient({"bootstrap.servers": queue_broker.bootstrap})
    for topic in ("jobs", "done", "dead"):
        create_topic(admin, f"{application}-{topic}", 1)
    workers = Workers(queue_broker.bootstrap, application, tmp_path)
    yield workers
    workers.close()


@pytest.mark.long
def test_three_workers_on_one_partition_lose_nothing_when_one_is_killed_amid_its_job(
    queue_broker: Server, workers: Workers
) -> None:
    """Each job is done once or more. The lock of the one that was killed ends, and others do its jobs."""
    application, servers = workers.application, queue_broker.bootstrap
    for _ in range(WORKERS):
        workers.start()
    results = Results(servers, application)
    try:
        eventually(lambda: len(members_of(servers, application)) == WORKERS, within=120)
        produce(servers, f"{application}-jobs")
        eventually(lambda: len(results.read().by()) == WORKERS, within=120)
        # It is amid a job: one takes a second, and the next begins at once.
        workers.kill(next(iter(results.by())))
        eventually(results.complete, within=120)
    except AssertionError as error:
        error.add_note(workers.said())
        raise
    finally:
        results.close()
    assert set(results.dead) == REJECTED
    assert set(results.dead.values()) == {"the program rejects it"}
    assert set(results.done) == set(range(JOBS)) - REJECTED
    for each in workers.running:
        each.send_signal(signal.SIGTERM)
    assert [each.wait(60) for each in workers.running] == [0, 0], workers.said()
    assert "accepted" in workers.said()


@pytest.mark.long
def test_jobs_that_outlast_their_locks_are_done_once(queue_broker: Server, workers: Workers) -> None:
    """Another worker waits for what comes free: nothing does, since the locks are renewed."""
    application, servers = workers.application, queue_broker.bootstrap
    for _ in range(2):
        workers.start()
    results = Results(servers, application)
    try:
        eventually(lambda: len(members_of(servers, application)) == 2, within=120)
        produce(servers, f"{application}-jobs", LONG_JOBS, LONG_MS)
        eventually(lambda: results.complete(LONG_JOBS), within=120)
        for each in workers.running:
            each.send_signal(signal.SIGTERM)
        assert [each.wait(60) for each in workers.running] == [0, 0], workers.said()
        results.read()
    except AssertionError as error:
        error.add_note(workers.said())
        raise
    finally:
        results.close()
    assert not results.dead
    assert {job: len(done) for job, done in results.done.items()} == dict.fromkeys(range(LONG_JOBS), 1)
    said = workers.said()
    assert re.search(r"[1-9]\d* renewed", said), said
    assert "lost" not in said, said
