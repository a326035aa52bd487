"""What share groups need of the share coordinator: states of their partitions are initialized, read and deleted.

An administrator's request goes to the group coordinator, from there to the share coordinator for each partition, and
when all have answered back to the group coordinator, which notes what was done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from kohort.broker.group_coordinator import GroupCoordinator
from kohort.broker.reply import Reply, when_replied
from kohort.broker.share_coordinator import ShareCoordinator
from kohort.broker.topics import Topics
from kohort.coordinator.share import offset_requests
from kohort.coordinator.share.offset_requests import Alteration, Deletion
from kohort.coordinator.share.results import Initialization
from kohort.coordinator.share_state import NO_START_OFFSET, Outcome, Summary
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from kohort.protocol.messages.delete_groups import DeleteGroupsResponse
from kohort.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from kohort.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponse
from kohort.protocol.schema import NO_UUID

log = logging.getLogger("kohort.broker.share_group_states")

_Described = DescribeShareGroupOffsetsResponse.Group
_DescribedPartition = _Described.Topic.Partition
_Deleted = DeleteShareGroupOffsetsResponse.TopicResponse
_DeletedGroup = DeleteGroupsResponse.Result

T = TypeVar("T")

_Place = tuple[UUID, int]
_Places = Mapping[UUID, Collection[int]]

NO_LAG: Final = -1


class ShareGroupStates:
    """Leads requests of share groups through both coordinators.

    Attributes:
        on_reset: called with a group, and topic id and number of a partition, when an administrator has altered or
            deleted its state.
        on_deleted: called with a share group that was deleted.
    """

    def __init__(self, groups: GroupCoordinator, share_state: ShareCoordinator, topics: Topics) -> None:
        self._groups = groups
        self._share_state = share_state
        self._topics = topics
        self.on_reset: list[Callable[[str, _Place], None]] = []
        self.on_deleted: list[Callable[[str], None]] = []

    # Initialization

    def initialize(self, group_id: str, what: Initialization) -> None:
        """Initializes states that a member's heartbeat asks for; what fails is asked for again."""
        self._initialize(group_id, what, lambda outcomes: None)

    def _initialize(self, group_id: str, what: Initialization, then: Callable[[dict[_Place, Outcome]], None]) -> None:
        def ask(topic_id: UUID, partition: int) -> Outcome | Reply[Outcome]:
            offset = what.start_offsets[topic_id][partition]
            return self._share_state.initialize(group_id, topic_id, partition, what.state_epoch, offset)

        def receive(outcomes: dict[_Place, Outcome]) -> None:
            done = _by_topic(place for place, outcome in outcomes.items() if not outcome.error_code)
            failed = _by_topic(place for place, outcome in outcomes.items() if outcome.error_code)
            if failed:
                codes = {outcome.error_code.name for outcome in outcomes.values() if outcome.error_code}
                log.warning("states not initialized group=%s errors=%s", shown(group_id), ",".join(sorted(codes)))
            try:
                entry = self._groups.entry(group_id)
            except KafkaError as error:  # asked for again when the group is loaded
                log.warning("initialized states aren't noted group=%s error=%s", shown(group_id), error)
            else:
                if done:
                    self._groups.perform(entry, entry.shard.share.initialized(group_id, done))
                if failed:
                    self._groups.perform(entry, entry.shard.share.not_initialized(group_id, failed))
            then(outcomes)

        _ask_each(what.start_offsets, ask, receive)

    # Administrators

    def alter_offsets(
        self, group_id: str, offsets: Mapping[str, Mapping[int, int]]
    ) -> AlterShareGroupOffsetsResponse | Reply[AlterShareGroupOffsetsResponse]:
        """Sets the start offsets of a group without members, by topic and partition."""
        reply: Reply[AlterShareGroupOffsetsResponse] = Reply()

        def receive(alteration: Alteration) -> None:
            if alteration.initialization is None:
                reply(alteration.response)
            else:
                self._initialize(group_id, alteration.initialization, partial(finish, alteration.response))

        def finish(response: AlterShareGroupOffsetsResponse, outcomes: dict[_Place, Outcome]) -> None:
            for topic in response.responses:
                for part in topic.partitions:
                    outcome = outcomes.get((topic.topic_id, part.partition_index))
                    if outcome is not None:
                        part.error_code, part.error_message = outcome
            self._reset(group_id, (place for place, outcome in outcomes.items() if not outcome.error_code))
            reply(response)

        begun = self._groups.submit(
            group_id,
            lambda shard, now, answer: offset_requests.alter(shard.share, group_id, offsets, now, answer),
            lambda code: Alteration(AlterShareGroupOffsetsResponse(error_code=code, error_message=code.name)),
        )
        when_replied(begun, receive)
        return _now_or_later(reply)

    def delete_offsets(
        self, group_id: str, names: Collection[str]
    ) -> DeleteShareGroupOffsetsResponse | Reply[DeleteShareGroupOffsetsResponse]:
        """Deletes the states of topics of a group without members."""
        reply: Reply[DeleteShareGroupOffsetsResponse] = Reply()

        def receive(deletion: Deletion) -> None:
            if deletion.error_code:
                reply(
                    DeleteShareGroupOffsetsResponse(
                        error_code=deletion.error_code, error_message=deletion.error_message or deletion.error_code.name
                    )
                )
            else:
                self._delete(group_id, deletion.partitions, partial(finish, deletion))

        def finish(deletion: Deletion, outcomes: dict[_Place, Outcome]) -> None:
            errors = _errors(outcomes)
            topics = [
                *deletion.refused,
                *(
                    _Deleted(
                        topic_name=name,
                        topic_id=topic_id,
                        error_code=errors.get(topic_id, ErrorCode.NONE),
                        error_message=errors[topic_id].name if topic_id in errors else None,
                    )
                    for topic_id, name in deletion.names.items()
                ),
            ]
            done = [topic_id for topic_id in deletion.names if topic_id not in errors]
            self._forget(group_id, done, partial(answer, topics))

        def answer(topics: list[_Deleted], code: ErrorCode) -> None:
            if code:
                reply(DeleteShareGroupOffsetsResponse(error_code=code, error_message=code.name))
            else:
                reply(DeleteShareGroupOffsetsResponse(responses=topics))

        begun = self._groups.submit(
            group_id,
            lambda shard, now, answer: offset_requests.delete(shard.share, group_id, names, answer),
            Deletion,
        )
        when_replied(begun, receive)
        return _now_or_later(reply)

    def delete_group(self, group_id: str) -> list[_DeletedGroup] | Reply[list[_DeletedGroup]]:
        """Deletes a group of any kind; a share group after the states of all its partitions."""

        def refuse(code: ErrorCode) -> list[_DeletedGroup]:
            return [_DeletedGroup(group_id=group_id, error_code=code)]

        def delete() -> list[_DeletedGroup] | Reply[list[_DeletedGroup]]:
            return self._groups.submit(
                group_id, lambda shard, now, answer: shard.delete_groups([group_id], answer), refuse
            )

        try:
            is_share = self._groups.entry(group_id).shard.share.get(group_id) is not None
        except KafkaError as error:
            return refuse(error.code)
        if not is_share:
            return delete()
        reply: Reply[list[_DeletedGroup]] = Reply()

        def receive(deletion: Deletion) -> None:
            if deletion.error_code:
                reply(refuse(deletion.error_code))
            else:
                self._delete(group_id, deletion.partitions, finish)

        def finish(outcomes: dict[_Place, Outcome]) -> None:
            for code in _errors(outcomes).values():
                reply(refuse(code))
                return
            for callback in self.on_deleted:
                callback(group_id)
            when_replied(delete(), reply)

        begun = self._groups.submit(
            group_id,
            lambda shard, now, answer: offset_requests.delete_all(shard.share, group_id, answer),
            Deletion,
        )
        when_replied(begun, receive)
        return _now_or_later(reply)

    def describe_offsets(
        self, group_id: str, topics: Mapping[str, Iterable[int]] | None
    ) -> _Described | Reply[_Described]:
        """Start offsets and lags of a group.

        Args:
            topics: partitions by topic; None for all that are initialized. Without a state, the start offset is -1.
        """
        try:
            entry = self._groups.entry(group_id)
        except KafkaError as error:
            return _Described(group_id=group_id, error_code=error.code, error_message=error.code.name)
        group = entry.shard.share.get(group_id)
        names: dict[UUID, str] = {}
        places: dict[UUID, list[int]] = {}
        absent = []
        if topics is None:
            for topic_id, each in ({} if group is None else group.states.initialized).items():
                found = self._topics.by_id(topic_id)
                if found is not None:
                    names[topic_id], places[topic_id] = found.name, sorted(each.partitions)
        else:
            for name, partitions in topics.items():
                topic = self._topics.get(name)
                if topic is not None:
                    names[topic.id], places[topic.id] = name, list(dict.fromkeys(partitions))
                else:
                    parts = [_DescribedPartition(partition_index=each, start_offset=-1) for each in partitions]
                    absent.append(_Described.Topic(topic_name=name, topic_id=NO_UUID, partitions=parts))
        reply: Reply[_Described] = Reply()

        def receive(summaries: dict[_Place, Summary]) -> None:
            described = [
                _Described.Topic(
                    topic_name=names[topic_id],
                    topic_id=topic_id,
                    partitions=[self._described(topic_id, each, summaries[topic_id, each]) for each in partitions],
                )
                for topic_id, partitions in places.items()
            ]
            reply(_Described(group_id=group_id, topics=[*described, *absent]))

        _ask_each(places, partial(self._share_state.read_summary, group_id), receive)
        return _now_or_later(reply)

    def _described(self, topic_id: UUID, index: int, summary: Summary) -> _DescribedPartition:
        """A partition; what isn't known counts as absent, not as an error."""
        if summary.error_code:
            return _DescribedPartition(partition_index=index, start_offset=NO_START_OFFSET, lag=NO_LAG)
        lag = NO_LAG
        topic = self._topics.by_id(topic_id)
        partition = None if topic is None else topic.partition(index)
        if partition is not None and NO_START_OFFSET not in (summary.start_offset, summary.delivery_complete_count):
            if partition.offline is not None:
                code = ErrorCode.KAFKA_STORAGE_ERROR
                return _DescribedPartition(partition_index=index, error_code=code, error_message=code.name)
            lag = partition.log.high_watermark - summary.start_offset - summary.delivery_complete_count
        return _DescribedPartition(
            partition_index=index, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch, lag=lag
        )

    # Deletion

    def _delete(self, group_id: str, places: _Places, then: Callable[[dict[_Place, Outcome]], None]) -> None:
        def receive(outcomes: dict[_Place, Outcome]) -> None:
            self._reset(group_id, (place for place, outcome in outcomes.items() if not outcome.error_code))
            then(outcomes)

        _ask_each(places, partial(self._share_state.delete, group_id), receive)

    def _forget(self, group_id: str, topic_ids: Collection[UUID], then: Callable[[ErrorCode], None]) -> None:
        """The states of these topics are deleted: the group needn't know of them any longer."""
        if not topic_ids:
            then(ErrorCode.NONE)
            return
        done = self._groups.submit(
            group_id,
            lambda shard, now, answer: offset_requests.deleted(shard.share, group_id, topic_ids, answer),
            lambda code: code,
        )
        when_replied(done, then)

    def _reset(self, group_id: str, places: Iterable[_Place]) -> None:
        for place in places:
            for callback in self.on_reset:
                callback(group_id, place)


def _ask_each(
    places: Mapping[UUID, Iterable[int]],
    ask: Callable[[UUID, int], Any],
    then: Callable[[dict[_Place, Any]], None],
) -> None:
    """Asks the share coordinator about each partition, and passes all answers on when the last one is there."""
    answers: dict[_Place, Any] = {}
    waiting = {(topic_id, partition) for topic_id, partitions in places.items() for partition in partitions}
    waiting_for = len(waiting)
    if not waiting_for:
        then(answers)
        return

    def receive(place: _Place, answer: Any) -> None:
        answers[place] = answer
        if len(answers) == waiting_for:
            then(answers)

    for place in sorted(waiting):
        when_replied(ask(*place), partial(receive, place))


def _by_topic(places: Iterable[_Place]) -> dict[UUID, list[int]]:
    found: dict[UUID, list[int]] = {}
    for topic_id, partition in places:
        found.setdefault(topic_id, []).append(partition)
    return found


def _errors(outcomes: Mapping[_Place, Outcome]) -> dict[UUID, ErrorCode]:
    """Topics of which a partition failed."""
    return {topic_id: outcome.error_code for (topic_id, _), outcome in outcomes.items() if outcome.error_code}


def _now_or_later(reply: Reply[T]) -> T | Reply[T]:
    return reply.value if reply.done else reply  # type: ignore[return-value]
