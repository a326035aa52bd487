"""Data directories of a server, damaged anyhow: it starts with all partitions, and a repair leaves nothing wrong."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.log import LogConfig
from tests.broker.conftest import serving
from tests.broker.handlers.conftest import append_records
from tests.cli.support import invoke

SETTINGS = ("offsets.topic.num.partitions=2",)
KEPT = (".lock", "meta.properties")
"""Files that say nothing of records."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "data"

    async def fill() -> None:
        async with serving(path, *SETTINGS) as server:
            for name in ("a", "b"):
                topic = server.broker.topics.create(name, 2)
                for partition in topic.partitions:
                    partition.log.config = LogConfig(segment_bytes=500, index_interval_bytes=100)
                    append_records(server.broker, name, partition.index, 30)
            server.broker.groups.start()
            append_records(server.broker, "__consumer_offsets", 0, 5)

    asyncio.run(fill())
    return path


def flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def zeros(data: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(data))
    size = min(len(data) - first, chance.randrange(200))
    return data[:first] + bytes(size) + data[first + size :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def jump(data: bytes, chance: random.Random) -> bytes:
    """A part is missing, or there twice."""
    return data[: chance.randrange(len(data))] + data[chance.randrange(len(data)) :]


def grow(data: bytes, chance: random.Random) -> bytes:
    return data + chance.randbytes(chance.randrange(300))


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip, flip, zeros, cut, jump, grow)


def damage(directory: Path, chance: random.Random) -> None:
    if chance.random() < 0.5:
        (directory / ".kafka_cleanshutdown").unlink()
    metadata = chance.random() < 0.2
    for _ in range(chance.randint(1, 4)):
        files = sorted(file for file in directory.rglob("*") if file.is_file() and file.name not in KEPT)
        file = chance.choice([each for each in files if ("__cluster_metadata" in str(each)) == metadata] or files)
        content = file.read_bytes()
        if not content or chance.random() < 0.15:
            file.unlink()
        else:
            file.write_bytes(chance.choice(DAMAGES)(content, chance))


def started(directory: Path) -> list[str]:
    """The reasons of offline partitions."""

    async def start() -> list[str]:
        async with serving(directory, *SETTINGS) as server:
            offline = [partition.offline for partition in server.broker.topics.partitions() if partition.offline]
            for partition in server.broker.topics.partitions():
                for _ in partition.log.valid_batches():
                    pass
        return offline

    return asyncio.run(asyncio.wait_for(start(), 30))


def survive(original: Path, directory: Path, seed: int) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(original, directory)
    damage(directory, random.Random(seed))
    try:
        assert started(directory) == [], f"seed {seed}"
    except OSError as error:  # nothing but the metadata log ends a start
        assert "the metadata log can't be used" in str(error)
        assert "kohort log check" in str(error)
    result = invoke("log", "check", os.fspath(directory), "--repair", "--json")
    # Strays are the operator's; and what has no place in the log any more stays aside.
    left = [each for each in json.loads(result.stdout) if each["kind"] not in ("stray", "missing directory")]
    assert [each for each in left if each["kind"] != "set aside" or each["remedy"]] == [], f"seed {seed}"
    assert started(directory) == [], f"seed {seed}"


def test_some_damages(original: Path, tmp_path: Path) -> None:
    for seed in range(25):
        survive(original, tmp_path / "data", seed)


@pytest.mark.long
def test_many_damages(original: Path, tmp_path: Path) -> None:
    for seed in range(25, 425):
        survive(original, tmp_path / "data", seed)
