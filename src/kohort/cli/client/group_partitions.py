"""The partitions that a group reads, also those that no member has now and nothing was committed for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.client.administration.group_types import GroupDescription, GroupType
from kohort.client.errors import PartialFailureError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.types import TopicInfo


async def partitions_read(admin: Admin, group: GroupDescription) -> set[TopicPartition]:
    """All partitions of the topics that a group is subscribed to, and those that its members have.

    So a group's lag doesn't depend on who has joined already. While no member tells its topics, those count that the
    group has committed offsets of, unless somebody assigned partitions by hand. Share groups have no more than their
    members: the broker knows where they start.
    """
    known = {*group.owners()}
    if group.type is GroupType.SHARE:
        return known
    topics = {topic for member in group.members for topic in member.topics}
    if group.topology is not None:
        topics.update(group.topology.readers)
    if not topics and group.protocol_type:
        topics = {at.topic for at in await admin.group_offsets.committed(group.group_id)}
    existing = await _existing(admin, topics)
    return known | {TopicPartition(name, number) for name, info in existing.items() for number in info.partitions}


async def _existing(admin: Admin, topics: set[str]) -> dict[str, TopicInfo]:
    """Those of these topics that there are, and that the user may see."""
    try:
        return await admin.topics.describe(*topics) if topics else {}
    except PartialFailureError as error:
        return error.done
    except KafkaError:
        return {}
