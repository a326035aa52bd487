"""AlterReplicaLogDirs: there is one log directory, and every log is in it."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

SERVED: Final = Served(AlterReplicaLogDirsRequest, versions=(1, 2))

Result = AlterReplicaLogDirsResponse.Result


def handle(request: AlterReplicaLogDirsRequest, context: Context) -> Slices[AlterReplicaLogDirsResponse]:
    """Accepts the one directory; LOG_DIR_NOT_FOUND for any other."""
    allowed = context.cluster_allowed(Operation.ALTER)
    outcomes: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            yield
            of_topic = outcomes.setdefault(topic.name, {})
            for index in topic.partitions:
                of_topic[index] = (
                    _outcome(directory.path, topic.name, index, context)
                    if allowed
                    else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                )
                yield
    results = yield from in_slices(_result, outcomes.items())
    return AlterReplicaLogDirsResponse(results=results)


def _result(outcome: tuple[str, dict[int, ErrorCode]]) -> Result:
    name, codes = outcome
    partitions = [Result.Partition(partition_index=index, error_code=code) for index, code in codes.items()]
    return Result(topic_name=name, partitions=partitions)


def _outcome(path: str, topic: str, index: int, context: Context) -> ErrorCode:
    if path != str(context.broker.log_manager.directory.absolute()):
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        context.broker.topics.online_partition(topic, index)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
