"""Rules for the committed offsets of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.groups import ConsumerGroups
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.offset_rules import MEMBER_EPOCHS, validate_commit, validate_fetch
from kohort.coordinator.modern.partitions import Role
from kohort.coordinator.offsets import EACH_COMMIT
from kohort.coordinator.step import Record
from kohort.protocol.errors import ErrorCode
from kohort.protocol.topic_partition import TopicIdPartition


class ConsumerOffsetRules:
    def __init__(self, groups: ConsumerGroups, cluster: Cluster) -> None:
        self._groups = groups
        self._cluster = cluster

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
        """Returns NONE if offsets may be committed, or why not. A commit doesn't reset the session timeout."""
        del now

        def assignment_epoch(
            current: CurrentAssignment[TopicIdPartition, Role], topic: str, partition: int
        ) -> int | None:
            topic_id = self._cluster.topic_id(topic)
            return None if topic_id is None else current.assignment_epochs.get(TopicIdPartition(topic_id, partition))

        classic = self._is_classic(group_id, member_id)
        code = validate_commit(
            self._group(group_id).members,
            member_id,
            generation_or_epoch,
            instance_id,
            partitions,
            assignment_epoch,
            transactional=transactional,
            version=max(version, MEMBER_EPOCHS) if classic else version,
        )
        return _for_classic(code) if classic else code

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        code = validate_fetch(self._group(group_id).members, member_id, member_epoch)
        return _for_classic(code) if self._is_classic(group_id, member_id or "") else code

    def validate_delete(self, group_id: str) -> ErrorCode:
        """Returns NONE: the topics that a consumer group reads are known."""
        del group_id
        return ErrorCode.NONE

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        group = self._group(group_id)
        if topic in group.subscriptions.topics:
            return True
        resolved = (group.regexes.get(regex) for regex in group.subscriptions.regexes)
        return any(each is not None and topic in each.topics for each in resolved)

    def retention_base(self, group_id: str) -> int | None:
        """The retention of each offset begins with its own commit, but topics that members read keep theirs."""
        del group_id
        return EACH_COMMIT

    def delete_if_empty(self, group_id: str) -> list[Record]:
        """Returns the records that remove a group without members."""
        return [] if self._group(group_id).members else self._groups.delete(group_id)

    def _is_classic(self, group_id: str, member_id: str) -> bool:
        """Whether a member uses the classic protocol, whose generation is its member epoch."""
        member = self._group(group_id).members.get(member_id)
        return member is not None and member.metadata.classic is not None

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self._groups.get(group_id)
        assert group is not None
        return group


def _for_classic(code: ErrorCode) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.STALE_MEMBER_EPOCH else code
