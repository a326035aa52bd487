"""A cluster that is made up, for pictures of the console's pages: the same each time, without a broker."""

from __future__ import annotations

import asyncio
import io
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, cast
from unittest.mock import patch
from uuid import UUID

from kohort.client.admin import Admin
from kohort.client.administration.configs import ConfigEntry, ConfigSource
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import (
    GroupDescription,
    GroupListing,
    GroupMember,
    GroupType,
    StreamsMemberState,
)
from kohort.client.administration.resets import PlannedReset, ResetTo, plan
from kohort.client.config import ClientConfig
from kohort.client.types import Broker, PartitionInfo, Record, TopicInfo, TopicPartition
from kohort.console import store_pages
from kohort.console.audit import AuditLog
from kohort.console.changes.plan import Access
from kohort.console.cluster_reader import ClusterReader
from kohort.console.group_book import Summary
from kohort.console.group_page import GroupReport
from kohort.console.login import Entered, Login
from kohort.console.rebalances import seen
from kohort.console.record_decoding import RecordDecoder
from kohort.console.record_filter import RecordFilter
from kohort.console.record_ranges import RecordChoice
from kohort.console.record_reader import FoundRecords, RecordReader
from kohort.console.server import ConsoleServer, Policy
from kohort.console.topic_pages import TopicReport
from kohort.console.topic_watcher import TopicWatcher
from kohort.console.visit import RefusedError
from kohort.console.watcher import Watcher
from kohort.coordinator.placement.model import Group, Member, SubtopologyTasks
from kohort.http_access import OPEN, HttpAccess
from kohort.protocol.share_in_flight import InFlight
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

__all__ = ["KINDS", "made_up_console"]

T = TypeVar("T")

NODES: Final = tuple(Broker(number, f"kafka-{number}.example", 9092) for number in (1, 2, 3))
NOON_MS: Final = 1_357_041_600_000  # 2013-01-01
MINUTES: Final = 20
"""Of histories, a sample each ten seconds."""

TYPES: Final = {
    "billing": GroupType.CONSUMER,
    "flight-delays": GroupType.STREAMS,
    "mail": GroupType.SHARE,
    "nightly-export": GroupType.CLASSIC,
    "search-index": GroupType.CONSUMER,
}
LAGS: Final = {"billing": 1_840, "flight-delays": 412, "mail": 96, "nightly-export": 20_311, "search-index": 0}
TOPICS: Final = {
    "flights": 6, "flight-delays-by-origin-changelog": 6, "mails": 3, "mails-dead": 1, "orders": 6, "payments": 3,
}  # fmt: skip


def _member(name: str, host: int, topic: str, partitions: Collection[int], **more: Any) -> GroupMember:
    read = tuple(TopicPartition(topic, at) for at in partitions)
    return GroupMember(
        member_id=name, instance_id=None, client_id=name.partition("-")[0], host=f"/10.0.0.{host}", rack=None,
        epoch=7, classic=False, topics=(topic,), pattern=None, partitions=read, target=read, **more,
    )  # fmt: skip


def _group(name: str, members: tuple[GroupMember, ...], **more: Any) -> GroupDescription:
    return GroupDescription(
        group_id=name, type=TYPES[name], state="Stable" if members else "Empty", coordinator=NODES[1],
        assignor="uniform", protocol_type="consumer", epoch=7, assignment_epoch=7, members=members, **more,
    )  # fmt: skip


def _streams_member(name: str, host: int, active: Collection[int], standby: Collection[int]) -> GroupMember:
    roles = {Role.ACTIVE: active, Role.STANDBY: standby}
    tasks = {TaskId(part, at): role for role, numbers in roles.items() for part in ("0", "1") for at in numbers}
    ends = {task: 90_000 + 11 * task.partition for task in tasks}
    offsets = {task: end - (0 if task.partition in active else 140) for task, end in ends.items()}
    state = StreamsMemberState(
        process_id=f"process-{host}", endpoint=(f"flights-{host - 20}.example", 8080), tags={}, topology_epoch=0,
        tasks=tasks, target_tasks=tasks, task_offsets=offsets, task_end_offsets=ends,
    )  # fmt: skip
    return _member(name, host, "flights", active, streams=state)


def _streams_group(minute: int) -> GroupDescription:
    """The group at a minute of 20: its second instance comes at the fourth, is away from the tenth on for three."""
    everything = range(TOPICS["flights"])
    members = [_streams_member("one-1", 21, everything, ())]
    if minute >= 4 and not 10 <= minute < 13:
        two = _streams_member("two-2", 22, everything[3:], everything[: 3 if minute < 10 else 1])
        members = [_streams_member("one-1", 21, everything[:3], everything[3:]), two]
    by_sky = InternalTopic("flight-delays-by-sky-repartition", TOPICS["flights"])
    changelogs = {at: [InternalTopic(f"flight-delays-by-{of}-changelog")] for at, of in (("0", "origin"), ("1", "sky"))}
    first = Subtopology(source_topics=["flights"], repartition_sinks=[by_sky.name], changelogs=changelogs["0"])
    topology = Topology({"0": first, "1": Subtopology(repartition_sources=[by_sky], changelogs=changelogs["1"])})
    return _group("flight-delays", tuple(members), topology=topology, topology_epoch=0)


def _description(name: str) -> GroupDescription:
    match name:
        case "billing" | "search-index":
            topic = "orders" if name == "billing" else "payments"
            return _group(name, (_member("a-17", 11, topic, (0, 1, 2)), _member("b-4", 12, topic, (3, 4, 5))))
        case "flight-delays":
            return _streams_group(20)
        case "mail":
            return _group(name, (_member("sender-1", 31, "mails", (0, 1, 2)), _member("sender-2", 32, "mails", (0, 1))))
    return _group(name, ())


def _epoch(name: str, sample: int) -> int:
    """Of a group at a sample: one has its members come and go."""
    return 7 - min(6, max(0, 6 * MINUTES - 8 - sample) // 2) if name == "search-index" else 7


def _lags(name: str, total: int | None = None) -> dict[TopicPartition, PartitionLag]:
    topic = {"billing": "orders", "flight-delays": "flights", "mail": "mails"}.get(name, "payments")
    total, count = LAGS[name] if total is None else total, TOPICS[topic]
    found = {}
    for at in range(count):
        lag = total // count + (total % count if at == 0 else 0)
        end = 120_000 + 311 * at
        in_flight: tuple[InFlight, ...] = ()
        if name == "mail":
            until = time.time_ns() // 1_000_000 + 25_400
            start = end - lag
            held = InFlight(start, start + 7, "acquired", 1, "sender-1", until)
            again = InFlight(start + 8, start + 9, "acquired", 3, "sender-2", until - 9_000)
            in_flight = (held, again, InFlight(start + 10, start + 11, "available", 2))
        found[TopicPartition(topic, at)] = PartitionLag(end - lag, end, lag, in_flight=in_flight)
    return found


class MadeUpReader:
    """What the cluster says; `ClusterReader`'s methods, without brokers."""

    async def groups(self) -> list[GroupListing]:
        return [
            GroupListing(name, kind, _description(name).state, "consumer", 2) for name, kind in sorted(TYPES.items())
        ]

    async def look(self, types: Mapping[str, GroupType]) -> dict[str, GroupReport]:
        return {name: GroupReport(_description(name), _lags(name)) for name in types if name in TYPES}

    async def topics(self) -> dict[str, TopicInfo]:
        return {name: _topic(name) for name in TOPICS}

    async def ends(self, topics: Collection[TopicInfo]) -> dict[TopicPartition, int]:
        return {}

    async def sizes(self) -> dict[TopicPartition, int] | None:
        return {
            TopicPartition(name, at): 48_000_000 + 1_700_000 * at for name, of in TOPICS.items() for at in range(of)
        }

    async def topic(self, name: str) -> TopicReport:
        said = {"cleanup.policy": ("compact", ConfigSource.TOPIC), "retention.ms": ("604800000", ConfigSource.DEFAULT)}
        settings = {
            key: ConfigEntry(name=key, value=value, source=source, read_only=False, sensitive=False)
            for key, (value, source) in said.items()
        }
        ends: Mapping[int, tuple[int | None, int | None]] = {at: (0, 120_000 + 311 * at) for at in range(TOPICS[name])}
        return TopicReport(_topic(name), settings, ends)

    async def dead_letter_topic(self, group_id: str) -> str:
        return "mails-dead"

    async def placed(self, group_id: str) -> tuple[Group, list[str]]:
        count = TOPICS["flights"]
        tasks = [TaskId(part, at) for part in ("0", "1") for at in range(count)]
        members = [
            Member(
                id=member.member_id,
                process=member.streams.process_id,
                tags={},
                active=frozenset(task for task, role in member.streams.tasks.items() if role is Role.ACTIVE),
                standby=frozenset(task for task, role in member.streams.tasks.items() if role is Role.STANDBY),
            )
            for member in _description(group_id).members
            if member.streams is not None
        ]
        ends = {task: 90_000 + 11 * task.partition for task in tasks}
        lags = {
            (each.process, task): 140 if task in each.standby else 0
            for each in members
            for task in each.active | each.standby
        }
        return Group(
            tuple(SubtopologyTasks(part, count, 1) for part in ("0", "1")),
            tuple(members),
            standbys=1,
            lags=lags,
            ends=ends,
        ), []


def _topic(name: str) -> TopicInfo:
    partitions = {
        at: PartitionInfo(at, at % 3 + 1, 4, (at % 3 + 1, (at + 1) % 3 + 1), (at % 3 + 1, (at + 1) % 3 + 1))
        for at in range(TOPICS[name])
    }
    return TopicInfo(name, UUID(int=0x1234_5678 << 96 | len(name)), False, partitions)


class MadeUpRecords:
    """Records of an aggregate's changelog."""

    decoder = RecordDecoder()

    async def read(self, topic: str, choice: RecordChoice, wanted: RecordFilter | None = None) -> FoundRecords:
        records = []
        for number, origin in enumerate(("JFK", "LGA", "EWR", "JFK", "LGA")):
            state = b'{"n":%d,"mean.sum":"38.0","legs":"[1, 2]"}' % (1 + number // 3)
            value = b'{"n":%d,"mean":3.2,"state":%s}' % (1 + number // 3, state) if number else None
            key = b'{"window":"2013-01-01T12:00:00.000Z","origin":"%s"}' % origin.encode()
            shown = self.decoder.key(topic, key), self.decoder.value(topic, key, value)
            if wanted is None or wanted(*shown, ()):
                records.append(Record(topic, number % 3, 120_000 + number, NOON_MS + 250 * number, key, value, ()))
        return FoundRecords(records, TOPICS[topic], True, 20_000 if wanted else len(records), {0: 119_950})

    async def in_thread(self, work: Callable[[], T]) -> T:
        return work()

    def close(self) -> None:
        pass


class MadeUpTopics:
    """What changes of topics ask."""

    async def describe(self, name: str) -> dict[str, TopicInfo]:
        return {name: _topic(name)}


class MadeUpAdmin:
    """What changes of groups ask and do; `Admin`'s methods, without brokers."""

    def __init__(self) -> None:
        self.groups = self.group_offsets = self
        self.topics = MadeUpTopics()

    async def describe(self, group_id: str) -> dict[str, GroupDescription]:
        return {group_id: _description(group_id)}

    async def reset(self, group_id: str, to: ResetTo, **more: Any) -> dict[TopicPartition, PlannedReset]:
        lags = _lags(group_id)
        committed = {at: lag.committed for at, lag in lags.items() if lag.committed is not None}
        return plan(to, committed, {at: (0, lag.end or 0) for at, lag in lags.items()})


class MadeUpLogin(Login):
    """Lets nobody in."""

    by_name = True

    async def enter(self, name: str, secret: str) -> Entered:
        raise RefusedError("The cluster doesn't know this name, or this password.", 401)


def _store_answer(url: str, parse: Callable[[bytes], Any], access: HttpAccess) -> Any:
    """What an instance answers."""
    keys = {"window": "timestamp", "origin": "string"}
    here = [{"partition": at, "role": "active"} for at in range(3)]
    store = {"name": "flight-delays-by-origin", "key": keys, "subtopology": "0", "partitions": 6, "here": here}
    by_sky = store | {"name": "flight-delays-by-sky", "key": {"sky": "string"}, "subtopology": "1"}
    rows = [
        {
            "key": {"window": f"2013-01-01T{hour:02}:00:00.000Z", "origin": origin},
            "value": {"n": 30 + 7 * hour % 11, "mean": round(3.2 + hour / 3, 1), "worst": 40 + 13 * hour},
        }
        for hour in range(12, 15)
        for origin in ("EWR", "JFK", "LGA")
    ]
    answer = {"store": store["name"], "rows": rows, "next": "/stores/x?after=7B", "copies": [], "missing": []}
    return parse(json.dumps({"stores": [store, by_sky]} if url.endswith("/stores") else answer).encode())


KINDS: Final[Mapping[str, Callable[[], Mapping[str, Any]]]] = {
    "": dict,
    "writes": lambda: {
        "access": Access(cast(Admin, MadeUpAdmin()), ClientConfig(bootstrap_servers="kafka-1.example:9092")),
        "policy": Policy(write=True, audit=AuditLog(stream=io.StringIO())),
    },
    "login": lambda: {"policy": Policy(MadeUpLogin(), audit=AuditLog(stream=io.StringIO()))},
    "stores": lambda: {"stores": OPEN},
}
"""Consoles as they can be started, by what they are for, with the options of their servers."""


@asynccontextmanager
async def made_up_console(kind: str = "") -> AsyncIterator[ConsoleServer]:
    """A console of the cluster, with 20 minutes of histories, of one of `KINDS`."""
    reader = cast(ClusterReader, MadeUpReader())
    watcher, growth = Watcher(reader), TopicWatcher(reader)
    now = asyncio.get_running_loop().time()
    watcher.book.listed(await reader.groups())
    settled = {name: seen(_description(name)) for name in LAGS}
    for sample in range(6 * MINUTES):
        at = now - 60 * MINUTES + 10 * sample
        left = 6 * MINUTES - sample
        waves = 1 + math.sin(sample / 7) / 5
        lags = {name: int(lag * (1 + left / 40) * waves) for name, lag in LAGS.items()}
        summaries = {
            name: Summary(2, lag, 250 * sample + 50_000, settled[name]._replace(epoch=_epoch(name, sample)))
            for name, lag in lags.items()
        }
        watcher.book.looked(at, summaries, lags)
        for name, kept in watcher.lags.looked(lags).items():
            kept.looked(
                at + (sample > 0), GroupReport(_description(name), _lags(name, lags[name])).lags
            )  # points begin between two samples
        ends = {name: int(40_000 + (6_000 * sample + 20_000 * waves) / (1 + len(name) % 3)) for name in TOPICS}
        sizes = {name: 200_000_000 + 900_000 * sample * (1 + len(name) % 4) for name in TOPICS}
        growth.book.looked(at, ends, sizes, TOPICS, due=TOPICS)
        group = _streams_group(20 * sample // (6 * MINUTES))
        watcher.times.looked([group.group_id])[group.group_id].looked(at, NOON_MS + 10_000 * sample, group)
    growth.sizes = await reader.sizes() or {}
    records = cast(RecordReader, MadeUpRecords())
    server = ConsoleServer(watcher, reader, records, cluster="kafka-1.example:9092", growth=growth, **KINDS[kind]())
    await watcher.look()
    await server.start()
    try:
        with patch.object(store_pages, "_answer", _store_answer):
            yield server
    finally:
        await server.close()
