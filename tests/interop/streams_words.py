"""What word count reads and writes, and the batch computation that it must agree with."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

WORDS = [f"word-{number}" for number in range(17)]


class Lines:
    """Writes lines of three words into the partitions of a topic in turn, and remembers them."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic, self.partitions = topic, partitions
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self.written: list[str] = []

    def feed(self) -> None:
        """A line more, acknowledged some time."""
        number = len(self.written)
        line = " ".join(WORDS[number * step % len(WORDS)] for step in (1, 2, 3))
        self.producer.produce(self.topic, line.encode(), partition=number % self.partitions)
        self.producer.poll(0)
        self.written.append(line)
        if number < self.partitions:
            self.flush()  # before others are sent: `members.Feeder` says why

    def flush(self) -> None:
        assert self.producer.flush(60) == 0

    def write(self, number: int) -> None:
        """So many lines more, acknowledged when this returns."""
        for _ in range(number):
            self.feed()
        self.flush()

    def counts(self) -> Counter[str]:
        """How often each word was written: the batch computation."""
        return Counter(word for line in self.written for word in line.split(" "))


class Feeder:
    """Writes a line every 10 ms for as long as the `with` block lasts."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self.stopping.wait(0.01):
            self.lines.feed()

    def __enter__(self) -> Feeder:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join()
        self.lines.flush()


class Output:
    """The records of committed transactions in a topic: the values of each key in their order."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self.consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self.values: dict[str, list[str]] = defaultdict(list)

    def read(self) -> dict[str, list[str]]:
        """All that was there a moment ago."""
        for message in self.consumer.consume(1000, timeout=0.1):
            error = message.error()
            if error is None:
                self.values[message.key().decode()].append(message.value().decode())
            else:
                assert error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN), error
        return self.values

    def counts(self) -> dict[str, int]:
        """How often each word was counted. AssertionError if a count is left out, or comes twice.

        Word count with exactly_once_v2 and no cache writes a record for every word it reads: 1, 2, 3 …
        """
        for word, counts in self.read().items():
            assert counts == [str(number) for number in range(1, len(counts) + 1)], f"{word}: {counts}"
        return {word: len(counts) for word, counts in self.values.items()}

    def close(self) -> None:
        self.consumer.close()


def pairs(
    left: Mapping[str, list[tuple[int, str]]], right: Mapping[str, list[tuple[int, str]]]
) -> dict[str, list[str]]:
    """The windowed join as a batch: of times (ms) and values by key, what is at most ten seconds apart, sorted."""
    joined: dict[str, list[str]] = {}
    for key in left.keys() & right.keys():
        found = [f"{one}+{other}" for at, one in left[key] for then, other in right[key] if abs(at - then) <= 10_000]
        if found:
            joined[key] = sorted(found)
    return joined
