"""AlterReplicaLogDirs: there is one directory."""

from __future__ import annotations

from pathlib import Path

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from tests.broker.handlers.conftest import Ask, Deny

Directory = AlterReplicaLogDirsRequest.Dir


def directories(ask: Ask, path: Path, topic: str, *indexes: int) -> dict[int, int]:
    request = AlterReplicaLogDirsRequest(
        dirs=[Directory(path=str(path), topics=[Directory.Topic(name=topic, partitions=indexes)])]
    )
    (result,) = ask(request).results
    return {partition.partition_index: partition.error_code for partition in result.partitions}


def test_moving_to_the_one_directory_is_done_already(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert directories(ask, broker.log_manager.directory, "there", 0, 1) == {
        0: ErrorCode.NONE,
        1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_there_is_no_other_directory(ask: Ask, broker: Broker) -> None:
    assert directories(ask, Path("/elsewhere"), "absent", 0) == {0: ErrorCode.LOG_DIR_NOT_FOUND}


def test_moving_to_a_directory_needs_to_be_allowed(ask: Ask, broker: Broker, deny: Deny) -> None:
    deny(Operation.ALTER)
    assert directories(ask, broker.log_manager.directory, "there", 0) == {0: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
