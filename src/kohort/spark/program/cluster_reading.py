"""Reads of a group what may not be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kohort.client.errors import PartialFailureError
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.group_types import GroupDescription

_NO_GROUP: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID)


async def described_group(admin: Admin, name: str) -> GroupDescription | None:
    """A group; None if there is none of that name."""
    try:
        return (await admin.groups.describe(name))[name]
    except (KafkaError, PartialFailureError) as error:
        _unless_missing(error)
        return None


async def committed_offsets(admin: Admin, name: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
    """What a group has committed; nothing if there is none of that name."""
    try:
        return await admin.group_offsets.committed(name)
    except (KafkaError, PartialFailureError) as error:
        _unless_missing(error)
        return {}


def _unless_missing(error: KafkaError | PartialFailureError) -> None:
    errors: Iterable[Exception] = error.errors.values() if isinstance(error, PartialFailureError) else (error,)
    if not all(isinstance(each, KafkaError) and each.code in _NO_GROUP for each in errors):
        raise error
