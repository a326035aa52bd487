"""Topics that members of groups subscribe to, and that aren't there: such a group looks healthy, and reads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kohort.client.administration.awaited_members import called
from kohort.client.administration.group_types import GroupDescription, GroupType
from kohort.client.errors import PartialFailureError
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.similar_names import similar

if TYPE_CHECKING:
    from kohort.client.admin import Admin


async def missing_topics(admin: Admin, groups: Iterable[GroupDescription]) -> dict[str, list[str]]:
    """The topics that members of these groups name and that aren't there, each with the names of similar ones.

    Topics that the user may not see aren't said to be missing. Streams groups have a state of their own for that.
    """
    wanted = sorted({topic for group in groups for topic in _subscribed(group)})
    missing = await _missing(admin, wanted) if wanted else []
    if not missing:
        return {}
    existing = await admin.topics.list()
    return {topic: similar(topic, existing) for topic in missing}


def missing_sentences(group: GroupDescription, missing: Mapping[str, Sequence[str]]) -> list[str]:
    """Who of a group subscribes to which missing topic, and which one may have been meant."""
    said = []
    for topic in sorted(_subscribed(group) & missing.keys()):
        members = called(group, (member for member in group.members if topic in member.topics))
        whoever = f"{members[0]} and {len(members) - 1:,} more" if len(members) > 2 else " and ".join(members)
        verb = "subscribes" if len(members) == 1 else "subscribe"
        near = " or ".join(map(repr, missing[topic]))
        hint = f"; did you mean {near}?" if near else ""
        said.append(f"{whoever} {verb} to {topic!r}, which isn't there{hint}")
    return said


def _subscribed(group: GroupDescription) -> set[str]:
    if group.type is GroupType.STREAMS:
        return set()
    return {topic for member in group.members for topic in member.topics}


async def _missing(admin: Admin, topics: list[str]) -> list[str]:
    try:
        await admin.topics.describe(*topics)
    except PartialFailureError as error:
        return [topic for topic in topics if _is_unknown(error.errors.get(topic))]
    except KafkaError as error:
        return topics if _is_unknown(error) else []
    return []


def _is_unknown(error: object) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
