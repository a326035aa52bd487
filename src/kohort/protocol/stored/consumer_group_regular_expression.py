"""Records of type 16 in `__consumer_offsets`: consumer group regular expression."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import array, int64, string


class ConsumerGroupRegularExpressionKey(Data, key=16, versions="0"):
    """Key: one pattern that members of a consumer group subscribe with."""

    group_id: str = string("Id of the consumer group.")
    regular_expression: str = string("The pattern (RE2), exactly as the members sent it.")


class ConsumerGroupRegularExpressionValue(Data, key=16, versions="0", flexible=0):
    """Value: which topics a subscription pattern matched, and when it was looked up."""

    topics: tuple[str, ...] = array(string, "Names of the topics that matched.")
    version: int = int64("Version of the metadata image that the pattern was matched against.")
    timestamp: int = int64("When the pattern was matched, in ms since 1970.")
