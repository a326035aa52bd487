"""What the metrics are read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from kohort.broker.metrics.counters import Metrics
from kohort.broker.topics import Topic
from kohort.coordinator.shard import GroupShard
from kohort.coordinator.share_state.shard import ShareStateShard


class Placements(Protocol):
    """Numbers of placements, by assignor; see `Placer`."""

    @property
    def solved(self) -> Mapping[str, int]: ...
    @property
    def failed(self) -> Mapping[str, int]: ...
    @property
    def seconds(self) -> Mapping[str, float]: ...
    @property
    def pending(self) -> int: ...


class Throttled(Protocol):
    """Requests and connections that had to wait, and how many ms in all, by quota; see `Throttling`."""

    @property
    def throttled(self) -> Mapping[str, int]: ...
    @property
    def throttled_ms(self) -> Mapping[str, int]: ...


class Audited(Protocol):
    """Who didn't get in, and what was denied; see `Audit`."""

    @property
    def authentications(self) -> Mapping[str, int]: ...
    @property
    def failed_authentications(self) -> Mapping[str, int]: ...
    @property
    def failed_handshakes(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def denials(self) -> Mapping[str, int]: ...


class ShareInFlight(NamedTuple):
    """A share partition that is in use: how many records it has in flight, and in how many batches."""

    group_id: str
    topic: str
    partition: int
    records: int
    batches: int


class Disk(NamedTuple):
    """The file system that the data is on: its size and what the broker's user can still write, in bytes."""

    size: int
    free: int


class Shares(Protocol):
    """Numbers of share groups' fetches; see `SharePartitions`.

    `totals` are counters, by the name of their metric.
    """

    def totals(self) -> Mapping[str, int]: ...
    def acknowledged(self) -> Mapping[str, int]: ...
    def in_flight(self) -> Iterable[ShareInFlight]: ...
    def open_sessions(self) -> int: ...
    def delayed_fetches(self) -> int: ...


@dataclass(frozen=True, slots=True)
class MetricSources:
    """What Prometheus' metrics are read from, at each scrape.

    Attributes:
        group_shards: the shards of the group coordinator that are loaded.
        share_state_shards: those of the share coordinator.
        coordinators_loading: of each coordinator, whether it still reads its log.
        disk: called in a thread; raises OSError if nobody can say.
        connections_limit: how many connections there may be.
        certificates: until when those of listeners are valid, by the listener's name.
    """

    counters: Metrics
    topics: Callable[[], Iterable[Topic]]
    group_shards: Callable[[], Iterable[GroupShard]]
    share_state_shards: Callable[[], Iterable[ShareStateShard]]
    coordinators_loading: Sequence[Callable[[], bool]]
    placements: Placements
    throttling: Throttled
    audit: Audited
    shares: Shares
    delayed_fetches: Callable[[], int]
    fetch_sessions: Callable[[], int]
    timers: Callable[[], int]
    disk: Callable[[], Disk]
    connections_limit: Callable[[], int]
    certificates: Callable[[], Mapping[str, datetime]] = dict
