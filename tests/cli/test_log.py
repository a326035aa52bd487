"""`kohort log check`, on data directories of real servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.server import Server
from kohort.log import LogConfig
from kohort.protocol.records.batch import read_header
from tests.broker.conftest import serving
from tests.broker.handlers.conftest import append_records
from tests.cli.support import invoke

PER_TOPIC = 20


def run(directory: Path, test: Callable[[Server], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serving(directory) as server:
            await asyncio.wait_for(test(server), 30)

    asyncio.run(main())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with two topics of several segments."""

    async def fill(server: Server) -> None:
        for name in ("orders", "people"):
            topic = server.broker.topics.create(name, 1)
            topic.partitions[0].log.config = LogConfig(segment_bytes=500, index_interval_bytes=100)
            append_records(server.broker, name, 0, PER_TOPIC)

    run(tmp_path / "data", fill)
    return tmp_path / "data"


def flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


def segments(data: Path, partition: str = "orders-0") -> list[Path]:
    return sorted((data / partition).glob("*.log"))


def check(data: Path, *options: str, code: int = 1) -> Any:
    """The findings, as JSON."""
    result = invoke("log", "check", str(data), "--json", *options)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def readable(data: Path, topic: str = "orders") -> list[int]:
    found: list[int] = []

    async def read(server: Server) -> None:
        log = server.broker.topics.online_partition(topic, 0).log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            batch = log.read(offset, 1, up_to=log.log_end_offset)
            if not batch:
                break
            header = read_header(batch)
            found.append(header.base_offset)
            offset = header.next_offset

    run(data, read)
    return found


def test_nothing_is_wrong(data: Path) -> None:
    assert check(data, code=0) == []
    result = invoke("log", "check", str(data))
    assert (result.exit_code, result.stdout) == (0, "Nothing is wrong.\n")
    assert readable(data) == list(range(PER_TOPIC))  # the clean shutdown is still marked


def test_a_table_says_what_is_wrong(data: Path) -> None:
    flip(segments(data)[1], 65)
    first = int(segments(data)[1].stem)
    result = invoke("log", "check", str(data))
    assert result.exit_code == 1
    words = "orders-0", "damaged batch", segments(data)[1].name, f" {first} ", "checksum", "--repair would", "cut out"
    for word in words:
        assert word in result.stdout
    assert "people" not in result.stdout


def test_a_repair_shows_what_it_does_and_does_it(data: Path) -> None:
    damaged = int(segments(data)[1].stem)
    flip(segments(data)[1], 65)
    gone = segments(data, "people-0")[1]
    following = int(segments(data, "people-0")[2].stem)
    gone.unlink()
    assert {each["partition"]: each["kind"] for each in check(data)} == {
        "orders-0": "damaged batch", "people-0": "missing segment",
    }  # fmt: skip
    result = invoke("log", "check", str(data), "--repair")
    assert result.exit_code == 0, result.output
    assert "cut out" in result.stdout
    assert result.stdout.endswith("After the repair:\nNothing is wrong.\n")
    assert readable(data) == [offset for offset in range(PER_TOPIC) if offset != damaged]
    assert readable(data, "people") == [*range(int(gone.stem)), *range(following, PER_TOPIC)]


def test_only_one_partition(data: Path) -> None:
    flip(segments(data)[1], 65)
    assert check(data, "--partition", "people-0", code=0) == []
    assert len(check(data, "--partition", "orders-0")) == 1
    result = invoke("log", "check", str(data), "--partition", "order-0")
    assert (result.exit_code, "did you mean orders-0?" in result.output) == (2, True)


def test_what_a_server_has_set_aside_comes_back(data: Path) -> None:
    """The whole way: damage, crash, recovery, new records, repair."""
    (data / ".kafka_cleanshutdown").unlink()
    (data / "recovery-point-offset-checkpoint").unlink()
    flip(segments(data)[1], 65)
    damaged = int(segments(data)[1].stem)

    async def go_on(server: Server) -> None:
        append_records(server.broker, "orders", 0, 1)

    run(data, go_on)
    assert readable(data) == [*range(damaged), PER_TOPIC]
    assert {each["kind"] for each in check(data)} == {"set aside"}
    assert check(data, "--repair", "--yes", code=0) == []
    assert readable(data) == [offset for offset in range(PER_TOPIC + 1) if offset != damaged]


def test_a_damaged_metadata_log_is_repaired(data: Path) -> None:
    file = data / "__cluster_metadata-0" / "00000000000000000000.log"
    content = file.read_bytes()
    second = read_header(content).size
    flip(file, second + 70)  # the topic `orders`

    async def nothing(_: Server) -> None:
        pass

    with pytest.raises(OSError, match="kohort log check"):
        run(data, nothing)
    findings = check(data)
    assert ("__cluster_metadata-0", "damaged batch") in {(each["partition"], each["kind"]) for each in findings}
    assert ("orders-0", "stray") in {(each["partition"], each["kind"]) for each in findings}
    invoke("log", "check", str(data), "--repair")
    assert readable(data, "people") == list(range(PER_TOPIC))
    assert len(list(data.glob("orders-0.*-stray"))) == 1
    assert {each["kind"] for each in check(data)} == {"stray"}


def test_a_metadata_log_that_was_cut_short_is_repaired(data: Path) -> None:
    file = data / "__cluster_metadata-0" / "00000000000000000000.log"
    file.write_bytes(file.read_bytes()[:-1])  # the topic `people` is the last

    async def nothing(_: Server) -> None:
        pass

    for _ in range(2):
        with pytest.raises(OSError, match="it was on the disk up to"):
            run(data, nothing)
    (finding,) = check(data, "--partition", "__cluster_metadata-0")
    assert (finding["kind"], finding["remedy"]) == ("wrong checkpoint", "set to the end")
    assert check(data, "--partition", "__cluster_metadata-0", "--repair", code=0) == []
    assert readable(data) == list(range(PER_TOPIC))


def test_a_server_that_uses_it_forbids_a_repair(data: Path) -> None:
    async def repair(_: Server) -> None:
        result = invoke("log", "check", str(data), "--repair")
        assert (result.exit_code, "another server uses" in result.output) == (1, True)
        assert check(data, code=0) == []

    run(data, repair)


def test_what_belongs_to_no_topic_or_is_not_there(data: Path) -> None:
    (data / "nobody-3").mkdir()
    (data / "old-0.1234-stray").mkdir()
    (data / "people-0").rename(data / "elsewhere")
    kinds = {(each["partition"], each["kind"]) for each in check(data)}
    assert kinds == {("nobody-3", "stray"), ("old-0.1234-stray", "stray"), ("people-0", "missing directory")}


def test_a_metadata_log_that_is_gone(data: Path) -> None:
    (data / "__cluster_metadata-0").rename(data / "elsewhere")
    (finding,) = check(data)
    assert (finding["partition"], finding["kind"]) == ("__cluster_metadata-0", "missing directory")
    assert finding["offsets"][0]["from"] == 0


def test_a_metadata_log_that_begins_later_says_nothing_of_strays_and_gaps(data: Path) -> None:
    """Apache Kafka removes what a snapshot has; and files of other names may be there."""
    metadata = data / "__cluster_metadata-0"
    content = (metadata / "00000000000000000000.log").read_bytes()
    (metadata / "notes.log").write_bytes(b"not a segment")
    assert check(data, code=0) == []
    second = read_header(content).size
    for file in metadata.glob("0*.*"):
        file.unlink()
    (metadata / "00000000000000000001.log").write_bytes(content[second:])
    assert not {"stray", "unreadable"} & {each["kind"] for each in check(data)}


@pytest.mark.parametrize("options", [(), ("--repair",)])
def test_what_was_shown_is_not_shown_again(data: Path, options: tuple[str, ...]) -> None:
    (data / "nobody-3").mkdir()
    result = invoke("log", "check", str(data), *options)
    assert (result.exit_code, result.stdout.count("nobody-3")) == (1, 1)
    (data / "nobody-3").rmdir()
    assert invoke("log", "check", str(data), *options).stdout == "Nothing is wrong.\n"


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_no_data_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    result = invoke("log", "check", str(tmp_path / name))
    assert result.exit_code == 2
    assert name in result.output
