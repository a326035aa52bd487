"""Groups as their offsets see them, a log that a shard restarts from, and short ways to say requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kohort.coordinator.offsets import EACH_COMMIT, Offsets, value_version
from kohort.coordinator.step import Client, Record, Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Data
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key, record_type
from kohort.protocol.stored.group_metadata import GroupMetadataKey
from kohort.protocol.stored.offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

DAY = 24 * 60 * 60 * 1000


@dataclass
class Settings:
    offset_metadata_max_bytes: int = 10
    offsets_retention_minutes: int = 24 * 60


@dataclass
class FakeGroups:
    """Simple groups unless a test says otherwise; `error` is what every validation says."""

    known: set[str] = field(default_factory=set)
    subscribed: set[tuple[str, str]] = field(default_factory=set)
    base: dict[str, int | None] = field(default_factory=dict)
    with_members: set[str] = field(default_factory=set)
    error: ErrorCode = ErrorCode.NONE
    asked: list[dict[str, Any]] = field(default_factory=list)

    def group_ids(self) -> set[str]:
        return self.known

    def ensure_simple_group(self, group_id: str) -> None:
        self.known.add(group_id)

    def offset_rules(self, group_id: str) -> FakeGroups:
        return self

    def validate_commit(
        self,
        group_id: str,
        member_id: str,
        generation_or_epoch: int,
        instance_id: str | None,
        partitions: Iterable[tuple[str, int]],
        *,
        transactional: bool,
        version: int,
        now: int,
    ) -> ErrorCode:
        self.asked.append(
            {
                "group": group_id,
                "member": member_id,
                "generation": generation_or_epoch,
                "instance": instance_id,
                "partitions": list(partitions),
                "transactional": transactional,
                "version": version,
                "now": now,
            }
        )
        return self.error

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        return self.error or (ErrorCode.NONE if group_id in self.known else ErrorCode.GROUP_ID_NOT_FOUND)

    def validate_delete(self, group_id: str) -> ErrorCode:
        return self.error or (ErrorCode.NONE if group_id in self.known else ErrorCode.GROUP_ID_NOT_FOUND)

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return (group_id, topic) in self.subscribed

    def retention_base(self, group_id: str) -> int | None:
        return self.base.get(group_id, EACH_COMMIT)

    def delete_if_empty(self, group_id: str) -> list[Record]:
        return [] if group_id in self.with_members else [Record(GroupMetadataKey(group=group_id), None)]


class Log:
    """What drives the offsets: appends as bytes, replays, answers; `restart` builds them anew from the bytes."""

    def __init__(self, settings: Settings | None = None, groups: FakeGroups | None = None) -> None:
        self.settings = settings or Settings()
        self.groups = groups or FakeGroups()
        self.entries: list[tuple[Any, ...]] = []
        self.offsets = Offsets(self.settings, self.groups)
        self.fails: ErrorCode | None = None

    def run(self, step: Step) -> list[Record]:
        """Carry a step out; what it appended."""
        if step.records and self.fails is not None:
            assert step.failed is not None
            after = step.failed(self.fails)
            assert not after.records
            for answer in after.answers:
                answer.reply(answer.response)
            return []
        for record in step.records:
            entry = _bytes_of(record), step.producer
            self.entries.append(entry)
            self._replay(self.offsets, self.groups, *entry)
        for answer in step.answers:
            answer.reply(answer.response)
        return step.records

    def marker(self, producer_id: int, commit: bool) -> None:
        self.entries.append((None, (producer_id, commit)))
        self.offsets.replay_marker(producer_id, 0, commit)

    def restarted(self) -> Offsets:
        """The offsets that a restart would make of the log, with groups of their own."""
        groups = FakeGroups()
        offsets = Offsets(self.settings, groups)
        for raw, detail in self.entries:
            if raw is None:
                offsets.replay_marker(detail[0], 0, detail[1])
            else:
                self._replay(offsets, groups, raw, detail)
        return offsets

    @staticmethod
    def _replay(
        offsets: Offsets, groups: FakeGroups, raw: tuple[bytes, bytes | None], producer: tuple[int, int] | None
    ) -> None:
        kind, key = decode_key(OFFSETS_TOPIC, raw[0])
        value: Data | None = None if raw[1] is None else kind.decode_value(raw[1])[0]
        if isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
            offsets.replay(key, value, producer)
        else:
            assert isinstance(key, GroupMetadataKey) and value is None
            groups.known.discard(key.group)

    # Requests; each gives the error code, or what was found.

    def commit(
        self,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        now: int = 0,
        note: str | None = "",
        version: int = 9,
        **fields: Any,
    ) -> int:
        responses: list[OffsetCommitResponse] = []
        topic_id = fields.pop("topic_id", None)
        wanted = OffsetCommitRequest.Topic(
            name=topic,
            partitions=[
                OffsetCommitRequest.Topic.Partition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=fields.pop("leader_epoch", -1),
                    committed_metadata=note,
                )
            ],
        )
        if topic_id is not None:
            wanted.topic_id = topic_id
        request = OffsetCommitRequest(group_id=group, topics=[wanted], **fields)
        self.run(self.offsets.commit(request, Client(version=version), now, responses.append))
        (response,) = responses
        assert [t.name for t in response.topics] == [topic]
        return response.topics[0].partitions[0].error_code

    def txn_commit(
        self, group: str, topic: str, partition: int, offset: int, producer: int, now: int = 0, **fields: Any
    ) -> int:
        responses: list[TxnOffsetCommitResponse] = []
        request = TxnOffsetCommitRequest(
            group_id=group,
            transactional_id="t",
            producer_id=producer,
            producer_epoch=3,
            topics=[
                TxnOffsetCommitRequest.Topic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequest.Topic.Partition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=fields.pop("note", ""),
                        )
                    ],
                )
            ],
            **fields,
        )
        self.run(self.offsets.txn_commit(request, Client(version=3), now, responses.append))
        (response,) = responses
        return response.topics[0].partitions[0].error_code

    def delete(self, group: str, topic: str, *partitions: int) -> list[int]:
        """The error of the whole request, then those of the partitions."""
        responses: list[OffsetDeleteResponse] = []
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequest.Topic(
                    name=topic,
                    partitions=[OffsetDeleteRequest.Topic.Partition(partition_index=index) for index in partitions],
                )
            ],
        )
        self.run(self.offsets.delete(request, responses.append))
        (response,) = responses
        return [response.error_code, *(p.error_code for t in response.topics for p in t.partitions)]

    def fetch(self, group: str, topic: str, partition: int, *, stable: bool = False) -> tuple[int, int]:
        """Error and offset of one partition."""
        wanted = OffsetFetchRequest.Group(
            group_id=group, topics=[OffsetFetchRequest.Group.Topic(name=topic, partition_indexes=(partition,))]
        )
        (found,) = self.offsets.fetch(wanted, require_stable=stable).topics[0].partitions
        return found.error_code, found.committed_offset


def fetch_all(offsets: Offsets, group: str, *, stable: bool = False) -> dict[tuple[str, int], tuple[int, int]]:
    """Error and offset of every partition that a group has an offset for."""
    response = offsets.fetch(OffsetFetchRequest.Group(group_id=group, topics=None), require_stable=stable)
    return {
        (topic.name, found.partition_index): (found.error_code, found.committed_offset)
        for topic in response.topics
        for found in topic.partitions
    }


def _bytes_of(record: Record) -> tuple[bytes, bytes | None]:
    number = 2 if isinstance(record.key, GroupMetadataKey) else 1
    kind = record_type(OFFSETS_TOPIC, number)
    if record.value is None:
        return kind.encode_key(record.key), None
    assert isinstance(record.value, OffsetCommitValue)
    return kind.encode_key(record.key), kind.encode_value(record.value, value_version(record.value))
