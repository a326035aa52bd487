"""DescribeLogDirs: the data directory, its volume, and the sizes of its logs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.topics import Partition
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

SERVED: Final = Served(DescribeLogDirsRequest, versions=(1, 5))

Result = DescribeLogDirsResponse.Result
Topic = Result.Topic


def handle(request: DescribeLogDirsRequest, context: Context) -> Slices[DescribeLogDirsResponse]:
    """Describes the one directory, without partitions that don't exist or are offline."""
    if not context.cluster_allowed(Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    directory = context.broker.log_manager.directory.absolute()
    try:
        volume = shutil.disk_usage(directory)
    except OSError:
        return DescribeLogDirsResponse(
            results=[Result(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(directory))]
        )
    logs: dict[str, list[Topic.Partition]] = {}
    for partition in _partitions(request, context):
        if partition.offline is None:
            described = Topic.Partition(partition_index=partition.index, partition_size=partition.log.size)
            logs.setdefault(partition.topic.name, []).append(described)
        yield
    topics = [Topic(name=name, partitions=partitions) for name, partitions in logs.items()]
    result = Result(log_dir=str(directory), topics=topics, total_bytes=volume.total, usable_bytes=volume.free)
    return DescribeLogDirsResponse(results=[result])


def _partitions(request: DescribeLogDirsRequest, context: Context) -> Iterable[Partition]:
    topics = context.broker.topics
    if request.topics is None:
        return topics.partitions()
    requested = dict.fromkeys((topic.topic, index) for topic in request.topics for index in topic.partitions)
    found = (topics.partition(name, index) for name, index in requested)
    return [partition for partition in found if partition is not None]
