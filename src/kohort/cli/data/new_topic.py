"""A topic that isn't there before `kohort produce` writes to it: brokers make it, also of a name that was mistyped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kohort.client.errors import ClientError, PartialFailureError
from kohort.plurals import several
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.similar_names import did_you_mean

if TYPE_CHECKING:
    from kohort.client.admin import Admin


async def others_if_missing(administering: Callable[[], Admin], topic: str) -> list[str] | None:
    """The names of all topics, none if they can't be listed, if that one isn't there; else None, or if nobody says."""
    try:
        async with administering() as admin:
            try:
                await admin.topics.describe(topic)
            except (KafkaError, PartialFailureError) as error:
                why = error if isinstance(error, KafkaError) else error.errors.get(topic)
                if isinstance(why, KafkaError) and why.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    with suppress(KafkaError, ClientError):
                        return [*await admin.topics.list()]
                    return []
    except (KafkaError, ClientError):
        pass  # the producer will say what is wrong
    return None


async def said_of_new(administering: Callable[[], Admin], topic: str, others: list[str]) -> str:
    """A sentence about a topic that the first record has made, with what may have been meant by its name."""
    partitions = ""
    try:
        async with administering() as admin:
            info = (await admin.topics.describe(topic))[topic]
            partitions = f", with {several(len(info.partitions), 'partition')}"
    except (KafkaError, ClientError):
        pass  # it is there: it has taken a record
    meant = did_you_mean(topic, others)
    return f"there was no topic {topic!r}: it has been made{partitions}" + (f"; {meant}" if meant else "")
