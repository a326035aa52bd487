"""Asks coordinators for producer ids, and for what transactions need, until they answer or the time is over."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from kohort import __version__
from kohort.client.cluster import Cluster
from kohort.client.connection import Connection
from kohort.client.errors import (
    CommitFailedError,
    ConnectionLostError,
    RequestTimeoutError,
    TransactionAbortableError,
    kafka_error,
    raise_for,
)
from kohort.client.producing.batch import Identity
from kohort.client.producing.coordinator_errors import Asked, Reaction, reaction_to
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transactions import ProducerState
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.time_limit import time_limit
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Request, Response
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kohort.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

__all__ = ["TransactionClient"]

R = TypeVar("R", bound=Response)

_SOON_S: Final = 0.02
"""The transaction before is being finished; that takes no longer than writing its markers."""

_NO_TIMEOUT: Final = 2**31 - 1
_IMPLICIT_SINCE: Final = 2
_NO_IDENTITY: Final = Identity(-1, -1)


class _Question(NamedTuple):
    """What to ask whom; `most` is the newest version that will do."""

    asked: Asked
    request: Request
    kind: CoordinatorKind
    key: str
    most: int | None = None


class TransactionClient:
    """The asyncio shell around `ProducerState`: each method asks, tells the state, and raises what came out.

    Every method may be cancelled or run out of time (`max_block_ms`), and be called again: coordinators recognise what
    they were asked before.
    """

    def __init__(self, cluster: Cluster, settings: ProducerSettings, state: ProducerState) -> None:
        self._cluster = cluster
        self._settings = settings
        self._state = state

    async def initialize(self) -> None:
        """Get an id. With a transactional id, that ends what its last user left open, and fences it.

        Raises:
            FencedError: another producer did so meanwhile.
            KafkaError: a broker won't have it, by what it says.
            RequestTimeoutError: no answer in time.
        """
        settings = self._settings
        if not settings.enable_idempotence:
            self._state.initialized(None)
        elif settings.transactional_id is None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT)
            self._state.initialized(await self._identity(request))
        else:
            identity = await self._identity(self._init_request(_NO_IDENTITY))
            self._state.initialized(identity, implicit=await self._implicit())

    def _init_request(self, held: Identity) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=self._settings.transactional_id,
            transaction_timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=held.producer_id,
            producer_epoch=held.epoch,
        )

    async def _identity(self, request: InitProducerIdRequest) -> Identity:
        # Version 6 is for two-phase commit alone.
        question = _Question(Asked.INIT, request, CoordinatorKind.TRANSACTION, request.transactional_id or "", 5)
        answer = await self._ask(question, InitProducerIdResponse, _own_code)
        return Identity(answer.producer_id, answer.producer_epoch)

    async def _implicit(self) -> bool:
        async def features() -> ApiVersionsResponse:
            connection = await self._cluster.any_connection()
            request = ApiVersionsRequest(client_software_name="kohort", client_software_version=__version__)
            answer = await connection.ask(request, ApiVersionsResponse)
            raise_for(answer.error_code)
            return answer

        answer = await self._until("ApiVersions", features)
        return any(
            feature.name == "transaction.version" and feature.max_version_level >= _IMPLICIT_SINCE
            for feature in answer.finalized_features
        )

    async def add_partitions(self) -> None:
        """Add those that wait for it to the transaction. Raises as `end`."""
        state = self._state
        partitions = frozenset(state.pending)
        if not partitions or state.identity is None or state.failed:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=state.transactional_id or "",
            v3_and_below_producer_id=state.identity.producer_id,
            v3_and_below_producer_epoch=state.identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(each.partition for each in group))
                for topic, group in itertools.groupby(sorted(partitions), lambda each: each.topic)
            ],
        )
        await self._ask(
            self._transactional(Asked.ADD_PARTITIONS, request, most=3),
            AddPartitionsToTxnResponse,
            lambda answer: [
                (each.partition_error_code, f"{topic.name}-{each.partition_index}")
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ],
        )
        state.added(partitions)

    async def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata) -> None:
        """Commit a group's offsets in the transaction.

        Raises:
            CommitFailedError: the group has moved on; abort the transaction.
            others: as `end`.
        """
        state = self._state
        assert state.identity is not None
        if not state.implicit:
            add = AddOffsetsToTxnRequest(
                transactional_id=state.transactional_id or "",
                producer_id=state.identity.producer_id,
                producer_epoch=state.identity.epoch,
                group_id=group.group_id,
            )
            await self._ask(self._transactional(Asked.ADD_OFFSETS, add), AddOffsetsToTxnResponse, _own_code)
        # From here on there may be something in the transaction, whatever the answer is.
        state.started = True
        topics: dict[str, list[TxnOffsetCommitRequest.Topic.Partition]] = defaultdict(list)
        for (topic, partition), committed in offsets.items():
            topics[topic].append(
                TxnOffsetCommitRequest.Topic.Partition(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    committed_metadata=committed.metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=state.transactional_id or "",
            group_id=group.group_id,
            producer_id=state.identity.producer_id,
            producer_epoch=state.identity.epoch,
            generation_id=group.generation,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[TxnOffsetCommitRequest.Topic(name=name, partitions=each) for name, each in topics.items()],
        )
        most = None if state.implicit else 4
        await self._ask(
            _Question(Asked.COMMIT_OFFSETS, request, CoordinatorKind.GROUP, group.group_id, most),
            TxnOffsetCommitResponse,
            lambda answer: [
                (each.error_code, f"{topic.name}-{each.partition_index}")
                for topic in answer.topics
                for each in topic.partitions
            ],
        )

    async def end(self, *, commit: bool) -> None:
        """Have the transaction committed or aborted; then the next one can begin.

        Raises:
            TransactionAbortableError: it must be aborted.
            FencedError: another producer has the transactional id.
            KafkaError: what is fatal by what a broker says.
            RequestTimeoutError: no answer in time: call it again.
        """
        state = self._state
        assert state.identity is not None
        if not state.started:
            # There is nothing that a coordinator would have to end.
            await self._renew_epoch()
            state.ended()
            return
        request = EndTxnRequest(
            transactional_id=state.transactional_id or "",
            producer_id=state.identity.producer_id,
            producer_epoch=state.identity.epoch,
            committed=commit,
        )
        question = self._transactional(Asked.COMMIT if commit else Asked.ABORT, request, None if state.implicit else 4)
        answer = await self._ask(question, EndTxnResponse, _own_code)
        if answer.producer_id >= 0:
            state.ended(Identity(answer.producer_id, answer.producer_epoch))
            return
        state.started = False
        await self._renew_epoch()
        state.ended()

    async def _renew_epoch(self) -> None:
        """Where ends of transactions don't raise the epoch, raise it after an error: sequences are in doubt."""
        state = self._state
        if state.stale_epoch and not state.implicit and state.identity is not None:
            state.identity = await self._identity(self._init_request(state.identity))
            state.stale_epoch = False

    def _transactional(self, asked: Asked, request: Request, most: int | None = None) -> _Question:
        return _Question(asked, request, CoordinatorKind.TRANSACTION, self._state.transactional_id or "", most)

    async def _ask(self, question: _Question, response: type[R], codes: Callable[[R], Iterable[tuple[int, str]]]) -> R:
        """Ask until nothing but success or a lasting error is answered; `codes` are those in an answer, and of what."""

        async def once() -> R:
            try:
                connection = await self._connection(question)
                version = connection.version(type(question.request), question.most)
                answer = await connection.ask(question.request, response, version=version)
            except (ConnectionLostError, RequestTimeoutError):
                self._forget(question)
                raise
            self._judge(question, codes(answer))
            return answer

        return await self._until(question.asked.value, once, question)

    async def _connection(self, question: _Question) -> Connection:
        if question.key:
            return await self._cluster.coordinator_connection(question.kind, question.key)
        return await self._cluster.any_connection()

    def _forget(self, question: _Question) -> None:
        if question.key:
            self._cluster.forget_coordinator(question.kind, question.key)

    def _judge(self, question: _Question, codes: Iterable[tuple[int, str]]) -> None:
        """Raise the first error, but a lasting one before one to ask again after."""
        failures = [(kafka_error(code, what), code) for code, what in codes if code]
        failures.sort(key=lambda each: each[0].code.retriable)
        if failures:
            raise failures[0][0]

    async def _until(self, what: str, once: Callable[[], Awaitable[R]], question: _Question | None = None) -> R:
        """Do it again after what may pass, within `max_block_ms`; tell the state of what doesn't."""
        backoff = self._cluster.backoff()
        failure: Exception | None = None
        try:
            async with time_limit(self._settings.max_block_ms / 1000):
                while True:
                    pause = backoff.next() / 1000
                    try:
                        return await once()
                    except (ConnectionLostError, RequestTimeoutError) as error:
                        failure = error
                    except KafkaError as error:
                        failure = error
                        if question is not None:
                            self._react(question, error)
                        if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                            pause = _SOON_S
                    await asyncio.sleep(pause)
        except TimeoutError:
            detail = f"; the last error: {failure}" if failure else ""
            ms = self._settings.max_block_ms
            raise RequestTimeoutError(f"{what}: no success within max_block_ms={ms}{detail}") from failure

    def _react(self, question: _Question, error: KafkaError) -> None:
        """Raise what shouldn't be tried again."""
        state = self._state
        match reaction_to(question.asked, error.code):
            case Reaction.RETRY:
                return
            case Reaction.FIND:
                self._forget(question)
                return
            case Reaction.ABORTABLE if question.asked is not Asked.INIT:
                state.abortable(error)
                raise TransactionAbortableError(
                    f"{question.asked.value}: the transaction failed and must be aborted: {error}"
                ) from error
            case Reaction.MOVED_ON:
                state.abortable(error)
                raise CommitFailedError(
                    f"{question.key}: the group has moved on, so the transaction must be aborted: {error}"
                ) from error
            case Reaction.FENCED:
                state.fenced(error)
            case _:
                state.fatal(error)
        assert state.error is not None
        raise state.error


def _own_code(answer: Response) -> Collection[tuple[int, str]]:
    return [(answer.error_code, "")]  # type: ignore[attr-defined]  # those that are asked with it have one
