"""Rules for the committed offsets of streams groups."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.offset_rules import validate_commit, validate_fetch
from kohort.coordinator.offsets import EACH_COMMIT
from kohort.coordinator.step import Record
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.groups import StreamsGroups
from kohort.protocol.errors import ErrorCode
from kohort.streams.tasks import Role, TaskId


class StreamsOffsetRules:
    def __init__(self, groups: StreamsGroups) -> None:
        self._groups = groups

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
        group = self._group(group_id)

        def assignment_epoch(current: CurrentAssignment[TaskId, Role], topic: str, partition: int) -> int | None:
            """A task reads the partitions of its number, of all its sources; a topic is of one subtopology."""
            subtopology = group.readers.get(topic)
            return None if subtopology is None else current.assignment_epochs.get(TaskId(subtopology, partition))

        return validate_commit(
            group.members,
            member_id,
            generation_or_epoch,
            instance_id,
            partitions,
            assignment_epoch,
            transactional=transactional,
            version=version,
        )

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        return validate_fetch(self._group(group_id).members, member_id, member_epoch)

    def validate_delete(self, group_id: str) -> ErrorCode:
        """Returns NONE: the topics that a streams group reads are known."""
        del group_id
        return ErrorCode.NONE

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        group = self._group(group_id)
        return bool(group.members) and topic in group.readers

    def retention_base(self, group_id: str) -> int | None:
        """When the group became empty. While it has members, the topics that it reads keep their offsets anyway."""
        since = self._group(group_id).soft.empty_since
        return EACH_COMMIT if since is None else since

    def delete_if_empty(self, group_id: str) -> list[Record]:
        """Returns the records that remove a group without members."""
        return [] if self._group(group_id).members else self._groups.delete(group_id)

    def _group(self, group_id: str) -> StreamsGroup:
        group = self._groups.get(group_id)
        assert group is not None
        return group
