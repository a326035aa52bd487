"""Produce and consume with librdkafka, so that it, and not Python, makes the load.

kcat is librdkafka and little else: it hands over and takes a record in about half a microsecond, where the Python
client's list calls (`produce_batch`, `consume`) take one.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.broker.peers import Peer
from benchmarks.broker.process import cpu_seconds

PARTITIONS = 4
TIMEOUT = 120.0
PRODUCER = ("-X", "linger.ms=10", "-X", "queue.buffering.max.messages=1000000")
CONSUMER = ("-X", "queued.min.messages=500000")


@dataclass(frozen=True)
class Load:
    """So many records of so many bytes, in a file for kcat: a record a line."""

    records: int
    size: int
    file: Path

    @staticmethod
    def make(records: int, size: int, directory: Path) -> Load:
        """Write the file."""
        file = directory / f"records-{size}"
        line = random.Random(size).randbytes(size).hex()[:size].encode() + b"\n"
        file.write_bytes(line * records)
        return Load(records, size, file)


@dataclass(frozen=True)
class Flow:
    """How fast a load went, and how busy both sides were with it."""

    megabytes: float
    """MB/s of values."""
    records: float
    """Records a second."""
    client: float
    """Cores that the client used."""
    server: float
    """Cores that the server used."""


def create_topic(peer: Peer, topic: str, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 4})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(TIMEOUT)


def produce(peer: Peer, topic: str, load: Load) -> Flow:
    """From the start of the client until all is acknowledged; batched (10 ms), acks=all, uncompressed."""
    return _timed(peer, load, "-P", "-t", topic, "-l", str(load.file), *PRODUCER)


def consume(peer: Peer, topic: str, load: Load) -> Flow:
    """From the start of the client until all is read; checksums aren't checked, which is the default."""
    return _timed(peer, load, "-C", "-t", topic, "-o", "beginning", "-c", str(load.records), "-q", *CONSUMER)


def _timed(peer: Peer, load: Load, *arguments: str) -> Flow:
    before, served, started = os.times(), cpu_seconds(peer.pid), time.perf_counter()
    subprocess.run(["kcat", "-b", peer.bootstrap, *arguments], check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT)
    seconds, after = time.perf_counter() - started, os.times()
    served = cpu_seconds(peer.pid) - served
    busy = after.children_user - before.children_user + after.children_system - before.children_system
    return Flow(load.records * load.size / seconds / 1e6, load.records / seconds, busy / seconds, served / seconds)


def latency(peer: Peer, topic: str, number: int, size: int = 100) -> tuple[float, float]:
    """p50 and p99, in ms, from handing over a record to its acknowledgement by all; one record at a time."""
    producer = Producer({"bootstrap.servers": peer.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 4})
    producer.list_topics(topic, TIMEOUT)
    value = random.Random(size).randbytes(size)
    taken = []
    warm_up = number // 10
    for _ in range(warm_up + number):
        started = time.perf_counter()
        producer.produce(topic, value)
        while len(producer):
            producer.poll(1.0)
        taken.append((time.perf_counter() - started) * 1e3)
    taken = sorted(taken[warm_up:])
    return taken[number // 2], taken[number * 99 // 100]
