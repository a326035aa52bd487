"""The broker's metrics in Prometheus' format."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kohort import __version__
from kohort.broker.metrics.counters import Metrics
from kohort.broker.metrics.sources import Disk, MetricSources
from kohort.coordinator.classic import CLASSIC
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages import API_NAMES
from kohort.streams.tasks import Role, TaskId

_BOUNDS: Final = range(6, 26, 2)
"""Bounds of the latency histogram, as powers of two in µs: 64 µs, 256 µs, 1 ms … 16.8 s."""
OFFSETS_A_TURN: Final = 2_000
"""How many committed offsets are looked at before the event loop goes on with what else there is."""


class Exposition:
    """Renders all metrics."""

    def __init__(self, sources: MetricSources) -> None:
        self._sources = sources
        self._broker = BrokerCollector(sources)
        self._registry = CollectorRegistry()
        self._registry.register(self._broker)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    async def text(self) -> bytes:
        """All metrics in Prometheus' text format.

        They are collected in the event loop, which changes what is counted. It isn't held up by many offsets, nor by
        writing them out, which is done in a thread.
        """
        disk = await asyncio.to_thread(_disk_now, self._sources)
        self._broker.lags, self._broker.disk = await group_lags(self._sources), disk
        return await asyncio.to_thread(generate_latest, _Collected(list(self._registry.collect())))


class _Collected(Collector):
    """What was collected before."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


class BrokerCollector(Collector):
    """Collects a broker's metrics.

    Attributes:
        lags: those of groups, which take many turns of the event loop: see `group_lags`.
        disk: the disk, which isn't asked in the event loop; None if nobody can say.
    """

    def __init__(self, sources: MetricSources) -> None:
        self._sources = sources
        self.lags: Metric = _lag_family()
        self.disk: Disk | None = None

    def describe(self) -> Iterable[Metric]:
        """None, so that registering doesn't collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        sources, metrics = self._sources, self._sources.counters
        build = GaugeMetricFamily("kohort_build", "The version that runs.", labels=["version"])
        build.add_metric([__version__], 1)
        return chain(
            [build],
            _requests(metrics),
            [
                GaugeMetricFamily("kohort_connections", "Connections open now.", metrics.connections),
                GaugeMetricFamily(
                    "kohort_connections_limit", "Connections that there may be.", sources.connections_limit()
                ),
                CounterMetricFamily("kohort_connections_accepted", "Connections accepted.", metrics.accepted),
                _failures("produce", "Partitions that records couldn't be written to.", metrics.produce_failures),
                _failures("fetch", "Partitions that couldn't be read from.", metrics.fetch_failures),
                GaugeMetricFamily("kohort_fetch_sessions", "Fetch sessions kept.", sources.fetch_sessions()),
                GaugeMetricFamily("kohort_timers", "Timers that run.", sources.timers()),
            ],
            _audit(sources),
            _certificates(sources),
            _throttled(sources),
            _groups(sources),
            [self.lags],
            _streams(sources),
            _share_groups(sources),
            _logs(sources),
            _disk(self.disk),
            _losses(metrics),
        )


def _requests(metrics: Metrics) -> Iterator[Metric]:
    seconds = HistogramMetricFamily(
        "kohort_request_seconds", "Time from a request to its answer, waiting included.", labels=["api"]
    )
    received = CounterMetricFamily("kohort_request_bytes", "Bytes of requests.", labels=["api"])
    sent = CounterMetricFamily("kohort_response_bytes", "Bytes of responses.", labels=["api"])
    for key, counts in enumerate(metrics.apis):
        upto = list(accumulate(counts.buckets))
        if not upto[-1]:
            continue
        name = [API_NAMES.get(key, str(key))]
        buckets = [(repr((1 << power) / 1_000_000), upto[power]) for power in _BOUNDS]
        seconds.add_metric(name, [*buckets, ("+Inf", upto[-1])], counts.seconds)
        received.add_metric(name, counts.received)
        sent.add_metric(name, counts.sent)
    return iter((seconds, received, sent))


def _failures(kind: str, documentation: str, counts: Counter[ErrorCode]) -> Metric:
    family = CounterMetricFamily(f"kohort_{kind}_failures", documentation, labels=["error"])
    for code, count in counts.items():
        family.add_metric([code.name], count)
    return family


def _audit(sources: MetricSources) -> Iterator[Metric]:
    audit = sources.audit
    for name, documentation, label, counts in (
        ("authentications", "Times that clients have authenticated.", "mechanism", audit.authentications),
        ("authentication_failures", "Times that they have failed to.", "mechanism", audit.failed_authentications),
        ("denials", "Operations that clients have asked for and weren't allowed.", "api", audit.denials),
    ):
        family = CounterMetricFamily(f"kohort_{name}", documentation, labels=[label])
        for value, count in counts.items():
            family.add_metric([value], count)
        yield family
    yield CounterMetricFamily("kohort_tls_handshake_failures", "TLS handshakes that failed.", audit.failed_handshakes)
    yield CounterMetricFamily("kohort_connections_refused", "Connections that were closed at once.", audit.refused)


def _certificates(sources: MetricSources) -> Iterator[Metric]:
    expires = GaugeMetricFamily(
        "kohort_certificate_expires_timestamp_seconds",
        "When a listener's certificate expires, in seconds since 1970.",
        labels=["listener"],
    )
    for listener, at in sources.certificates().items():
        expires.add_metric([listener], at.timestamp())
    yield expires


def _throttled(sources: MetricSources) -> Iterator[Metric]:
    times = CounterMetricFamily(
        "kohort_throttled", "Requests and connections that had to wait for a quota.", labels=["quota"]
    )
    for quota, count in sources.throttling.throttled.items():
        times.add_metric([quota], count)
    yield times
    seconds = CounterMetricFamily("kohort_throttled_seconds", "How long they had to wait, in all.", labels=["quota"])
    for quota, milliseconds in sources.throttling.throttled_ms.items():
        seconds.add_metric([quota], milliseconds / 1000)
    yield seconds


def _groups(sources: MetricSources) -> Iterator[Metric]:
    states: Counter[tuple[str, str]] = Counter()
    waiting = Counter({"fetch": sources.delayed_fetches(), "share fetch": sources.shares.delayed_fetches()})
    rebalances = 0
    epochs = CounterMetricFamily(
        "kohort_group_rebalances", "Epochs, or of classic groups generations, that a group has begun.",
        labels=["group", "protocol"],
    )  # fmt: skip
    for shard in sources.group_shards():
        classic = shard.classic
        for group_id in classic.group_ids():
            if (classic_group := classic.get(group_id)) is not None and classic_group.generation > 0:
                epochs.add_metric((group_id, CLASSIC), classic_group.generation)
        for state, count in classic.count_by_state().items():
            states[CLASSIC, state.value] += count
        for modern in (shard.consumer, shard.share, shard.streams):
            for modern_state, count in modern.count_by_state().items():
                states[modern.kind, modern_state.value] += count
            for group_id in modern.group_ids():
                if (modern_group := modern.get(group_id)) is not None and modern_group.epoch > 0:
                    epochs.add_metric((group_id, modern.kind), modern_group.epoch)
        rebalances += classic.completed_rebalances
        rebalancer = classic.rebalancer
        for purgatory in (rebalancer.heartbeats, rebalancer.joins, rebalancer.syncs, shard.streams.held_heartbeats):
            waiting[purgatory.name] += purgatory.delayed
    groups = GaugeMetricFamily("kohort_groups", "Groups by state.", labels=["protocol", "state"])
    for name, count in states.items():
        groups.add_metric(name, count)
    yield groups
    yield CounterMetricFamily(
        "kohort_rebalances", "Rebalances of classic groups that ended with an assignment.", rebalances
    )
    yield epochs
    purgatories = GaugeMetricFamily("kohort_purgatory_operations", "Operations that wait.", labels=["purgatory"])
    for kind, count in waiting.items():
        purgatories.add_metric([kind], count)
    yield purgatories
    yield GaugeMetricFamily(
        "kohort_coordinators_loading",
        "Coordinators that still read their log: 0 to 3.",
        sum(loading() for loading in sources.coordinators_loading),
    )


def _lag_family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "kohort_group_lag_records",
        "Offsets between what a group has committed and what can be read; of a share group, records that aren't done.",
        labels=["group", "topic"],
    )


async def group_lags(sources: MetricSources) -> Metric:
    """The lags of groups by topic, `OFFSETS_A_TURN` offsets in a turn of the event loop."""
    family, seen = _lag_family(), 0
    topics = {topic.name: topic for topic in sources.topics()}
    for shard in tuple(sources.group_shards()):
        for place, offsets in groupby(shard.offsets.entries(), key=itemgetter(0, 1)):
            topic = topics.get(place[1])
            lags: list[int] = []
            for _, _, index, committed in offsets:
                partition = None if topic is None else topic.partition(index)
                if partition is not None and partition.offline is None:
                    lags.append(max(partition.log.last_stable_offset - committed.offset, 0))
                seen += 1
                if seen % OFFSETS_A_TURN == 0:
                    await asyncio.sleep(0)
            if lags:
                family.add_metric(place, sum(lags))
    for place, lag in (await _share_lags(sources)).items():
        family.add_metric(place, lag)
    return family


async def _share_lags(sources: MetricSources) -> dict[tuple[str, str], int]:
    """Records from share groups' start offsets on that aren't done, by group and topic: as these are described."""
    topics = {topic.id: topic for topic in sources.topics()}
    lags: dict[tuple[str, str], int] = {}
    for shard in tuple(sources.share_state_shards()):
        for seen, (key, state) in enumerate(shard.states(), 1):
            topic = topics.get(key.topic_id)
            partition = None if topic is None else topic.partition(key.partition)
            is_known = min(state.start_offset, state.delivery_complete_count) >= 0
            if topic is not None and partition is not None and partition.offline is None and is_known:
                left = partition.log.high_watermark - state.start_offset - state.delivery_complete_count
                place = key.group_id, topic.name
                lags[place] = lags.get(place, 0) + max(left, 0)
            if seen % OFFSETS_A_TURN == 0:
                await asyncio.sleep(0)
    return lags


def _streams(sources: MetricSources) -> Iterator[Metric]:
    members = tasks = 0
    unowned = GaugeMetricFamily(
        "kohort_streams_tasks_unowned", "Tasks of a group with members that none of them runs.", labels=["group"]
    )
    for shard in sources.group_shards():
        for group_id in shard.streams.group_ids():
            group = shard.streams.get(group_id)
            assert group is not None
            members += len(group.members)
            if group.members and group.configured is not None:
                ids = [
                    TaskId(name, partition)
                    for name, part in group.configured.subtopologies.items()
                    for partition in range(part.tasks)
                ]
                tasks += len(ids)
                holders = group.ownership.holders
                unowned.add_metric([group_id], sum(Role.ACTIVE not in holders(task).values() for task in ids))
    yield GaugeMetricFamily("kohort_streams_members", "Members of streams groups.", members)
    yield GaugeMetricFamily("kohort_streams_tasks", "Tasks that streams groups have to run, without copies.", tasks)
    yield unowned
    placements = sources.placements
    for name, documentation, counts in (
        ("kohort_placements", "Times that a group's tasks were placed.", placements.solved),
        ("kohort_placement_failures", "Times that no placement came of it.", placements.failed),
        ("kohort_placement_seconds", "Time that placing took, waiting included.", placements.seconds),
    ):
        family = CounterMetricFamily(name, documentation, labels=["assignor"])
        for assignor, count in counts.items():
            family.add_metric([assignor], count)
        yield family
    yield GaugeMetricFamily("kohort_placements_under_way", "Groups whose tasks are being placed.", placements.pending)


_SHARE_TOTALS: Final = {
    "kohort_share_records_acquired": "Records given to members of share groups.",
    "kohort_share_acknowledgement_failures": "Partitions whose acknowledgements weren't taken.",
    "kohort_share_fetch_failures": "Partitions that a share fetch was answered with an error for.",
    "kohort_share_sessions_evicted": "Share sessions that ended with their connection.",
    "kohort_share_dead_letters": "Records that dead letters were written for.",
    "kohort_share_dead_letter_failures": "Records that were given up without the dead letter they should have.",
}


def _share_groups(sources: MetricSources) -> Iterator[Metric]:
    shares = sources.shares
    yield GaugeMetricFamily(
        "kohort_share_partitions",
        "Share partitions whose delivery state is kept.",
        sum(len(shard) for shard in sources.share_state_shards()),
    )
    yield GaugeMetricFamily("kohort_share_sessions", "Share sessions kept.", shares.open_sessions())
    totals = shares.totals()
    for name, documentation in _SHARE_TOTALS.items():
        yield CounterMetricFamily(name, documentation, totals[name])
    acknowledged = CounterMetricFamily(
        "kohort_share_acknowledgements", "Records acknowledged, by how.", labels=["type"]
    )
    for kind, count in shares.acknowledged().items():
        acknowledged.add_metric([kind], count)
    yield acknowledged
    labels = ["group", "topic", "partition"]
    records = GaugeMetricFamily(
        "kohort_share_in_flight_records", "Records of a share partition that are in flight.", labels=labels
    )
    batches = GaugeMetricFamily("kohort_share_in_flight_batches", "The batches that these are in.", labels=labels)
    for each in shares.in_flight():
        place = [each.group_id, each.topic, str(each.partition)]
        records.add_metric(place, each.records)
        batches.add_metric(place, each.batches)
    yield from (records, batches)


def _logs(sources: MetricSources) -> Iterator[Metric]:
    labels = ["topic", "partition"]
    size = GaugeMetricFamily("kohort_log_bytes", "Size of a partition's log.", labels=labels)
    start = GaugeMetricFamily("kohort_log_start_offset", "First offset of a partition.", labels=labels)
    end = GaugeMetricFamily("kohort_log_end_offset", "Offset that the next record gets.", labels=labels)
    offline = 0
    for topic in sources.topics():
        for partition in topic.partitions:
            if partition.offline is not None:
                offline += 1
                continue
            place = [topic.name, str(partition.index)]
            size.add_metric(place, partition.log.size)
            start.add_metric(place, partition.log.log_start_offset)
            end.add_metric(place, partition.log.log_end_offset)
    yield from (size, start, end)
    yield GaugeMetricFamily("kohort_offline_partitions", "Partitions that can't be used, for their files.", offline)


def _disk_now(sources: MetricSources) -> Disk | None:
    try:
        return sources.disk()
    except OSError:
        return None


def _disk(disk: Disk | None) -> Iterator[Metric]:
    size = GaugeMetricFamily("kohort_disk_bytes", "Size of the file system that the data is on.", labels=())
    free = GaugeMetricFamily("kohort_disk_free_bytes", "What of it can still be written.", labels=())
    if disk is not None:
        size.add_metric((), disk.size)
        free.add_metric((), disk.free)
    yield from (size, free)


def _losses(metrics: Metrics) -> Iterator[Metric]:
    damages = CounterMetricFamily(
        "kohort_log_damage", "What was found lost or wrong in logs since the start, by kind.", labels=["kind"]
    )
    for kind, count in metrics.damages.items():
        damages.add_metric([kind.value], count)
    yield damages
    yield CounterMetricFamily("kohort_log_lost_records", "Records that were found lost, at most.", metrics.lost_records)
    yield CounterMetricFamily("kohort_log_lost_bytes", "Bytes that were found lost.", metrics.lost_bytes)
