"""kcat, as one would use it in a shell: -L, -P, -C, -Q, -G."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable

import pytest

from ..waiting import eventually
from .clients import LIBRARIES, Message
from .clients.kcat_client import command, kcat
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]


@pytest.fixture
def topic(server: Server, new_topic: NewTopic) -> str:
    """Ten records, "0" to "9", at 1000, 2000, … 10000 ms, in partition 0 of two."""
    topic = new_topic(2)
    messages = [Message(b"%d" % i, b"key", timestamp=1000 * (i + 1)) for i in range(10)]
    LIBRARIES[0].produce(server.bootstrap, topic, messages)
    return topic


def test_list(server: Server, topic: str) -> None:
    found = json.loads(kcat("-L", "-J", "-b", server.bootstrap, "-t", topic))
    assert [broker["name"] for broker in found["brokers"]] == [server.bootstrap]
    assert [t["topic"] for t in found["topics"]] == [topic]
    assert [p["partition"] for p in found["topics"][0]["partitions"]] == [0, 1]


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (["-o", "beginning"], "0123456789"),
        (["-o", "-3"], "789"),
        (["-o", "4"], "456789"),
        (["-o", "s@2500"], "23456789"),
        (["-o", "s@2500", "-o", "e@5500"], "234"),
        (["-o", "beginning", "-c", "2"], "01"),
        (["-o", "end"], ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_consume_from(begin: list[str], expected: str, server: Server, topic: str) -> None:
    assert (
        kcat("-C", "-e", "-q", "-b", server.bootstrap, "-t", topic, "-p", "0", "-f", "%s", *begin) == expected.encode()
    )


def test_compresses(server: Server, new_topic: NewTopic) -> None:
    """Debian's librdkafka does only where Produce begins at 0 in ApiVersions, and says so only when it is asked."""
    topic = new_topic(1)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        arguments = command("-P", "-b", server.bootstrap, "-t", topic, "-z", codec, "-d", "msg")
        made = subprocess.run(arguments, input=b"tea" * 1000, capture_output=True, timeout=60, check=True)
        assert f", {codec})" in made.stderr.decode()


@pytest.mark.parametrize(("timestamp", "offset"), [(0, 0), (2500, 2), (10_000, 9), (10_001, -1), (-2, 0), (-1, 10)])
def test_query(timestamp: int, offset: int, server: Server, topic: str) -> None:
    said = kcat("-Q", "-b", server.bootstrap, "-t", f"{topic}:0:{timestamp}")
    assert said.decode().split() == [topic, "[0]", "offset", str(offset)]


def test_keys_headers_and_all_partitions(server: Server, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    lines = b"".join(b"key-%d:value-%d\n" % (i, i) for i in range(100))
    kcat("-P", "-b", server.bootstrap, "-t", topic, "-K", ":", "-H", "who=kcat", "-z", "snappy", given=lines)
    said = kcat("-C", "-e", "-q", "-b", server.bootstrap, "-t", topic, "-f", "%k:%s %h %p\\n").decode()
    found = [line.split() for line in said.splitlines()]
    assert sorted(pair for pair, _, _ in found) == sorted(lines.decode().split())
    assert {headers for _, headers, _ in found} == {"who=kcat"}
    assert {partition for _, _, partition in found} == {"0", "1", "2"}


def test_a_file_is_one_transaction(server: Server, new_topic: NewTopic, new_name: NewName) -> None:
    topic = new_topic()
    given = b"a\nb\nc\n"
    kcat("-P", "-b", server.bootstrap, "-t", topic, "-X", f"transactional.id={new_name()}", given=given)
    said = kcat("-C", "-e", "-q", "-b", server.bootstrap, "-t", topic, "-X", "isolation.level=read_committed")
    assert said == given


def test_two_of_a_group_share_the_partitions(server: Server, topic: str, new_name: NewName) -> None:
    group = new_name()
    member = command(
        "-b", server.bootstrap, "-G", group, "-u", "-q", "-f", "%p %s\\n", "-X", "auto.offset.reset=earliest",
        "-X", "heartbeat.interval.ms=300", "-X", "fetch.wait.max.ms=50", topic,
    )  # fmt: skip
    members = [subprocess.Popen(member, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    said: list[list[bytes]] = [[], []]
    readers = [
        threading.Thread(target=lambda m=m, lines=lines: lines.extend(iter(m.stdout.readline, b"")))
        for m, lines in zip(members, said, strict=True)
    ]
    for reader in readers:
        reader.start()
    try:
        eventually(lambda: sum(map(len, said)) == 10, what="the ten that are there are read")

        def both_work() -> bool:
            kcat("-P", "-b", server.bootstrap, "-t", topic, "-p", "0", given=b"0\n")
            kcat("-P", "-b", server.bootstrap, "-t", topic, "-p", "1", given=b"1\n")
            last = [lines[-1][:1] for lines in said if lines]
            return sorted(last) == [b"0", b"1"]

        eventually(both_work, what="one reads each partition")
    finally:
        for member in members:
            member.terminate()
            member.wait(20)
        for reader in readers:
            reader.join()
        for member in members:
            assert member.stdout and member.stderr
            member.stdout.close()
            member.stderr.close()
    assert [member.returncode for member in members] == [0, 0]
