"""Requests to transaction coordinators, with retries: producer ids, partitions, offsets and ends of transactions."""

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
from kohort.client.producing.coordinator_errors import Operation, Reaction, reaction_to
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_manager import TransactionManager
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

R = TypeVar("R", bound=Response)

_CONCURRENT_TRANSACTIONS_PAUSE_S: Final = 0.02
"""The previous transaction is being finished; that takes no longer than writing its markers."""

_NO_TIMEOUT: Final = 2**31 - 1
_TRANSACTION_V2: Final = 2
_BEFORE_TRANSACTION_V2: Final = 4
_BY_NAME: Final = 5
"""The last versions of TxnOffsetCommit before it adds offsets to the transaction itself, and before topics have ids."""
_NO_IDENTITY: Final = Identity(-1, -1)


class _CoordinatorRequest(NamedTuple):
    """A request and its coordinator; `most` is the newest version that can be used."""

    operation: Operation
    request: Request
    kind: CoordinatorKind
    key: str
    most: int | None = None


class TransactionClient:
    """The asyncio shell around `TransactionManager`: each method sends requests, updates the manager, raises errors.

    Every method may be cancelled or run out of time (`max_block_ms`), and be called again: coordinators recognise
    repeated requests.
    """

    def __init__(self, cluster: Cluster, settings: ProducerSettings, manager: TransactionManager) -> None:
        self._cluster = cluster
        self._settings = settings
        self._manager = manager

    async def initialize(self) -> None:
        """Gets a producer id. With a transactional id, that fences the last producer and aborts its transaction.

        Raises:
            FencedError: another producer did so meanwhile.
            KafkaError: a broker refuses.
            RequestTimeoutError: no response in time.
        """
        settings = self._settings
        if not settings.enable_idempotence:
            self._manager.initialized(None)
        elif settings.transactional_id is None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT)
            self._manager.initialized(await self._identity(request))
        else:
            identity = await self._identity(self._init_request(_NO_IDENTITY))
            self._manager.initialized(identity, transaction_v2=await self._has_transaction_v2())

    def _init_request(self, held: Identity) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=self._settings.transactional_id,
            transaction_timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=held.producer_id,
            producer_epoch=held.epoch,
        )

    async def _identity(self, request: InitProducerIdRequest) -> Identity:
        # Version 6 is for two-phase commit alone.
        call = _CoordinatorRequest(
            Operation.INIT, request, CoordinatorKind.TRANSACTION, request.transactional_id or "", 5
        )
        answer = await self._ask(call, InitProducerIdResponse, _own_code)
        return Identity(answer.producer_id, answer.producer_epoch)

    async def _has_transaction_v2(self) -> bool:
        async def features() -> ApiVersionsResponse:
            connection = await self._cluster.any_connection()
            request = ApiVersionsRequest(client_software_name="kohort", client_software_version=__version__)
            answer = await connection.ask(request, ApiVersionsResponse)
            raise_for(answer.error_code)
            return answer

        answer = await self._retry_until_done("ApiVersions", features)
        return any(
            feature.name == "transaction.version" and feature.max_version_level >= _TRANSACTION_V2
            for feature in answer.finalized_features
        )

    async def add_partitions(self) -> None:
        """Adds the pending partitions to the transaction. Raises as `end`."""
        manager = self._manager
        partitions = frozenset(manager.pending)
        if not partitions or manager.identity is None or manager.failed:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=manager.transactional_id or "",
            v3_and_below_producer_id=manager.identity.producer_id,
            v3_and_below_producer_epoch=manager.identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=tuple(each.partition for each in group))
                for topic, group in itertools.groupby(sorted(partitions), lambda each: each.topic)
            ],
        )
        await self._ask(
            self._transactional(Operation.ADD_PARTITIONS, request, most=3),
            AddPartitionsToTxnResponse,
            lambda answer: [
                (each.partition_error_code, f"{topic.name}-{each.partition_index}")
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ],
        )
        manager.added(partitions)

    async def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata) -> None:
        """Commits a group's offsets in the transaction.

        Raises:
            CommitFailedError: the group has rebalanced; abort the transaction.
            others: as `end`.
        """
        manager = self._manager
        assert manager.identity is not None
        if not manager.transaction_v2:
            add = AddOffsetsToTxnRequest(
                transactional_id=manager.transactional_id or "",
                producer_id=manager.identity.producer_id,
                producer_epoch=manager.identity.epoch,
                group_id=group.group_id,
            )
            await self._ask(self._transactional(Operation.ADD_OFFSETS, add), AddOffsetsToTxnResponse, _own_code)
        # From here on the transaction may have offsets, whatever the response is.
        manager.started = True
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
            transactional_id=manager.transactional_id or "",
            group_id=group.group_id,
            producer_id=manager.identity.producer_id,
            producer_epoch=manager.identity.epoch,
            generation_id_or_member_epoch=group.generation,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[TxnOffsetCommitRequest.Topic(name=name, partitions=each) for name, each in topics.items()],
        )
        most = _BY_NAME if manager.transaction_v2 else _BEFORE_TRANSACTION_V2
        await self._ask(
            _CoordinatorRequest(Operation.COMMIT_OFFSETS, request, CoordinatorKind.GROUP, group.group_id, most),
            TxnOffsetCommitResponse,
            lambda answer: [
                (each.error_code, f"{topic.name}-{each.partition_index}")
                for topic in answer.topics
                for each in topic.partitions
            ],
        )

    async def end(self, *, commit: bool) -> None:
        """Commits or aborts the transaction; then the next one can begin.

        Raises:
            TransactionAbortableError: it must be aborted.
            FencedError: another producer has the transactional id.
            KafkaError: a fatal error.
            RequestTimeoutError: no response in time: call it again.
        """
        manager = self._manager
        assert manager.identity is not None
        if not manager.started:
            # The coordinator has nothing to end.
            await self._bump_epoch()
            manager.ended()
            return
        request = EndTxnRequest(
            transactional_id=manager.transactional_id or "",
            producer_id=manager.identity.producer_id,
            producer_epoch=manager.identity.epoch,
            committed=commit,
        )
        call = self._transactional(
            Operation.COMMIT if commit else Operation.ABORT, request, None if manager.transaction_v2 else 4
        )
        answer = await self._ask(call, EndTxnResponse, _own_code)
        if answer.producer_id >= 0:
            manager.ended(Identity(answer.producer_id, answer.producer_epoch))
            return
        manager.started = False
        await self._bump_epoch()
        manager.ended()

    async def _bump_epoch(self) -> None:
        """Bumps the epoch after an error, which left sequences in doubt, where ends of transactions don't."""
        manager = self._manager
        if manager.epoch_bump_needed and not manager.transaction_v2 and manager.identity is not None:
            manager.identity = await self._identity(self._init_request(manager.identity))
            manager.epoch_bump_needed = False

    def _transactional(self, operation: Operation, request: Request, most: int | None = None) -> _CoordinatorRequest:
        return _CoordinatorRequest(
            operation, request, CoordinatorKind.TRANSACTION, self._manager.transactional_id or "", most
        )

    async def _ask(
        self, call: _CoordinatorRequest, response: type[R], codes: Callable[[R], Iterable[tuple[int, str]]]
    ) -> R:
        """Sends a request until it succeeds or fails for good; `codes` returns a response's error codes, with names."""

        async def once() -> R:
            try:
                connection = await self._connection(call)
                version = connection.version(type(call.request), call.most)
                answer = await connection.ask(call.request, response, version=version)
            except (ConnectionLostError, RequestTimeoutError):
                self._forget(call)
                raise
            self._raise_first(call, codes(answer))
            return answer

        return await self._retry_until_done(call.operation.value, once, call)

    async def _connection(self, call: _CoordinatorRequest) -> Connection:
        if call.key:
            return await self._cluster.coordinator_connection(call.kind, call.key)
        return await self._cluster.any_connection()

    def _forget(self, call: _CoordinatorRequest) -> None:
        if call.key:
            self._cluster.forget_coordinator(call.kind, call.key)

    def _raise_first(self, call: _CoordinatorRequest, codes: Iterable[tuple[int, str]]) -> None:
        """Raises the first error that isn't retriable, else the first."""
        failures = [(kafka_error(code, what), code) for code, what in codes if code]
        failures.sort(key=lambda each: each[0].code.retriable)
        if failures:
            raise failures[0][0]

    async def _retry_until_done(
        self, what: str, once: Callable[[], Awaitable[R]], call: _CoordinatorRequest | None = None
    ) -> R:
        """Retries after retriable errors, within `max_block_ms`; others go to the manager."""
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
                        if call is not None:
                            self._react(call, error)
                        if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                            pause = _CONCURRENT_TRANSACTIONS_PAUSE_S
                    await asyncio.sleep(pause)
        except TimeoutError:
            detail = f"; the last error: {failure}" if failure else ""
            ms = self._settings.max_block_ms
            raise RequestTimeoutError(f"{what}: no success within max_block_ms={ms}{detail}") from failure

    def _react(self, call: _CoordinatorRequest, error: KafkaError) -> None:
        """Raises errors that aren't retried."""
        manager = self._manager
        match reaction_to(call.operation, error.code):
            case Reaction.RETRY:
                return
            case Reaction.FIND_COORDINATOR:
                self._forget(call)
                return
            case Reaction.ABORTABLE if call.operation is not Operation.INIT:
                manager.abortable(error)
                raise TransactionAbortableError(
                    f"{call.operation.value}: the transaction failed and must be aborted: {error}"
                ) from error
            case Reaction.REBALANCED:
                manager.abortable(error)
                raise CommitFailedError(
                    f"{call.key}: the group has moved on, so the transaction must be aborted: {error}"
                ) from error
            case Reaction.FENCED:
                manager.fenced(error)
            case _:
                manager.fatal(error)
        assert manager.error is not None
        raise manager.error


def _own_code(answer: Response) -> Collection[tuple[int, str]]:
    return [(answer.error_code, "")]  # type: ignore[attr-defined]  # these responses have one
