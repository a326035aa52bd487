"""Finding who has the partitions of a store, and reading them: here, or from the instances that have them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from kohort.spark.queries.peer_client import PeerClient, PeerError, address
from kohort.spark.queries.peer_messages import Answer, Copy, Missing, PeerQuery
from kohort.spark.queries.queryable import OpenStore, Queryable, StoreRole
from kohort.spark.queries.result_pages import Page, Row, collect, joined, stored_rows
from kohort.spark.state.errors import StateError
from kohort.streams.endpoint import Endpoint

__all__ = ["GLOBAL", "QueryRouter"]

GLOBAL: Final = -1
"""The partition of a global table."""

_THREADS: Final = 4
_ATTEMPTS: Final = 3
_UP_TO_DATE: Final = (StoreRole.ACTIVE, StoreRole.GLOBAL)
_BY_FRESHNESS: Final = list(StoreRole)


class _Whereabouts(NamedTuple):
    """Who has a partition, by what the group said last."""

    owner: Endpoint | None
    copies: tuple[Endpoint, ...]


class QueryRouter:
    """Answers questions, from the stores that are open here and from others.

    Args:
        instance: whose stores.
        peers: the way to others.
    """

    def __init__(self, instance: Queryable, peers: PeerClient) -> None:
        self._instance = instance
        self._peers = peers
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kohort-queries")

    def close(self) -> None:
        """Read nothing any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def here(self, question: PeerQuery) -> Answer:
        """What is open here of what is asked for."""
        for _ in range(_ATTEMPTS):
            open_stores = self._readable(question)
            read = functools.partial(_read, question, list(open_stores.values()))
            try:
                page = await asyncio.get_running_loop().run_in_executor(self._threads, read)
            except StateError:
                continue  # a task went meanwhile: its store isn't among the open ones any more, or is opened anew
            copies = [self._copy(partition, store) for partition, store in open_stores.items()]
            lacking = [partition for partition in question.partitions if partition not in open_stores]
            return Answer(page.rows, page.until, copies, self._missing(question, lacking))
        return Answer([], None, [], self._missing(question, question.partitions))

    async def anywhere(self, question: PeerQuery) -> Answer:
        """What is open anywhere of what is asked for."""
        answer = await self.here(question)
        tried: set[tuple[int, Endpoint]] = set()
        for _ in range(_ATTEMPTS):
            # Who has what may change while others are asked: then those that are said to have it now are asked.
            asked = self._whom(question, [lack.partition for lack in answer.missing], tried)
            if not asked:
                break
            tried.update((partition, peer) for peer, partitions in asked.items() for partition in partitions)
            answers = await asyncio.gather(
                *(self._there(peer, question, partitions) for peer, partitions in asked.items())
            )
            served = {partition for partitions in asked.values() for partition in partitions}
            kept = [lack for lack in answer.missing if lack.partition not in served]
            answer = _together(question.limit, [msgspec.structs.replace(answer, missing=kept), *answers])
        return answer

    def _whom(
        self, question: PeerQuery, partitions: Iterable[int], tried: set[tuple[int, Endpoint]]
    ) -> dict[Endpoint, list[int]]:
        """Whom to ask for partitions: their owners; those with copies when these will do and the owner was asked."""
        asked: dict[Endpoint, list[int]] = {}
        for partition in partitions:
            owner, copies = self._whereabouts(question, partition)
            candidates = [owner, *(copies if question.stale else ())]
            for peer in candidates:
                if peer is not None and peer != self._instance.endpoint() and (partition, peer) not in tried:
                    asked.setdefault(peer, []).append(partition)
                    break
        return asked

    async def _there(self, peer: Endpoint, question: PeerQuery, partitions: list[int]) -> Answer:
        try:
            answer = await self._peers.ask(peer, msgspec.structs.replace(question, partitions=tuple(partitions)))
            read = {copy.partition for copy in answer.copies}
            told = read | {lack.partition for lack in answer.missing}
            if not told.issubset(partitions) or not read.issuperset(row.partition for row in answer.rows):
                raise PeerError("its answer makes no sense: it is of partitions that weren't asked for")
        except PeerError as error:
            why = f"{address(peer)} should have it, but: {error}; if it is dead, others get its tasks soon"
            lost = [
                Missing(partition, why, address(peer), self._copies(question, partition)) for partition in partitions
            ]
            return Answer([], None, [], lost)
        answer.missing.extend(
            Missing(partition, f"{address(peer)} doesn't know it") for partition in partitions if partition not in told
        )
        return answer

    def _readable(self, question: PeerQuery) -> dict[int, OpenStore]:
        """The copies to read, by partition: the freshest of each that will do."""
        found: dict[int, OpenStore] = {}
        opened = sorted(self._instance.open_stores(question.store), key=lambda each: _BY_FRESHNESS.index(each.role))
        for store in opened:
            if question.stale or store.role in _UP_TO_DATE:
                found.setdefault(GLOBAL if store.partition is None else store.partition, store)
        return {partition: found[partition] for partition in question.partitions if partition in found}

    def _copy(self, partition: int, store: OpenStore) -> Copy:
        own = self._instance.endpoint()
        return Copy(partition, store.role.value, store.lag, None if own is None else address(own))

    def _missing(self, question: PeerQuery, partitions: Iterable[int]) -> list[Missing]:
        """Why partitions can't be read here."""
        opened = self._instance.open_stores(question.store)
        coming = {store.partition: store.lag for store in opened if store.role is StoreRole.RESTORING}
        return [self._why(question, partition, coming) for partition in partitions]

    def _why(self, question: PeerQuery, partition: int, coming: Mapping[int | None, int | None]) -> Missing:
        own = self._instance.endpoint()
        owner = self._whereabouts(question, partition).owner
        if partition == GLOBAL:
            return Missing(partition, "the table is being loaded", None if own is None else address(own))
        if partition in coming or (owner is not None and owner == own):
            lag = coming.get(partition)
            reason = "it moves here, and its state is being restored" + (
                "" if lag is None else f": {lag:,} records left"
            )
            owner = own
        elif owner is None:
            # The group tells of none that has no endpoint: whether such a one runs it can't be seen.
            reason = (
                "no instance that answers queries runs it: the group gives it to one soon, or the one that has it"
                " lacks an application_server"
            )
        else:
            reason = f"{address(owner)} has it, or is about to"
        return Missing(partition, reason, None if owner is None else address(owner), self._copies(question, partition))

    def _whereabouts(self, question: PeerQuery, partition: int) -> _Whereabouts:
        info = self._instance.stores().get(question.store)
        if info is None or info.subtopology is None:
            return _Whereabouts(None, ())
        inputs = set(self._instance.inputs(info.subtopology, partition))
        owner, copies = None, []
        for endpoint, has in self._instance.endpoints().items():
            if not inputs.isdisjoint(has.active):
                owner = endpoint
            elif not inputs.isdisjoint(has.standby):
                copies.append(endpoint)
        return _Whereabouts(owner, tuple(copies))

    def _copies(self, question: PeerQuery, partition: int) -> tuple[str, ...]:
        return tuple(address(endpoint) for endpoint in self._whereabouts(question, partition).copies)


def _read(question: PeerQuery, stores: Sequence[OpenStore]) -> Page:
    """What stores have of what is asked for. Raises StateError."""
    if question.key is None and question.end is not None and question.end <= question.start:
        return Page([], None)
    if question.key is None:
        wanted = question.limit + 1
        sources = [stored_rows(each.store, _number(each), question.start, question.end, wanted) for each in stores]
        return collect(sources, question.limit, question.suffix)
    rows = []
    for each in stores:
        value = each.store.get_many(pa.array([question.key], pa.binary()))[0].as_py()
        if value is not None:
            rows.append(Row(question.key, bytes(value), _number(each)))
    return Page(rows, None)


def _number(store: OpenStore) -> int:
    return GLOBAL if store.partition is None else store.partition


def _together(limit: int, answers: Sequence[Answer]) -> Answer:
    page = joined([Page(answer.rows, answer.until) for answer in answers], limit)
    copies = sorted((copy for answer in answers for copy in answer.copies), key=lambda copy: copy.partition)
    missing = sorted((lack for answer in answers for lack in answer.missing), key=lambda lack: lack.partition)
    return Answer(page.rows, page.until, copies, missing)
