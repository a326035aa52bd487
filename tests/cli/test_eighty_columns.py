"""Tables in a terminal of 80 columns: no line is wider, and no id is broken in two lines."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from kohort.client import Consumer, StreamsMember
from kohort.client.streams_member import Assigned, Subtopology, Topology
from kohort.testing import Broker
from tests.waiting import run

ROOT = Path(__file__).parents[2]
COLUMNS = 80
TOPIC = "orders-of-a-long-and-winding-name-in-europe"
APP = "an-application-that-counts-orders-by-country"
COMMANDS = [
    "place docs/examples/word-count.yaml --what-if add=2,zone=c",
    f"place --from-group {APP}",
    f"groups describe {APP}",
    "groups list",
    "groups describe billing",
    "groups members billing",
    f"groups members {APP}",
    "groups offsets billing",
    "topics list",
    "logdirs",
    f"topics describe {TOPIC}",
    "cluster",
    "apps list",
    f"apps describe {APP}",
    "wire list",
    "wire list --data",
    "wire show StreamsGroupHeartbeat --response",
]
AS_IT_IS = re.compile(r"^  [{}\"\[\] ]|^  [0-9a-f]+$")
"""Lines that are to be copied: an example, and its bytes."""


def in_terminal(command: str, servers: str) -> list[str]:
    """What a command prints in a terminal of so many columns."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "FORCE_COLOR")}
    environment |= {"KOHORT_BOOTSTRAP_SERVERS": servers, "TERM": "dumb", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "kohort.cli", *command.split()], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
        stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    read = bytearray()
    try:
        while part := os.read(ours, 65_536):
            read += part
    except OSError:
        pass  # nobody writes to it any more
    finally:
        os.close(ours)
    said = read.decode().replace("\r", "")
    assert process.wait(60) == 0, said
    return [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).rstrip() for line in said.splitlines()]


@pytest.fixture(scope="module")
def printed() -> Iterator[tuple[dict[str, list[str]], list[str]]]:
    """What each command prints of a cluster with a streams group and a consumer group; and ids that are in it."""

    async def look(servers: str) -> tuple[dict[str, list[str]], list[str]]:
        topology = Topology({"orders": Subtopology(source_topics=[TOPIC])})
        members = [StreamsMember(servers, APP, topology) for _ in range(2)]
        async with Consumer(servers, group_id="billing") as consumer, members[0], members[1]:
            consumer.subscribe(TOPIC)
            assert isinstance(await members[0].next_event(), Assigned)  # the other has none until that gives some up
            while not consumer.assignment():
                await consumer.poll(timeout_ms=100)
            known = [each.member_id for each in members]
            return {each: await asyncio.to_thread(in_terminal, each, servers) for each in COMMANDS}, known

    with Broker({"num.partitions": 12, "group.streams.initial.rebalance.delay.ms": 0}) as broker:
        from kohort.testing import Filling

        Filling(broker, "test").topic(name=TOPIC, partitions=12)
        yield run(look(broker.bootstrap_servers))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_and_no_id_is_broken(command: str, printed: tuple[dict[str, list[str]], list[str]]) -> None:
    lines, ids = printed[0][command], [*printed[1], TOPIC, APP]
    assert lines
    if "wire show" not in command:
        assert [line for line in lines if cell_len(line) > COLUMNS] == []
    else:
        assert [line for line in lines if cell_len(line) > COLUMNS and not AS_IT_IS.match(line)] == []
    text = "\n".join(lines)
    for each in ids:
        for found in re.finditer(re.escape(each[:8]) + r"\S*", text):
            whole = found[0].startswith(each) or found[0].startswith(f"/{each}")
            cut = re.match(r"(\S*?)…(\S*)", found[0])
            told = cut is not None and each.startswith(cut[1]) and cut[2].rstrip(":,") in each
            others = any(found[0].startswith(other) for other in ids)
            assert whole or told or others, f"{each} is broken: {found[0]}\n{text}"
