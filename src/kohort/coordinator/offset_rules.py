"""The rules for committed offsets of all groups of a shard."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kohort.coordinator.classic import ClassicGroups, ClassicOffsetRules
from kohort.coordinator.step import Record
from kohort.coordinator.streams.groups import StreamsGroups
from kohort.coordinator.streams.offset_rules import StreamsOffsetRules
from kohort.protocol.errors import ErrorCode

__all__ = ["OffsetRulesByType"]


class OffsetRulesByType:
    """Delegates to the rules of the group's protocol; unknown groups go to the classic ones."""

    def __init__(self, classic: ClassicGroups, streams: StreamsGroups) -> None:
        self._streams = streams
        self._classic_rules = ClassicOffsetRules(classic)
        self._streams_rules = StreamsOffsetRules(streams)

    def _rules(self, group_id: str) -> ClassicOffsetRules | StreamsOffsetRules:
        return self._classic_rules if self._streams.get(group_id) is None else self._streams_rules

    def group_ids(self) -> Collection[str]:
        return [*self._classic_rules.group_ids(), *self._streams_rules.group_ids()]

    def ensure_simple_group(self, group_id: str) -> None:
        if self._streams.get(group_id) is None:
            self._classic_rules.ensure_simple_group(group_id)

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
        return self._rules(group_id).validate_commit(
            group_id,
            member_id,
            generation_or_epoch,
            instance_id,
            partitions,
            transactional=transactional,
            version=version,
            now=now,
        )

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        return self._rules(group_id).validate_fetch(group_id, member_id, member_epoch)

    def validate_delete(self, group_id: str) -> ErrorCode:
        return self._rules(group_id).validate_delete(group_id)

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return self._rules(group_id).is_subscribed(group_id, topic)

    def retention_base(self, group_id: str) -> int | None:
        return self._rules(group_id).retention_base(group_id)

    def delete_if_empty(self, group_id: str) -> list[Record]:
        return self._rules(group_id).delete_if_empty(group_id)
