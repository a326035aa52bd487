"""Administrators change the offsets of share groups without members: altered, deleted, or deleted with the group.

Each is begun here, goes on at the share coordinator, and is finished here when the states there are written. What was
begun and isn't finished, as after a crash, is done again by the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from kohort.coordinator.share.draft import Draft
from kohort.coordinator.share.groups import ShareGroups
from kohort.coordinator.share.results import Initialization
from kohort.coordinator.share.state_partitions import StatePartitions, TopicState
from kohort.coordinator.step import Answer, Reply, Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from kohort.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse

NO_START_OFFSET = -1

_Altered = AlterShareGroupOffsetsResponse.TopicResponse
_Deleted = DeleteShareGroupOffsetsResponse.TopicResponse


@dataclass(frozen=True, slots=True)
class Alteration:
    """The beginning of AlterShareGroupOffsets.

    Attributes:
        response: the response, if the share coordinator initializes all of `initialization`.
        initialization: None if nothing is left to do.
    """

    response: AlterShareGroupOffsetsResponse
    initialization: Initialization | None = None


@dataclass(frozen=True, slots=True)
class Deletion:
    """The beginning of deleting states.

    Attributes:
        error_code: NONE, or why nothing is deleted; `error_message` is None without an error.
        refused: topics that have nothing to delete.
        names, partitions: the topics whose states are to be deleted.
    """

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    refused: tuple[_Deleted, ...] = ()
    names: Mapping[UUID, str] = field(default_factory=dict)
    partitions: Mapping[UUID, Collection[int]] = field(default_factory=dict)


def alter(groups: ShareGroups, group_id: str, offsets: Mapping[str, Mapping[int, int]], now: int, reply: Reply) -> Step:
    """Begins to set the start offsets of a group, which is made if there is none; answers with an `Alteration`.

    Args:
        offsets: start offsets by topic and partition.
    """

    def refuse(code: ErrorCode, message: str | None = None) -> Alteration:
        return Alteration(AlterShareGroupOffsetsResponse(error_code=code, error_message=message or code.name))

    if groups.of_other_kind(group_id):
        return _answer(reply, refuse(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group."))
    draft = groups.draft(group_id)
    if draft.group.members:
        return _answer(reply, refuse(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} has members."))
    responses = []
    begun: dict[UUID, TopicState] = {}
    start_offsets: dict[UUID, dict[int, int]] = {}
    cluster = groups.environment.cluster
    for name, wanted in offsets.items():
        topic_id, partitions = cluster.topic_id(name), cluster.partitions(name) or 0
        outcomes = {index: _offset_error(index, offset, partitions) for index, offset in wanted.items()}
        response = _Altered(
            topic_name=name,
            partitions=[
                _Altered.Partition(partition_index=index, error_code=code, error_message=code.name if code else None)
                for index, code in outcomes.items()
            ],
        )
        responses.append(response)
        if topic_id is None:
            continue
        response.topic_id = topic_id
        valid = {index: wanted[index] for index, code in outcomes.items() if not code}
        if valid:
            begun[topic_id] = TopicState(name, frozenset(valid))
            start_offsets[topic_id] = valid
    answer = Alteration(AlterShareGroupOffsetsResponse(responses=responses))
    if not begun:
        return _answer(reply, answer)
    draft.put_states(draft.states.begin(begun))
    draft.note_asked(begun, now)
    return _step(groups, draft, reply, Alteration(answer.response, Initialization(draft.epoch, start_offsets)), refuse)


def delete(groups: ShareGroups, group_id: str, names: Collection[str], reply: Reply) -> Step:
    """Begins to delete the offsets of topics; answers with a `Deletion`."""
    if (refused := _check_empty(groups, group_id)) is not None:
        return _answer(reply, refused)
    draft, cluster = groups.draft(group_id), groups.environment.cluster
    without: list[_Deleted] = []
    found: dict[UUID, str] = {}
    partitions: dict[UUID, Collection[int]] = {}
    for name in dict.fromkeys(names):
        topic_id, count = cluster.topic_id(name), cluster.partitions(name) or 0
        if topic_id is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            without.append(_Deleted(topic_name=name, error_code=code, error_message=f"There is no topic {name}."))
        elif topic_id in draft.states.initialized:
            found[topic_id], partitions[topic_id] = name, sorted(draft.states.initialized[topic_id].partitions)
        elif topic_id in draft.states.deleting:
            found[topic_id], partitions[topic_id] = name, range(count)
        else:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            without.append(
                _Deleted(topic_name=name, error_code=code, error_message="There is no offset information to delete.")
            )
    answer = Deletion(refused=tuple(without), names=found, partitions=partitions)
    if not found:
        return _answer(reply, answer)
    draft.put_states(draft.states.delete(found))
    return _step(groups, draft, reply, answer, Deletion)


def delete_all(groups: ShareGroups, group_id: str, reply: Reply) -> Step:
    """Begins to delete all states of a group that is deleted; answers with a `Deletion`."""
    if (refused := _check_empty(groups, group_id)) is not None:
        return _answer(reply, refused)
    draft, cluster = groups.draft(group_id), groups.environment.cluster
    names, partitions = {}, {}
    for topic_id, name in draft.states.deleting.items():
        if (now := cluster.name_of(topic_id)) is not None:  # else its states are gone with it
            names[topic_id], partitions[topic_id] = name, set(range(cluster.partitions(now) or 0))
    for topic_id, each in draft.states.known().items():
        names[topic_id] = each.name
        partitions[topic_id] = partitions.get(topic_id, set()) | each.partitions
    answer = Deletion(names=names, partitions=partitions)
    if draft.states == StatePartitions(deleting=names):
        return _answer(reply, answer)
    draft.put_states(StatePartitions(deleting=names))
    return _step(groups, draft, reply, answer, Deletion)


def deleted(groups: ShareGroups, group_id: str, topic_ids: Collection[UUID], reply: Reply) -> Step:
    """The share coordinator has deleted the states of these topics; answers with an error code."""
    if groups.get(group_id) is None:
        return _answer(reply, ErrorCode.NONE)
    draft = groups.draft(group_id)
    draft.put_states(draft.states.deleted(topic_ids))
    return _step(groups, draft, reply, ErrorCode.NONE, lambda code: code)


def _check_empty(groups: ShareGroups, group_id: str) -> Deletion | None:
    group = groups.get(group_id)
    if group is None:
        return Deletion(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no share group {group_id}.")
    return Deletion(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} has members.") if group.members else None


def _offset_error(index: int, offset: int, partitions: int) -> ErrorCode:
    if not 0 <= index < partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if offset >= NO_START_OFFSET else ErrorCode.INVALID_REQUEST


def _answer(reply: Reply, answer: object) -> Step:
    return Step(answers=[Answer(reply, answer)])


def _step(
    groups: ShareGroups, draft: Draft, reply: Reply, answer: object, refuse: Callable[[ErrorCode], object]
) -> Step:
    return Step(
        draft.records,
        [Answer(reply, answer)],
        lambda code: _answer(reply, refuse(code)),
        apply=partial(groups.apply, draft),
    )
