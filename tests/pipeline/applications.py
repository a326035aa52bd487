"""An application that runs in the test's own process, until a watcher has seen enough and signals its end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import confluent_kafka
from pyspark.sql import SparkSession

from kohort.client.admin import Admin
from kohort.protocol.errors import KafkaError
from kohort.spark import StreamsApp
from kohort.spark.monitoring.events import STREAM, EpochDone, Listener


class Heard(Listener):
    """The epochs that were committed, and what went wrong."""

    def __init__(self) -> None:
        self.epochs: list[EpochDone] = []
        self.failures: list[str] = []

    def epoch(self, done: EpochDone) -> None:
        self.epochs.append(done)

    def failed(self, text: str) -> None:
        self.failures.append(text)

    def total(self, what: str, **of: str) -> int:
        """The sum of a number over epochs: `total("records", subtopology="0", input="stream")`."""
        some = (
            each for each in tuple(self.epochs) if all(getattr(each, name) == wanted for name, wanted in of.items())
        )
        return sum(getattr(each, what) for each in some)

    def through(self, sent: int, *, moved: bool = False, sources: Sequence[str] = ("0",)) -> bool:
        """Whether so many records were read, and all that went to repartition topics (`moved`).

        `sources` are the subtopologies that read what was sent.
        """
        if sum(self.total("records", subtopology=each, input=STREAM) for each in sources) < sent:
            return False
        others = sum(each.records for each in tuple(self.epochs) if each.subtopology not in sources)
        return not moved or others >= self.total("repartitioned")


def run_until(
    app: StreamsApp, spark: SparkSession, heard: Heard, is_done: Callable[[], bool], *others: Listener
) -> None:
    """Run an application until it's done, then stop it as an operator does: with a signal.

    A failure that it is told of ends it, too. `others` listen beside.
    """
    over = threading.Event()
    trouble: list[BaseException] = []

    def watch() -> None:
        deadline = time.monotonic() + 120
        try:
            while not is_done() and time.monotonic() < deadline and not heard.failures:
                if over.wait(0.2):
                    return
        except BaseException as error:
            trouble.append(error)
        os.kill(os.getpid(), signal.SIGTERM)

    # A signal that comes when the application has ended by itself is no harm.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        app.run(spark, listeners=[heard, *others], progress=False)
    finally:
        over.set()
        watcher.join()
        signal.signal(signal.SIGTERM, before)
    if trouble:
        raise trouble[0]


def run_in_steps(
    app: StreamsApp,
    spark: SparkSession,
    steps: Sequence[Callable[[], int]],
    look: Callable[[], None] = lambda: None,
    *,
    moved: bool = False,
    sources: Sequence[str] = ("0",),
) -> Heard:
    """Run an application step by step: what one sends is done with before the next. Nothing may fail.

    Args:
        steps: each sends records, and says how many.
        look: called after each step.
        moved: whether rows go through a repartition topic.
        sources: the subtopologies that read what is sent.
    """
    heard = Heard()
    done = 0

    def script() -> Iterator[bool]:
        nonlocal done
        sent = 0
        for step in steps:
            sent += step()
            while not heard.through(sent, moved=moved, sources=sources):
                yield False
            look()
            done += 1
        yield True

    going = script()
    run_until(app, spark, heard, lambda: next(going))
    assert not heard.failures
    assert done == len(steps)
    return heard


def create_topics(servers: str, *names: str, partitions: int = 2) -> None:
    """Topics of two partitions, or so many."""

    async def create() -> None:
        async with Admin(servers) as admin:
            for name in names:
                await admin.topics.create(name, partitions=partitions)

    asyncio.run(create())


def members_of(servers: str, group: str) -> Sequence[Any]:
    """The members of a group, as it is described; none if there is no group."""

    async def describe() -> Sequence[Any]:
        async with Admin(servers) as admin:
            try:
                return (await admin.groups.describe(group))[group].members
            except KafkaError:
                return ()

    return asyncio.run(describe())


def producer(servers: str) -> confluent_kafka.Producer:
    """One that puts keys where Kafka's own puts them."""
    return confluent_kafka.Producer({"bootstrap.servers": servers, "partitioner": "murmur2"})


def read(servers: str, topic: str) -> list[confluent_kafka.Message]:
    """All that is committed in a topic."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "check", "isolation.level": "read_committed",
         "enable.partition.eof": True, "enable.auto.commit": False, "enable.metrics.push": False}
    )  # fmt: skip
    found, ended = [], 0
    try:
        found_topic = consumer.list_topics(topic, timeout=10).topics[topic]
        if found_topic.error is not None:
            raise confluent_kafka.KafkaException(found_topic.error)
        # Those that there are: of another one nobody would ever say that it has ended.
        there = [
            confluent_kafka.TopicPartition(topic, n, confluent_kafka.OFFSET_BEGINNING) for n in found_topic.partitions
        ]
        consumer.assign(there)
        while ended < len(there) and (message := consumer.poll(10)) is not None:
            if message.error() is None:
                found.append(message)
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended += 1
            else:
                raise confluent_kafka.KafkaException(message.error())
    finally:
        consumer.close()
    return found
