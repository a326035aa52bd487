"""Finds the instances that have the partitions of a store, and reads them: here, or from those instances."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from kohort.plurals import several
from kohort.spark.queries.peer_client import PeerClient, PeerError, address
from kohort.spark.queries.peer_messages import MissingPartition, PeerQuery, QueryResult, StoreCopy
from kohort.spark.queries.queryable import OpenStore, Queryable, StoreRole
from kohort.spark.queries.result_pages import Page, Row, merge_pages, merge_rows, scan_rows
from kohort.spark.state.errors import StateError
from kohort.streams.endpoint import Endpoint

GLOBAL: Final = -1
"""The partition of a global table."""

_THREADS: Final = 4
_ATTEMPTS: Final = 3
_UP_TO_DATE: Final = (StoreRole.ACTIVE, StoreRole.GLOBAL)
_BY_FRESHNESS: Final = list(StoreRole)


class _Hosts(NamedTuple):
    """The instances that have a partition, as the group said last."""

    active: Endpoint | None
    standbys: tuple[Endpoint, ...]


class QueryRouter:
    """Reads stores that are open here, and sends queries for the others to the instances that have them."""

    def __init__(self, instance: Queryable, peers: PeerClient) -> None:
        self._instance = instance
        self._peers = peers
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kohort-queries")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def query_here(self, query: PeerQuery) -> QueryResult:
        """Reads the partitions that are open here."""
        for _ in range(_ATTEMPTS):
            open_stores = self._readable(query)
            read = functools.partial(_read, query, list(open_stores.values()))
            try:
                page = await asyncio.get_running_loop().run_in_executor(self._threads, read)
            except StateError:
                continue  # a task was closed meanwhile: its store isn't open any more, or is open again
            copies = [self._copy(partition, store) for partition, store in open_stores.items()]
            missing = [partition for partition in query.partitions if partition not in open_stores]
            return QueryResult(page.rows, page.scanned_to, copies, self._missing(query, missing))
        return QueryResult([], None, [], self._missing(query, query.partitions))

    async def query(self, query: PeerQuery) -> QueryResult:
        """Reads the partitions that are open here, and those that other instances have."""
        result = await self.query_here(query)
        tried: set[tuple[int, Endpoint]] = set()
        for _ in range(_ATTEMPTS):
            # Partitions may move during a round: the next one goes to the instances that have them then.
            by_peer = self._by_peer(query, [each.partition for each in result.missing], tried)
            if not by_peer:
                break
            tried.update((partition, peer) for peer, partitions in by_peer.items() for partition in partitions)
            others = await asyncio.gather(
                *(self._query_peer(peer, query, partitions) for peer, partitions in by_peer.items())
            )
            requested = {partition for partitions in by_peer.values() for partition in partitions}
            missing = [each for each in result.missing if each.partition not in requested]
            result = _merge(query.limit, [msgspec.structs.replace(result, missing=missing), *others])
        return result

    def _by_peer(
        self, query: PeerQuery, partitions: Iterable[int], tried: set[tuple[int, Endpoint]]
    ) -> dict[Endpoint, list[int]]:
        """The partitions to request from each peer: from the active host, or then from standbys if these will do."""
        by_peer: dict[Endpoint, list[int]] = {}
        for partition in partitions:
            hosts = self._hosts(query, partition)
            for peer in (hosts.active, *(hosts.standbys if query.stale else ())):
                if peer is not None and peer != self._instance.endpoint() and (partition, peer) not in tried:
                    by_peer.setdefault(peer, []).append(partition)
                    break
        return by_peer

    async def _query_peer(self, peer: Endpoint, query: PeerQuery, partitions: list[int]) -> QueryResult:
        try:
            result = await self._peers.query(peer, msgspec.structs.replace(query, partitions=tuple(partitions)))
            read = {copy.partition for copy in result.copies}
            covered = read | {each.partition for each in result.missing}
            if not covered.issubset(partitions) or not read.issuperset(row.partition for row in result.rows):
                raise PeerError("its answer is invalid: it has partitions that weren't requested")
        except PeerError as error:
            why = f"{address(peer)} should have it, but: {error}; if it is dead, others get its tasks soon"
            missing = [
                MissingPartition(partition, why, address(peer), self._standbys(query, partition))
                for partition in partitions
            ]
            return QueryResult([], None, [], missing)
        result.missing.extend(
            MissingPartition(partition, f"{address(peer)} doesn't know it")
            for partition in partitions
            if partition not in covered
        )
        return result

    def _readable(self, query: PeerQuery) -> dict[int, OpenStore]:
        """The freshest open copy of each partition that may be read."""
        found: dict[int, OpenStore] = {}
        opened = sorted(self._instance.open_stores(query.store), key=lambda each: _BY_FRESHNESS.index(each.role))
        for store in opened:
            if query.stale or store.role in _UP_TO_DATE:
                found.setdefault(_partition_of(store), store)
        return {partition: found[partition] for partition in query.partitions if partition in found}

    def _copy(self, partition: int, store: OpenStore) -> StoreCopy:
        own = self._instance.endpoint()
        return StoreCopy(partition, store.role.value, store.lag, None if own is None else address(own))

    def _missing(self, query: PeerQuery, partitions: Iterable[int]) -> list[MissingPartition]:
        """Why partitions can't be read here."""
        opened = self._instance.open_stores(query.store)
        restoring = {store.partition: store.lag for store in opened if store.role is StoreRole.RESTORING}
        return [self._why_missing(query, partition, restoring) for partition in partitions]

    def _why_missing(
        self, query: PeerQuery, partition: int, restoring: Mapping[int | None, int | None]
    ) -> MissingPartition:
        own = self._instance.endpoint()
        active = self._hosts(query, partition).active
        if partition == GLOBAL:
            return MissingPartition(partition, "the table is being loaded", None if own is None else address(own))
        if partition in restoring or (active is not None and active == own):
            lag = restoring.get(partition)
            reason = "it moves here, and its state is being restored" + (
                "" if lag is None else f": {several(lag, 'record')} left"
            )
            active = own
        elif active is None:
            # The group doesn't name instances without an endpoint: whether one of them runs it can't be known.
            reason = (
                "no instance that answers queries runs it: the group gives it to one soon, or the one that has it"
                " lacks an application_server"
            )
        else:
            reason = f"{address(active)} has it, or is about to"
        ask = None if active is None else address(active)
        return MissingPartition(partition, reason, ask, self._standbys(query, partition))

    def _hosts(self, query: PeerQuery, partition: int) -> _Hosts:
        info = self._instance.stores().get(query.store)
        if info is None or info.subtopology is None:
            return _Hosts(None, ())
        inputs = set(self._instance.inputs(info.subtopology, partition))
        active, standbys = None, []
        for endpoint, has in self._instance.endpoints().items():
            if not inputs.isdisjoint(has.active):
                active = endpoint
            elif not inputs.isdisjoint(has.standby):
                standbys.append(endpoint)
        return _Hosts(active, tuple(standbys))

    def _standbys(self, query: PeerQuery, partition: int) -> tuple[str, ...]:
        return tuple(address(endpoint) for endpoint in self._hosts(query, partition).standbys)


def _read(query: PeerQuery, stores: Sequence[OpenStore]) -> Page:
    """Reads open stores. Raises StateError."""
    if query.key is None and query.end is not None and query.end <= query.start:
        return Page([], None)
    if query.key is None:
        limit = query.limit + 1
        sources = [scan_rows(each.store, _partition_of(each), query.start, query.end, limit) for each in stores]
        return merge_rows(sources, query.limit, query.suffix)
    rows = []
    for each in stores:
        value = each.store.get_many(pa.array([query.key], pa.binary()))[0].as_py()
        if value is not None:
            rows.append(Row(query.key, bytes(value), _partition_of(each)))
    return Page(rows, None)


def _partition_of(store: OpenStore) -> int:
    return GLOBAL if store.partition is None else store.partition


def _merge(limit: int, results: Sequence[QueryResult]) -> QueryResult:
    page = merge_pages([Page(result.rows, result.scanned_to) for result in results], limit)
    copies = sorted((copy for result in results for copy in result.copies), key=lambda copy: copy.partition)
    missing = sorted((each for result in results for each in result.missing), key=lambda each: each.partition)
    return QueryResult(page.rows, page.scanned_to, copies, missing)
