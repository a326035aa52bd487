"""ElectLeaders: nothing to elect, since the one node leads everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

SERVED: Final = Served(ElectLeadersRequest, versions=(0, 2))

PREFERRED: Final = 0
UNCLEAN: Final = 1

TOP_LEVEL_ERROR: Final = 1
"""First version with an error of the whole request, which its partitions repeat."""

Topic = ElectLeadersResponse.ReplicaElectionResult
Result = Topic.PartitionResult


def handle(request: ElectLeadersRequest, context: Context) -> Slices[ElectLeadersResponse]:
    """Answers ELECTION_NOT_NEEDED for each named partition; lists none if the request is for all."""
    if not context.cluster_allowed(Operation.ALTER):
        return _refused(request, context, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.election_type not in (PREFERRED, UNCLEAN):
        return _refused(request, context, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.topic_partitions is None:
        # As in Kafka, partitions that need no election aren't listed.
        return ElectLeadersResponse(
            replica_election_results=[Topic(topic=topic.name) for topic in context.broker.topics]
        )
    elections = []
    for each in request.topic_partitions:
        results = yield from _results(each.topic, each.partitions, context)
        elections.append(Topic(topic=each.topic, partition_result=results))
        yield
    return ElectLeadersResponse(replica_election_results=elections)


def _results(name: str, indexes: Sequence[int], context: Context) -> Slices[list[Result]]:
    topic = context.broker.topics.get(name)
    results = []
    for index in indexes:
        code, detail = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        if topic is None:
            code, detail = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
        elif topic.partition(index) is None:
            code, detail = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
        results.append(Result(partition_id=index, error_code=code, error_message=detail))
        yield
    return results


def _refused(
    request: ElectLeadersRequest, context: Context, code: ErrorCode, detail: str | None = None
) -> ElectLeadersResponse:
    results = [
        Topic(
            topic=each.topic,
            partition_result=[
                Result(partition_id=index, error_code=code, error_message=detail) for index in each.partitions
            ],
        )
        for each in request.topic_partitions or []
    ]
    if context.version < TOP_LEVEL_ERROR:
        return ElectLeadersResponse(replica_election_results=results)
    return ElectLeadersResponse(error_code=code, replica_election_results=results)
