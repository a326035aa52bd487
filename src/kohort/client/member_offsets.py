"""The offsets that a member commits: OffsetCommit and OffsetFetch at the coordinator, with retries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from kohort.client.errors import (
    CommitFailedError,
    ConnectionLostError,
    FencedError,
    RequestTimeoutError,
    kafka_error,
)
from kohort.client.membership.offset_requests import (
    BY_ID,
    BY_NAME,
    commit_codes,
    commit_request,
    fetch_request,
    fetched_offsets,
)
from kohort.client.membership.settings import MembershipSettings
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.time_limit import time_limit
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.schema import NO_UUID

if TYPE_CHECKING:
    from kohort.client.cluster import Cluster
    from kohort.client.connection import Connection

__all__ = ["CommittingMember", "MemberOffsets"]

_NOT_COORDINATOR: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_RETRIED: Final = frozenset(
    {
        *_NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
_STALE_GENERATION: Final = frozenset(
    {
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    }
)
_GROUP_ERRORS: Final = frozenset(
    {ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND}
)


class CommittingMember(Protocol):
    """The member that commits, as `MemberOffsets` needs it."""

    def group_metadata(self) -> GroupMetadata:
        """Its id and generation or epoch now."""

    def holds(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether it owns these partitions, or is no member and may commit for any."""

    async def moved_on(self, generation: int) -> bool:
        """Waits for the coordinator's next response; returns whether the generation or epoch is another then."""


class MemberOffsets:
    """Commits and looks up the offsets of a member's group.

    Args:
        cluster: started.
        settings: the member's.
        member: knows the generation, and which partitions are owned.
        purpose: which connection to the coordinator to use (`Cluster.connection`).
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: MembershipSettings,
        member: CommittingMember,
        purpose: Callable[[], str] = lambda: "coordinator",
    ) -> None:
        self._cluster, self._settings, self._member, self._purpose = cluster, settings, member, purpose

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int
    ) -> dict[TopicPartition, Exception]:
        """See `CoordinatorConnector.commit`."""
        failed: dict[TopicPartition, Exception] = {}
        left = dict(offsets)
        by_name = False
        retried = False

        async def attempt(connection: Connection) -> KafkaError | None:
            nonlocal by_name, retried
            if not self._member.holds(left):
                raise CommitFailedError(_moved_on(self._settings.group_id))
            metadata = self._member.group_metadata()
            ids, version = self._ids(connection, OffsetCommitRequest, left, by_name)
            request = commit_request(left, metadata, ids)
            response = await connection.ask(
                request, OffsetCommitResponse, version=version, timeout_ms=self._settings.request_timeout_ms
            )
            retriable: KafkaError | None = None
            stale: KafkaError | None = None
            for partition, code in commit_codes(response, tuple(left), ids).items():
                if code == ErrorCode.NONE:
                    del left[partition]
                elif code in _RETRIED and not self._topic_deleted(partition, code):
                    retriable = kafka_error(code, str(partition))
                    by_name = by_name or code == ErrorCode.UNKNOWN_TOPIC_ID
                elif code in _STALE_GENERATION:
                    stale = kafka_error(code)
                elif code == ErrorCode.FENCED_INSTANCE_ID:
                    raise FencedError(_fenced(self._settings))
                elif code in _GROUP_ERRORS:
                    raise kafka_error(code, f"group {self._settings.group_id!r}")
                else:
                    failed[partition] = kafka_error(code, str(partition))
                    del left[partition]
            if stale is not None:
                # Retried once, if the member has a new generation or epoch by then, and has kept the partitions.
                if retried or not await self._member.moved_on(metadata.generation):
                    raise CommitFailedError(_moved_on(self._settings.group_id)) from stale
                retried = True
            return retriable or stale

        if left:
            await self._retry_until_done("commit", attempt, timeout_ms)
        return failed

    async def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """See `CoordinatorConnector.committed`."""
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        left = set(partitions)
        by_name = False
        retried = False
        consumer_group = self._settings.group_protocol == "consumer"

        async def attempt(connection: Connection) -> KafkaError | None:
            nonlocal by_name, retried
            metadata = self._member.group_metadata()
            ids, version = self._ids(connection, OffsetFetchRequest, left, by_name)
            request = fetch_request(left, metadata, ids, version, consumer_group=consumer_group)
            response = await connection.ask(
                request, OffsetFetchResponse, version=version, timeout_ms=self._settings.request_timeout_ms
            )
            code, answers = fetched_offsets(response, tuple(left), ids)
            if code in _RETRIED:
                return kafka_error(code)
            if code in _STALE_GENERATION and not retried and await self._member.moved_on(metadata.generation):
                retried = True
                return kafka_error(code)
            if code == ErrorCode.FENCED_INSTANCE_ID:
                raise FencedError(_fenced(self._settings))
            if code:
                raise kafka_error(code, f"group {self._settings.group_id!r}")
            retriable: KafkaError | None = None
            for partition, (error, offset) in answers.items():
                if error in _RETRIED:
                    retriable = kafka_error(error, str(partition))
                    by_name = by_name or error == ErrorCode.UNKNOWN_TOPIC_ID
                elif error:
                    raise kafka_error(error, str(partition))
                else:
                    found[partition] = offset
                    left.discard(partition)
            return retriable

        if left:
            await self._retry_until_done("look up committed offsets", attempt, timeout_ms)
        return found

    def _topic_deleted(self, partition: TopicPartition, code: int) -> bool:
        """Whether a topic doesn't exist (any more), by metadata too: a rebalance must not wait for it."""
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        self._cluster.request_refresh()
        return partition.topic not in self._cluster.info.topics

    def _ids(
        self,
        connection: Connection,
        request: type[OffsetCommitRequest] | type[OffsetFetchRequest],
        partitions: Collection[TopicPartition],
        by_name: bool,
    ) -> tuple[dict[str, UUID], int]:
        """Returns the topics' ids, if all are known and the broker takes them; and the request's version."""
        version = connection.version(request)
        topics = self._cluster.info.topics
        wanted = {partition.topic for partition in partitions}
        ids = {name: topics[name].topic_id for name in wanted if name in topics and topics[name].topic_id != NO_UUID}
        if version < BY_ID or by_name or len(ids) < len(wanted):
            return {}, connection.version(request, BY_NAME)
        return ids, version

    async def _retry_until_done(
        self, what: str, attempt: Callable[[Connection], Awaitable[KafkaError | None]], timeout_ms: int
    ) -> None:
        backoff = self._cluster.backoff()
        group = self._settings.group_id
        why: Exception | None = None
        try:
            async with time_limit(timeout_ms / 1000):
                while True:
                    try:
                        connection = await self._cluster.coordinator_connection(
                            CoordinatorKind.GROUP, group, self._purpose()
                        )
                        why = await attempt(connection)
                    except (ConnectionLostError, RequestTimeoutError) as error:
                        why = error
                    except KafkaError as error:
                        if not error.code.retriable:
                            raise
                        why = error
                    if why is None:
                        return
                    if not isinstance(why, KafkaError) or why.code in _NOT_COORDINATOR:
                        self._cluster.forget_coordinator(CoordinatorKind.GROUP, group)
                    await asyncio.sleep(backoff.next() / 1000)
        except TimeoutError as error:
            if isinstance(error, RequestTimeoutError):
                raise
            detail = f"group {group!r}: couldn't {what} within {timeout_ms} ms"
            raise RequestTimeoutError(f"{detail}; last: {why}" if why else detail) from why


def _moved_on(group_id: str) -> str:
    return (
        f"group {group_id!r} has moved on, and this member no longer has these partitions; the one that has them now "
        "reads again what wasn't committed. If records take long, raise max_poll_interval_ms or ask for fewer at a time"
    )


def _fenced(settings: MembershipSettings) -> str:
    return f"another member of group {settings.group_id!r} has the group_instance_id {settings.group_instance_id!r}"
