"""CreatePartitions: API 37."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, string


class CreatePartitionsRequest(Request, key=37, versions="0-3", flexible=2):
    """Raises the number of partitions of topics.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    - v3: same layout; may answer THROTTLING_QUOTA_EXCEEDED (KIP-599)
    """

    class Topic(Struct):
        class Assignment(Struct):
            broker_ids: tuple[int, ...] = array(
                int32, "Brokers to hold the partition's replicas, preferred leader first."
            )

        name: str = string("Name of the topic to enlarge.")
        count: int = int32("Partitions the topic is to have in all, above the present number.")
        assignments: list[Assignment] | None = array(
            Assignment,
            "Replicas of each added partition, in order; null = the controller chooses.",
            nullable=True,
            default=[],
        )

    topics: list[Topic] = array(Topic, "Topics to enlarge.")
    timeout_ms: int = int32("How long the broker may wait for the controller to add them, in ms.")
    validate_only: bool = boolean("True = only check the request, add nothing.")


class CreatePartitionsResponse(Response, key=37, versions="0-3", flexible=2):
    """Says for each topic whether it got its new partitions.

    - v2: flexible
    """

    class Result(Struct):
        name: str = string("Name of the topic.")
        error_code: int = int16("0, or why this topic was not enlarged.")
        error_message: str | None = string(
            "Why this topic was not enlarged, for people; null on success.", nullable=True
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    results: list[Result] = array(Result, "Outcomes, one per topic of the request.")
