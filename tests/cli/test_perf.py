"""`kohort perf`, as a user calls it, and what it counts."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.cli.data.choose_path import choose_path
from kohort.cli.measuring.consuming import ConsumingMeasure
from kohort.cli.measuring.latencies import SHARES, Latencies
from kohort.cli.measuring.payloads import block_records
from kohort.cli.measuring.round_trips import RoundTripMeasure
from kohort.client.consumer import Consumer
from kohort.client.producer import Producer
from tests.cli.administering import Cluster, cluster
from tests.cli.support import invoke


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


def topic(at: Cluster, name: str, partitions: int = 2) -> str:
    at.ok("topics", "create", name, "--partitions", str(partitions))
    return name


def ends(at: Cluster, name: str) -> int:
    (described,) = at.json("topics", "describe", name)
    return sum(each["end_offset"] for each in described["partitions"])


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 5)), min_size=1))
def test_latencies_are_those_of_the_records_to_one_percent(counted: list[tuple[float, int]]) -> None:
    found = Latencies()
    for seconds, records in counted:
        found.add(seconds, records)
    every = sorted(seconds for seconds, records in counted for _ in range(records))
    assert found.count == len(every) and found.longest == every[-1]
    assert found.mean == pytest.approx(sum(every) / len(every))
    for share in SHARES.values():
        exact = every[math.ceil(share * len(every)) - 1]
        assert min(exact, found.longest) <= found.at(share) + 1e-12
        assert found.at(share) <= max(exact * 1.0101, 1.01e-6)


def test_without_records_there_are_no_latencies() -> None:
    assert Latencies().as_json() is None and Latencies().at(0.5) == 0


@pytest.mark.parametrize(
    ("size", "rate", "records"),
    [(100, None, 2621), (0, None, 4096), (10**6, None, 1), (100, 50.0, 1), (100, 5_000.0, 50), (100, 10.0**9, 2621)],
)
def test_how_many_leave_at_once(size: int, rate: float | None, records: int) -> None:
    assert block_records(size, rate) == records


@pytest.mark.parametrize("columns", [True, False])
def test_producing_and_consuming_count_each_record(at: Cluster, monkeypatch: pytest.MonkeyPatch, columns: bool) -> None:
    if not columns:
        from kohort.cli.data import choose_path
        from kohort.extras import ARROW

        monkeypatch.setattr(choose_path, "are_installed", lambda packages: packages is not ARROW)
    name = topic(at, f"t-{columns}")
    made = at.json("perf", "produce", name, "--records", "10000", "--size", "10")
    assert (made["measured"], made["records"], made["bytes"], made["lost"]) == ("produce", 10_000, 100_000, 0)
    assert not made["interrupted"] and ends(at, name) == 10_000
    assert made["records_per_second"] == pytest.approx(10_000 / made["seconds"], rel=1e-3)
    latency = made["latency_ms"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"] <= made["seconds"] * 1000 + 1
    read = at.json("perf", "consume", name)
    assert (read["records"], read["bytes"], read["latency_ms"]) == (10_000, 100_000, None)
    assert 0 < read["first_record_ms"] <= read["seconds"] * 1000 + 1
    read = at.json("perf", "consume", name, "--records", "10")
    assert (read["records"], read["bytes"]) == (10, 100)
    reading = consuming_while_others_write(at.servers, name, 10_000)
    assert (reading.outcome.records, reading.outcome.bytes) == (10_000, 100_000)


def consuming_while_others_write(servers: str, name: str, there: int) -> ConsumingMeasure:
    """Measures a topic that had so many records when it began, and has more when they are fetched."""

    class Growing(Consumer):
        async def beginning_offsets(self, *partitions: Any, **options: Any) -> Any:
            async with Producer(servers) as producer:  # the ends have been asked for already
                for partition in partitions:
                    await producer.send(name, b"late", partition=partition.partition)
            return await super().beginning_offsets(*partitions, **options)

    async def measured() -> ConsumingMeasure:
        async with Growing(servers) as consumer:
            measure = ConsumingMeasure(consumer, name, choose_path(), records=None)
            await measure.run([0, 1])
            return measure

    return asyncio.run(measured())


def test_a_transactional_id_is_for_others(at: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("transactional.id=mine\ngroup.id=ours\n")
    name = topic(at, "plain")
    for what in ("produce", "e2e"):
        found = at.json("perf", what, name, "--records", "5", "--config", str(config))
        assert (found["records"], found["lost"]) == (5, 0)


def test_what_sending_fails_with_is_raised(at: Cluster) -> None:
    name = topic(at, "failing")

    async def measured() -> None:
        async with Producer(at.servers, transactional_id="x") as producer, Consumer(at.servers) as consumer:
            measure = RoundTripMeasure(producer, consumer, name, records=5, size=20, rate=100)
            await measure.run([0, 1])

    with pytest.raises(RuntimeError, match="transaction"):  # none was begun
        asyncio.run(measured())


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize("option", ["--rate", "--duration", "--linger"])
def test_numbers_are_finite(option: str, number: str) -> None:
    done = invoke("perf", "produce", "t", option, number)
    assert done.exit_code == 2 and "is no number" in done.stderr, done.stderr


def test_a_rate_is_kept(at: Cluster) -> None:
    made = at.json("perf", "produce", topic(at, "slow"), "--records", "50", "--rate", "200", "--partition", "1")
    assert made["records"] == 50 and made["seconds"] >= 48 / 200  # two leave at once


def test_a_time_is_kept(at: Cluster) -> None:
    made = at.json("perf", "produce", topic(at, "timed"), "--duration", "0.2", "--rate", "1000")
    assert 0 < made["records"] <= 201 and ends(at, "timed") == made["records"]


def test_records_go_there_and_back(at: Cluster) -> None:
    found = at.json("perf", "e2e", topic(at, "trips"), "--records", "40", "--rate", "400", "--size", "20")
    assert (found["records"], found["bytes"], found["lost"]) == (40, 800, 0)
    assert found["seconds"] >= 39 / 400 and 0 < found["latency_ms"]["p50"] <= found["latency_ms"]["max"]
    shown = at.ok("perf", "e2e", "trips", "--records", "5", "--rate", "400")
    assert "latency, p99.9" in shown and "records/s" in shown


def test_an_empty_topic_has_nothing_to_read(at: Cluster) -> None:
    read = at.json("perf", "consume", topic(at, "empty"))
    assert (read["records"], read["records_per_second"], read["first_record_ms"]) == (0, 0, None)


def test_what_is_wrong_is_said(at: Cluster) -> None:
    topic(at, "there")
    assert "did you mean 'there'" in at.fails("perf", "produce", "thre")
    assert "exclude each other" in at.fails("perf", "produce", "there", "--records", "1", "--duration", "1", code=2)
    assert "--partition 7: there has 0 to 1" in at.fails("perf", "produce", "there", "--partition", "7", code=2)
    too_large = at.fails("perf", "produce", "there", "--records", "1", "--size", "2000000")
    assert "2000000" in too_large.replace(",", "") or "max_request_size" in too_large


def test_an_interrupt_tells_what_was_measured(at: Cluster) -> None:
    name = topic(at, "stopped")
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kohort.cli",
            "perf",
            "produce",
            name,
            "--records",
            "1000000",
            "--rate",
            "500",
            "--json",
        ],
        env=os.environ | {"KOHORT_BOOTSTRAP_SERVERS": at.servers},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not ends(at, name) and process.poll() is None:
            pass
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    found = json.loads(stdout)
    assert found["interrupted"] and found["lost"] == 0 and 0 < found["records"] == ends(at, name)
