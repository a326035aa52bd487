"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete for a shard's groups.

An offset committed outside a transaction counts at once. In a transaction it is pending, under the producer's id, until
the marker comes that commits or aborts it. Of a commit inside and one outside a transaction the one that was written
later counts, whenever the marker came. All of it is in the log of `__consumer_offsets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from kohort.coordinator.offsets.expiration import expired_offsets
from kohort.coordinator.offsets.records import committed_offset, offset_record, offset_tombstone
from kohort.coordinator.offsets.responses import (
    commit_refused,
    commit_response,
    txn_commit_refused,
    txn_commit_response,
)
from kohort.coordinator.offsets.rules import OffsetGroups
from kohort.coordinator.offsets.table import CommittedOffset, OffsetTable
from kohort.coordinator.step import Answer, Client, Record, Reply, Step, first_batch
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kohort.protocol.schema import NO_UUID
from kohort.protocol.stored.offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

_LATEST: Final = 2**63 - 1  # the last moment that a record can hold
_STALE_MEMBER_EPOCH: Final = 6  # first version of TxnOffsetCommit with this error (KIP-1319)
_FetchedTopic: TypeAlias = OffsetFetchResponse.Group.Topic
_Fetched: TypeAlias = OffsetFetchResponse.Group.Topic.Partition


class OffsetSettings(Protocol):
    @property
    def offset_metadata_max_bytes(self) -> int:
        """Longest metadata of an offset, in characters, as Kafka counts."""
        ...

    @property
    def offsets_retention_minutes(self) -> int:
        """How long offsets are kept that no member needs; see `expiration`."""
        ...


class Offsets:
    """Commits, fetches, deletes and expires the offsets of a shard's groups."""

    def __init__(self, settings: OffsetSettings, groups: OffsetGroups) -> None:
        self._settings = settings
        self._groups = groups
        self._committed = OffsetTable()
        self._pending: dict[int, OffsetTable] = {}  # by producer id
        self._producers: dict[str, set[int]] = {}  # by group: producers with pending offsets of it
        self._replayed = 0

    def __len__(self) -> int:
        """Number of committed offsets, without those in open transactions."""
        return len(self._committed)

    def committed(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._committed.get(group_id, topic, partition)

    def entries(self) -> Iterator[tuple[str, str, int, CommittedOffset]]:
        """All committed offsets with group, topic and partition."""
        for group_id in self._committed.group_ids():
            for topic, partition, committed in self._committed.entries(group_id):
                yield group_id, topic, partition, committed

    def has(self, group_id: str) -> bool:
        """Whether a group has offsets, committed or in open transactions."""
        return group_id in self._producers or bool(self._committed.topics(group_id))

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any(
            self._pending[producer_id].get(group_id, topic, partition) is not None
            for producer_id in self._producers.get(group_id, ())
        )

    # Requests ---------------------------------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest, client: Client, now: int, reply: Reply) -> Step:
        """OffsetCommit. Topics carry their names, and their ids where these are known, in any version."""
        error = self._groups.offset_rules(request.group_id).validate_commit(
            request.group_id,
            request.member_id,
            request.generation_id_or_member_epoch,
            request.group_instance_id,
            _partitions(request),
            transactional=False,
            version=client.version,
            now=now,
        )
        if error:
            return Step(answers=[Answer(reply, commit_refused(request, error))])
        expires_at = -1 if request.retention_time_ms < 0 else min(now + request.retention_time_ms, _LATEST)
        return Step(
            self._records(request, now, expires_at),
            [Answer(reply, commit_response(request, self._check_metadata))],
            lambda code: Step(answers=[Answer(reply, commit_refused(request, code))]),
        )

    def txn_commit(self, request: TxnOffsetCommitRequest, client: Client, now: int, reply: Reply) -> Step:
        """TxnOffsetCommit, in the producer's transaction, which the caller has verified (KIP-890)."""
        if not request.group_id:
            return Step(answers=[Answer(reply, txn_commit_refused(request, ErrorCode.INVALID_GROUP_ID))])
        error = self._groups.offset_rules(request.group_id).validate_commit(
            request.group_id,
            request.member_id,
            request.generation_id_or_member_epoch,
            request.group_instance_id,
            _partitions(request),
            transactional=True,
            version=client.version,
            now=now,
        )
        if error:
            if error is ErrorCode.STALE_MEMBER_EPOCH and client.version < _STALE_MEMBER_EPOCH:
                error = ErrorCode.ILLEGAL_GENERATION
            return Step(answers=[Answer(reply, txn_commit_refused(request, error))])
        return Step(
            self._records(request, now),
            [Answer(reply, txn_commit_response(request, self._check_metadata))],
            lambda code: Step(answers=[Answer(reply, txn_commit_refused(request, code))]),
            producer=(request.producer_id, request.producer_epoch),
        )

    def _records(
        self, request: OffsetCommitRequest | TxnOffsetCommitRequest, now: int, expires_at: int = -1
    ) -> list[Record]:
        """The records of the offsets in a request, without those whose metadata is too large."""
        records: list[Record] = []
        for topic in request.topics:
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                if not self._check_metadata(metadata):
                    offset = CommittedOffset(
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        metadata,
                        now,
                        expires_at,
                        topic.topic_id,
                    )
                    records.append(offset_record(request.group_id, topic.name, partition.partition_index, offset))
        return records

    def fetch(self, group: OffsetFetchRequest.Group, *, require_stable: bool) -> OffsetFetchResponse.Group:
        """OffsetFetch: the offsets of a group; all that it has where `group.topics` is None.

        Without an offset a partition gets -1. With `require_stable`, one with an offset in an open transaction gets
        UNSTABLE_OFFSET_COMMIT. An unknown group has no offsets; other errors are in `error_code`. Topics carry names,
        and ids if the request has them; an offset committed under another id of the topic doesn't count.
        """
        error = self._groups.offset_rules(group.group_id).validate_fetch(
            group.group_id, group.member_id, group.member_epoch
        )
        if error and error is not ErrorCode.GROUP_ID_NOT_FOUND:
            return OffsetFetchResponse.Group(group_id=group.group_id, error_code=error)
        wanted = group.topics if group.topics is not None else self.everything(group.group_id)
        topics = [
            _FetchedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    self._fetched(group.group_id, topic.name, topic.topic_id, partition, require_stable)
                    for partition in topic.partition_indexes
                ],
            )
            for topic in wanted
        ]
        return OffsetFetchResponse.Group(group_id=group.group_id, topics=topics)

    def delete(self, request: OffsetDeleteRequest, reply: Reply) -> Step:
        """OffsetDelete, for topics that no member of the group reads: else GROUP_SUBSCRIBED_TO_TOPIC."""
        rules = self._groups.offset_rules(request.group_id)
        error = rules.validate_delete(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
        if error:
            return Step(answers=[Answer(reply, OffsetDeleteResponse(error_code=error))])
        records: list[Record] = []
        topics = []
        for topic in request.topics:
            subscribed = rules.is_subscribed(request.group_id, topic.name)
            outcome = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
            outcomes = []
            for partition in topic.partitions:
                index = partition.partition_index
                outcomes.append(OffsetDeleteResponse.Topic.Partition(partition_index=index, error_code=outcome))
                if not subscribed and self._has_offset(request.group_id, topic.name, index):
                    records.append(offset_tombstone(request.group_id, topic.name, index))
            topics.append(OffsetDeleteResponse.Topic(name=topic.name, partitions=outcomes))
        return Step(
            records,
            [Answer(reply, OffsetDeleteResponse(topics=topics))],
            lambda code: Step(answers=[Answer(reply, OffsetDeleteResponse(error_code=code))]),
        )

    # Deletion and expiration -------------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> list[Record]:
        """The tombstones for all offsets of a group, those in open transactions included."""
        return [offset_tombstone(group_id, topic, partition) for topic, partition in self._partitions_of(group_id)]

    def delete_topic(self, topic: str) -> Step:
        """Deletes every group's offsets of a deleted topic."""
        groups = sorted({*self._committed.group_ids(), *self._producers})
        return Step(
            [
                offset_tombstone(group_id, name, partition)
                for group_id in groups
                for name, partition in self._partitions_of(group_id)
                if name == topic
            ]
        )

    def expire(self, now: int) -> Step:
        """Deletes offsets whose retention is over, and groups that then have neither offsets nor members.

        What doesn't fit in a batch is left for the next call.
        """
        return Step(first_batch(self._expired(now)))

    def _expired(self, now: int) -> Iterator[Record]:
        retention = self._settings.offsets_retention_minutes
        for group_id in sorted(self._groups.group_ids()):
            rules = self._groups.offset_rules(group_id)
            expired = list(expired_offsets(group_id, self._committed, rules, self.has_pending, retention, now))
            yield from expired
            count = sum(len(self._committed.partitions(group_id, topic)) for topic in self._committed.topics(group_id))
            if count == len(expired) and group_id not in self._producers:
                yield from rules.delete_if_empty(group_id)

    # Replay -----------------------------------------------------------------------------------------------------

    def replay(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Applies a record; `producer` is the id and epoch of its batch if that belongs to a transaction."""
        group_id, topic, partition = key.group, key.topic, key.partition
        if value is None:
            self._committed.remove(group_id, topic, partition)
            for producer_id in tuple(self._producers.get(group_id, ())):
                pending = self._pending[producer_id]
                pending.remove(group_id, topic, partition)
                if not pending.topics(group_id):
                    self._remove_producer(group_id, producer_id)
            return
        self._replayed += 1
        committed = committed_offset(value, self._replayed)
        self._groups.ensure_simple_group(group_id)
        if producer is None:
            self._committed.put(group_id, topic, partition, committed)
        else:
            self._pending.setdefault(producer[0], OffsetTable()).put(group_id, topic, partition, committed)
            self._producers.setdefault(group_id, set()).add(producer[0])

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """Applies the marker that ends a producer's transaction: its offsets count from now on, or are dropped."""
        del producer_epoch  # a marker of a stale epoch never gets into the log
        pending = self._pending.pop(producer_id, None)
        if pending is None:
            return
        for group_id in pending.group_ids():
            self._remove_producer(group_id, producer_id)
            if not commit:
                continue
            for topic, partition, committed in pending.entries(group_id):
                before = self._committed.get(group_id, topic, partition)
                if before is None or before.order < committed.order:
                    self._committed.put(group_id, topic, partition, committed)

    # ------------------------------------------------------------------------------------------------------------

    def _remove_producer(self, group_id: str, producer_id: int) -> None:
        """A producer's transaction has no pending offsets of a group left."""
        producers = self._producers[group_id]
        producers.discard(producer_id)
        if not producers:
            del self._producers[group_id]

    def _check_metadata(self, metadata: str) -> ErrorCode:
        fits = len(metadata) <= self._settings.offset_metadata_max_bytes
        return ErrorCode.NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE

    def _has_offset(self, group_id: str, topic: str, partition: int) -> bool:
        return self.committed(group_id, topic, partition) is not None or self.has_pending(group_id, topic, partition)

    def _partitions_of(self, group_id: str) -> Iterable[tuple[str, int]]:
        """Topic and partition of all offsets of a group, committed or pending, sorted, without duplicates."""
        tables = [self._committed, *(self._pending[producer_id] for producer_id in self._producers.get(group_id, ()))]
        return sorted({(topic, partition) for table in tables for topic, partition, _ in table.entries(group_id)})

    def everything(self, group_id: str) -> list[OffsetFetchRequest.Group.Topic]:
        """All partitions that a group has an offset for, in the form of a request."""
        return [
            OffsetFetchRequest.Group.Topic(
                name=name, partition_indexes=tuple(index for index, _ in self._committed.partitions(group_id, name))
            )
            for name in self._committed.topics(group_id)
        ]

    def _fetched(self, group_id: str, topic: str, topic_id: UUID, partition: int, require_stable: bool) -> _Fetched:
        if require_stable and self.has_pending(group_id, topic, partition):
            return _Fetched(partition_index=partition, committed_offset=-1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        found = self._committed.get(group_id, topic, partition)
        if found is None or (NO_UUID not in (found.topic_id, topic_id) and found.topic_id != topic_id):
            return _Fetched(partition_index=partition, committed_offset=-1)
        return _Fetched(
            partition_index=partition,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            metadata=found.metadata,
        )


def _partitions(request: OffsetCommitRequest | TxnOffsetCommitRequest) -> Iterator[tuple[str, int]]:
    """Topic and number of each partition that an offset is committed for."""
    return ((topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions)
