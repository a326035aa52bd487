"""The broker's counters, their exposition to Prometheus, and the endpoint."""

from __future__ import annotations

import asyncio
import threading
import timeit
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kohort.broker.audit import Audit
from kohort.broker.config import Settings
from kohort.broker.metrics import Disk, Metrics, MetricsEndpoint, MetricSources, MetricsPort, exposition
from kohort.broker.metrics.exposition import OFFSETS_A_TURN, BrokerCollector, Exposition, group_lags
from kohort.broker.metrics.sources import ShareInFlight
from kohort.broker.server import Server
from kohort.broker.streams.placer import Placer
from kohort.broker.validity import validity
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from tests.broker.certificates import write_stores
from tests.broker.conftest import Run
from tests.broker.handlers.conftest import append_records
from tests.broker.handlers.share_groups import heartbeat
from tests.broker.share.groups import GROUP, initialized, share_acknowledge, share_fetch
from tests.broker.streams.members import Crowd, reconcile, stateless

from .raw import RawClient

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: bytes) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def sample(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


async def ask(port: int | None, request: str) -> tuple[str, bytes]:
    """The status line and the body of the answer to a request."""
    assert port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    head, _, body = (await asyncio.wait_for(reader.read(), 30)).partition(b"\r\n\r\n")
    writer.close()
    return head.split(b"\r\n")[0].decode(), body


async def scrape(server: Server) -> Samples:
    status, body = await ask(server.metrics_port, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    assert status == "HTTP/1.1 200 OK"
    return samples(body)


METRICS = MetricsPort("127.0.0.1", 0)


def test_requests_are_counted_by_api(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        for _ in range(3):
            await client.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"))

        found = await scrape(server)

        assert sample(found, "kohort_request_seconds_count", api="ApiVersions") == 3
        assert sample(found, "kohort_request_seconds_bucket", api="ApiVersions", le="+Inf") == 3
        assert (sample(found, "kohort_request_bytes_total", api="ApiVersions") or 0) > 3 * 10
        assert (sample(found, "kohort_response_bytes_total", api="ApiVersions") or 0) > 3 * 100
        assert sample(found, "kohort_request_seconds_count", api="Fetch") is None
        await client.close()

    with_server(test, metrics=METRICS)


def test_connections_are_counted(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        await client.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"))

        found = await scrape(server)

        assert (sample(found, "kohort_connections"), sample(found, "kohort_connections_accepted_total")) == (1, 1)
        await client.close()

    with_server(test, metrics=METRICS)


def test_logs_have_their_sizes(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        await client.call(
            MetadataRequest(topics=[MetadataRequest.Topic(name="t")], allow_auto_topic_creation=True), version=9
        )

        found = await scrape(server)

        assert sample(found, "kohort_log_bytes", topic="t", partition="0") == 0
        assert sample(found, "kohort_log_end_offset", topic="t", partition="0") == 0
        assert sample(found, "kohort_offline_partitions") == 0
        await client.close()

    with_server(test, metrics=METRICS)


def test_streams_groups_are_counted(with_server: Run) -> None:
    async def test(server: Server) -> None:
        crowd = Crowd(server)
        crowd.topics.create("words", 3)
        await reconcile(await crowd.joined(stateless("words")))

        found = await scrape(server)

        assert sample(found, "kohort_groups", protocol="streams", state="Stable") == 1
        assert (sample(found, "kohort_streams_members"), sample(found, "kohort_streams_tasks")) == (1, 3)
        assert sample(found, "kohort_streams_tasks_unowned", group="app") == 0
        assert (sample(found, "kohort_group_rebalances_total", group="app", protocol="streams") or 0) > 1
        assert sample(found, "kohort_placements_total", assignor="optimal") == 1
        assert (sample(found, "kohort_placement_seconds_total", assignor="optimal") or 0) > 0
        assert sample(found, "kohort_placements_under_way") == 0
        await crowd.close()

    with_server(test, "group.streams.initial.rebalance.delay.ms=0", metrics=METRICS)


def test_share_groups_and_the_states_of_their_partitions_are_counted(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 3)
        client = await RawClient.connect(server.port)
        await client.call(heartbeat("m", 0, "t"))

        found = await scrape(server)

        assert sample(found, "kohort_groups", protocol="share", state="Stable") == 1
        assert sample(found, "kohort_share_partitions") == 3
        await client.close()

    with_server(test, metrics=METRICS)


def test_what_share_groups_have_in_flight_is_counted(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topic = server.broker.topics.create("t", 1)
        append_records(server.broker, "t", 0, 5)
        server.broker.share_state.start()
        initialized(server.broker, topic)
        client = await RawClient.connect(server.port)
        await client.call(share_fetch(topic))
        await client.call(share_acknowledge(topic, 1, (0, 1, 2), (3, 3, 3)))
        await client.call(share_acknowledge(topic, 2, (0, 1, 1)))

        found = await scrape(server)

        place = {"group": GROUP, "topic": "t", "partition": "0"}
        assert sample(found, "kohort_share_in_flight_records", **place) == 5
        assert sample(found, "kohort_group_lag_records", group=GROUP, topic="t") == 5 - 1  # one was rejected
        assert sample(found, "kohort_share_sessions") == 1
        assert sample(found, "kohort_share_partitions") == 1
        assert sample(found, "kohort_share_records_acquired_total") == 5
        assert sample(found, "kohort_share_acknowledgements_total", type="release") == 2
        assert sample(found, "kohort_share_acknowledgements_total", type="reject") == 1
        assert sample(found, "kohort_share_acknowledgement_failures_total") == 1
        assert sample(found, "kohort_purgatory_operations", purgatory="share fetch") == 0
        await client.close()

    with_server(test, metrics=METRICS)


def test_groups_are_counted_by_state_when_asked(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
        join = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        async with asyncio.timeout(30):
            while (await client.call(join, version=3)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await asyncio.sleep(0.01)

        found = await scrape(server)

        assert sample(found, "kohort_groups", protocol="classic", state="CompletingRebalance") == 1
        assert sample(found, "kohort_group_rebalances_total", group="g", protocol="classic") == 1
        assert sample(found, "kohort_purgatory_operations", purgatory="heartbeat") is not None
        assert sample(found, "kohort_purgatory_operations", purgatory="held heartbeat") == 0
        await client.close()

    with_server(test, metrics=METRICS)


def test_groups_have_their_lag_by_topic(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 2)
        append_records(server.broker, "t", 0, 5)
        append_records(server.broker, "t", 1, 4)
        server.broker.groups.start()
        client = await RawClient.connect(server.port)
        places = [OffsetCommitRequest.Topic.Partition(partition_index=index, committed_offset=2) for index in (0, 1)]
        topics = [OffsetCommitRequest.Topic(name="t", partitions=places)]
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
        async with asyncio.timeout(30):
            while (await client.call(commit, version=8)).topics[0].partitions[0].error_code:  # it loads
                await asyncio.sleep(0.01)

        assert sample(await scrape(server), "kohort_group_lag_records", group="g", topic="t") == 3 + 2
        server.broker.topics.delete("t")
        assert sample(await scrape(server), "kohort_group_lag_records", group="g", topic="t") is None
        await client.close()

    with_server(test, metrics=METRICS)


def test_failures_are_counted_by_error() -> None:
    metrics = Metrics()

    metrics.produce_failed(ErrorCode.MESSAGE_TOO_LARGE)
    metrics.produce_failed(ErrorCode.MESSAGE_TOO_LARGE)
    metrics.fetch_failed(ErrorCode.OFFSET_OUT_OF_RANGE)

    assert metrics.produce_failures == {ErrorCode.MESSAGE_TOO_LARGE: 2}
    assert metrics.fetch_failures == {ErrorCode.OFFSET_OUT_OF_RANGE: 1}


def test_a_request_is_in_the_buckets_of_all_times_that_are_longer(with_server: Run) -> None:
    async def test(server: Server) -> None:
        server.broker.metrics.observe(0, 0.000_3, 10, 20)

        found = samples(await Exposition(server.broker.metric_sources).text())

        buckets = {
            float(dict(labels)["le"]): count
            for (name, labels), count in found.items()
            if name == "kohort_request_seconds_bucket" and dict(labels)["api"] == "Produce"
        }
        assert [bound for bound, count in sorted(buckets.items()) if not count] == [0.000_064, 0.000_256]
        assert sample(found, "kohort_request_seconds_sum", api="Produce") == pytest.approx(0.000_3)

    with_server(test)


def test_a_long_wait_has_a_bucket() -> None:
    metrics = Metrics()

    metrics.observe(0, 10**9, 0, 0)

    assert sum(metrics.apis[0].buckets) == 1


def test_counting_costs_a_request_next_to_nothing() -> None:
    observe = Metrics().observe

    seconds = min(timeit.repeat(lambda: observe(0, 0.000_123, 100, 200), number=10_000, repeat=20)) / 10_000

    assert seconds < 5e-6  # 0.5 µs on a machine that has nothing else to do


class NoShares:
    """No share groups."""

    def totals(self) -> dict[str, int]:
        return {}

    def acknowledged(self) -> dict[str, int]:
        return {}

    def in_flight(self) -> Iterable[ShareInFlight]:
        return ()

    def open_sessions(self) -> int:
        return 0

    def delayed_fetches(self) -> int:
        return 0


class Nobody:
    """Nobody had to wait."""

    def __init__(self) -> None:
        self.throttled: Counter[str] = Counter()
        self.throttled_ms: Counter[str] = Counter()


def nothing() -> MetricSources:
    return MetricSources(
        counters=Metrics(),
        topics=tuple,
        group_shards=tuple,
        share_state_shards=tuple,
        coordinators_loading=(),
        placements=Placer(),
        throttling=Nobody(),
        audit=Audit(),
        shares=NoShares(),
        delayed_fetches=int,
        fetch_sessions=int,
        timers=int,
        disk=lambda: Disk(0, 0),
        connections_limit=int,
    )


def test_the_collector_can_be_registered_before_there_is_anything() -> None:
    assert list(BrokerCollector(nothing()).describe()) == []


def test_many_offsets_and_a_slow_disk_do_not_hold_up_the_event_loop(
    with_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(server: Server) -> None:
        looked_at: Counter[int] = Counter()  # by turn of the loop
        threads: list[threading.Thread] = []
        turn = 0

        async def turns() -> None:
            nonlocal turn
            while True:
                turn += 1
                await asyncio.sleep(0)

        def entries() -> Iterator[tuple[str, str, int, Any]]:
            for number in range(5 * OFFSETS_A_TURN):
                looked_at[turn] += 1
                yield f"g{number // 4}", "t", number % 4, SimpleNamespace(offset=1)

        def disk() -> Disk:
            threads.append(threading.current_thread())
            return Disk(2, 1)

        def rendered(registry: Any) -> bytes:
            threads.append(threading.current_thread())
            return b"text"

        server.broker.topics.create("t", 4)
        append_records(server.broker, "t", 3, 5)
        shard: Any = SimpleNamespace(offsets=SimpleNamespace(entries=entries))
        counting = asyncio.create_task(turns())
        family = await group_lags(replace(server.broker.metric_sources, group_shards=lambda: [shard]))
        monkeypatch.setattr(exposition, "generate_latest", rendered)
        assert await Exposition(replace(server.broker.metric_sources, disk=disk)).text() == b"text"
        counting.cancel()

        assert len(family.samples) == 5 * OFFSETS_A_TURN / 4
        assert {each.value for each in family.samples} == {4}
        assert max(looked_at.values()) <= OFFSETS_A_TURN
        assert len(threads) == 2 and threading.current_thread() not in threads

    with_server(test)


def test_a_share_partition_whose_done_records_are_unknown_has_no_lag(with_server: Run) -> None:
    """As where the groups are described."""

    async def test(server: Server) -> None:
        topic = server.broker.topics.create("t", 2)
        for partition in range(2):
            append_records(server.broker, "t", partition, 5)
        keys = [SimpleNamespace(group_id="g", topic_id=topic.id, partition=number) for number in range(2)]
        states = [SimpleNamespace(start_offset=1, delivery_complete_count=count) for count in (-1, 2)]
        shard: Any = SimpleNamespace(states=lambda: zip(keys, states, strict=True))
        family = await group_lags(replace(server.broker.metric_sources, share_state_shards=lambda: [shard]))
        assert [each.value for each in family.samples] == [2]

    with_server(test)


def test_health(with_server: Run) -> None:
    async def test(server: Server) -> None:
        assert await ask(server.metrics_port, "GET /healthz HTTP/1.0\r\n\r\n") == ("HTTP/1.1 200 OK", b"ok\n")

    with_server(test, metrics=METRICS)


def test_it_is_ready_from_its_start_to_its_stop(
    with_server: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = Server(Settings.load(None, {}, ["listeners=PLAINTEXT://127.0.0.1:0"]), data_dir=tmp_path / "other")
    assert early.why_unready() == "starting: logs are opened, and after a crash recovered"
    asyncio.run(early.stop())

    async def readiness(server: Server) -> tuple[str, bytes]:
        return await ask(server.metrics_port, "GET /readyz HTTP/1.0\r\n\r\n")

    async def test(server: Server) -> None:
        assert await readiness(server) == ("HTTP/1.1 200 OK", b"ok\n")
        monkeypatch.setattr(type(server.broker.coordinators[0]), "loading", lambda self: True)
        assert await readiness(server) == ("HTTP/1.1 503 Service Unavailable", b"coordinators are loading\n")
        monkeypatch.undo()
        await server.stop()
        assert server.why_unready() == "stopping"

    with_server(test, metrics=METRICS)


def test_what_connections_and_the_disk_may_take_is_told(with_server: Run) -> None:
    async def test(server: Server) -> None:
        found = await scrape(server)
        assert sample(found, "kohort_connections_limit") == 17
        size, free = sample(found, "kohort_disk_bytes"), sample(found, "kohort_disk_free_bytes")
        assert size and free is not None and size >= free

    with_server(test, "max.connections=17", metrics=METRICS)


def test_a_disk_that_nobody_can_ask_has_no_size(with_server: Run) -> None:
    def gone() -> Disk:
        raise OSError

    async def test(server: Server) -> None:
        text = await Exposition(replace(server.broker.metric_sources, disk=gone)).text()
        assert sample(samples(text), "kohort_disk_bytes") is None
        assert b"# TYPE kohort_disk_bytes gauge" in text

    with_server(test)


def test_certificates_say_when_they_expire(with_server: Run, tmp_path: Path) -> None:
    keystore, _ = write_stores(tmp_path)

    async def test(server: Server) -> None:
        found = await scrape(server)
        shown = validity(keystore.read_text())
        assert shown is not None
        expires = sample(found, "kohort_certificate_expires_timestamp_seconds", listener="SSL")
        assert expires == shown.ends.timestamp()

    with_server(test, "listeners=SSL://127.0.0.1:0", f"ssl.keystore.location={keystore}", metrics=METRICS)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET / HTTP/1.1", "404 Not Found"),
        ("POST /metrics HTTP/1.1", "405 Method Not Allowed"),
        ("hello", "400 Bad Request"),
        ("GET /metrics SPDY/3", "400 Bad Request"),
    ],
)
def test_other_requests_are_refused(with_server: Run, request_line: str, status: str) -> None:
    async def test(server: Server) -> None:
        assert (await ask(server.metrics_port, f"{request_line}\r\n\r\n"))[0] == f"HTTP/1.1 {status}"

    with_server(test, metrics=METRICS)


def test_a_head_request_gets_no_body(with_server: Run) -> None:
    async def test(server: Server) -> None:
        assert await ask(server.metrics_port, "HEAD /healthz HTTP/1.1\r\n\r\n") == ("HTTP/1.1 200 OK", b"")

    with_server(test, metrics=METRICS)


def test_a_request_without_end_is_cut_off(with_server: Run) -> None:
    async def test(server: Server) -> None:
        status, body = await ask(server.metrics_port, "GET /metrics HTTP/1.1\r\n" + "x: y\r\n" * 20_000)
        assert (status, body) == ("", b"")

    with_server(test, metrics=METRICS)


def test_a_failing_scrape_is_told_and_the_next_one_may_work(with_server: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> bytes:
        raise OSError("no such thing")

    async def test(server: Server) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Exposition, "text", fail)
            status, _ = await ask(server.metrics_port, "GET /metrics HTTP/1.1\r\n\r\n")
        assert status == "HTTP/1.1 500 Internal Server Error"
        assert sample(await scrape(server), "kohort_connections") == 0

    with_server(test, metrics=METRICS)


def test_an_endpoint_that_was_not_started_can_be_stopped() -> None:
    asyncio.run(MetricsEndpoint(nothing(), *METRICS).stop())
