"""Damaged data directories: the server says what to do, or starts without the partition."""

from __future__ import annotations

import asyncio
import errno
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.config import Settings
from kohort.broker.log_manager import LogManager
from kohort.broker.server import Server
from kohort.broker.topics import Topic
from kohort.log import DataDirectory
from tests.broker.conftest import serving

METADATA = "__cluster_metadata-0"


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def storage(directory: Path) -> LogManager:
    settings = Settings.load(None, {}, [])
    return LogManager(directory, 1, durable=False, settings=settings, clock=lambda: 1_700_000_000_000)


def server_with_topics(directory: Path, count: int) -> None:
    async def create() -> None:
        async with serving(directory) as server:
            for number in range(count):
                server.broker.topics.create(f"topic-{number}", 1)

    asyncio.run(create())


def refused(directory: Path) -> OSError:
    """How a server refuses to start."""

    async def start() -> None:
        async with serving(directory):
            pass

    with pytest.raises(OSError) as caught:
        asyncio.run(asyncio.wait_for(start(), 10))
    assert "backup" in caught.value.strerror
    assert caught.value.filename == str(directory / METADATA)
    return caught.value


@pytest.mark.parametrize("at", [0, 8, 10, 16, 40, 70])
@pytest.mark.parametrize("topics", [3, 100])
def test_a_damaged_metadata_log_is_told_of(tmp_path: Path, topics: int, at: int) -> None:
    """It was closed cleanly. Damage in offset, length, magic, time or a name: at its end, where opening it looks, or
    before that, where reading it does.
    """
    server_with_topics(tmp_path, topics)
    file = tmp_path / METADATA / "00000000000000000000.log"
    content = bytearray(file.read_bytes())
    first = 12 + int.from_bytes(content[8:12], "big")
    content[first + at] ^= 0x40
    file.write_bytes(content)
    refused(tmp_path)
    assert (tmp_path / "topic-0-0").is_dir()  # nothing was put aside


def test_going_on_with_what_is_left_of_the_metadata(tmp_path: Path) -> None:
    server_with_topics(tmp_path, 3)
    file = tmp_path / METADATA / "00000000000000000000.log"
    os.truncate(file, file.stat().st_size - 1)
    assert "recovery-point-offset-checkpoint" in str(refused(tmp_path))
    assert "recovery-point-offset-checkpoint" in str(refused(tmp_path))  # it has forgotten nothing meanwhile
    (tmp_path / "recovery-point-offset-checkpoint").unlink()

    async def topics() -> list[str]:
        async with serving(tmp_path) as server:
            return [topic.name for topic in server.broker.topics]

    assert asyncio.run(topics()) == ["topic-0", "topic-1"]
    assert len(list(tmp_path.glob("topic-2-0.*-stray"))) == 1


def test_a_metadata_log_that_cannot_be_opened_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server_with_topics(tmp_path, 1)
    with monkeypatch.context() as patched:
        patched.setattr("kohort.log.log.load", failing(errno.EACCES))
        assert "Permission denied" in str(refused(tmp_path))
    DataDirectory(tmp_path).close({})  # it isn't locked any more


def test_a_metadata_log_that_cannot_be_begun_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwritev", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left") as caught:
        Server(Settings.of({"listeners": "PLAINTEXT://127.0.0.1:0"}), data_dir=tmp_path)
    assert caught.value.filename == str(tmp_path / METADATA)


@pytest.mark.parametrize("function", ["read_text", "write_topic_id"])
def test_a_partition_does_without_its_topic_id(tmp_path: Path, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = storage(tmp_path)
    topic = Topic("one", uuid.uuid4())
    if function == "read_text":
        monkeypatch.setattr(Path, function, failing(errno.EACCES))
    else:
        monkeypatch.setattr(f"kohort.broker.log_manager.{function}", failing(errno.ENOSPC))
    [log] = kept.open(topic, range(1))
    assert log.offline is None
    log.close()


def test_strays_are_put_aside_and_none_is_lost(tmp_path: Path) -> None:
    """A name as long as may be leaves no room for a word more; and each stray keeps what it has."""
    kept = storage(tmp_path)
    name = "n" * 249
    for content in ("first", "second"):
        (tmp_path / f"{name}-0").mkdir()
        (tmp_path / f"{name}-0" / "data").write_text(content)
        kept.set_aside_strays([])
    strays = list(tmp_path.glob("*-stray"))
    assert sorted((stray / "data").read_text() for stray in strays) == ["first", "second"]
    assert not (tmp_path / f"{name}-0").exists()


def test_a_partition_of_another_topic_of_that_name_is_put_aside(tmp_path: Path) -> None:
    kept = storage(tmp_path)
    [old] = kept.open(Topic("one", uuid.uuid4()), range(1))
    old.close()
    [new] = kept.open(Topic("one", uuid.uuid4()), range(1))
    assert new.offline is None
    assert len(list(tmp_path.glob("one-0.*-stray"))) == 1
    new.close()


def test_properties_that_make_no_sense(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"meta\.properties"):
        storage(tmp_path)


def test_stopping_syncs_nothing_for_partitions_that_nobody_has_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def spied(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    async def main() -> None:
        async with serving(tmp_path, "offsets.topic.num.partitions=50") as server:
            server.broker.groups.start()
            monkeypatch.setattr(os, "fsync", spied)

    asyncio.run(main())
    assert synced
    assert not [path for path in synced if "__consumer_offsets" in path]


def test_a_metadata_log_that_is_gone_is_told_of(tmp_path: Path) -> None:
    """Without it all partitions would be set aside as strays, for a disk that wasn't mounted, say."""
    server_with_topics(tmp_path, 3)
    kept = (tmp_path / METADATA).rename(tmp_path / "elsewhere")
    for _ in range(2):
        assert "it isn't there, but it was on the disk up to offset" in str(refused(tmp_path))
        assert not (tmp_path / METADATA).exists()  # so that a backup can be put there
    assert not list(tmp_path.glob("*-stray"))
    kept.rename(tmp_path / METADATA)

    async def topics() -> list[str]:
        async with serving(tmp_path) as server:
            return [topic.name for topic in server.broker.topics]

    assert asyncio.run(topics()) == ["topic-0", "topic-1", "topic-2"]
