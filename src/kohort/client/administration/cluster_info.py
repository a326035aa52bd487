"""The cluster itself, as an admin sees it: nodes, features, log directories, the metadata quorum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kohort.client.administration.finding import everywhere, living, metadata
from kohort.client.administration.routing import Failure, Line, Routes
from kohort.client.errors import kafka_error, raise_for
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kohort.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState

__all__ = [
    "ClusterDescription", "ClusterInfo", "Features", "LogDir", "Quorum", "QuorumReplica", "ReplicaSize", "VersionRange",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster.

    Attributes:
        cluster_id: its id; None if the brokers don't tell.
        controller: node id of the broker to send controllers' requests to; None if there is none.
        brokers: those that are up, by node id in order.
    """

    cluster_id: str | None
    controller: int | None
    brokers: tuple[Broker, ...]


class VersionRange(NamedTuple):
    """The least and the highest level of a feature."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Features:
    """Feature levels (KIP-584), such as `metadata.version`.

    Attributes:
        finalized: the level that the cluster runs, by name.
        supported: the levels that the broker asked could run.
        epoch: rises as finalized levels change; None if the broker knows none.
    """

    finalized: Mapping[str, int]
    supported: Mapping[str, VersionRange]
    epoch: int | None


class ReplicaSize(NamedTuple):
    """A replica on a disk: its size in bytes, how many offsets it is behind, whether it is being moved there."""

    size: int
    lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A directory that a broker keeps logs in.

    Attributes:
        path: where it is.
        error: why it can't be read; None if it can.
        total, usable: bytes of its volume; None where they aren't known.
        replicas: what is in it.
    """

    path: str
    error: KafkaError | None
    total: int | None
    usable: int | None
    replicas: Mapping[TopicPartition, ReplicaSize]


class QuorumReplica(NamedTuple):
    """A node that follows the metadata log: its end there, and when (ms since 1970) it last fetched and was caught up.

    What isn't known is -1.
    """

    node_id: int
    log_end_offset: int
    last_fetch: int
    last_caught_up: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum (KRaft): its leader, and who votes and who only follows."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class ClusterInfo:
    """What an admin asks about the cluster: `Admin.cluster`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def describe(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """The cluster's id, controller and brokers."""
        answer = await metadata(self._routes, (), self._routes.deadline(timeout_ms))
        brokers = sorted(Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers)
        controller = answer.controller_id if answer.controller_id >= 0 else None
        return ClusterDescription(answer.cluster_id, controller, tuple(brokers))

    async def features(self, *, timeout_ms: int | None = None) -> Features:
        """The features that the cluster runs, and those that a broker could."""
        request = ApiVersionsRequest(client_software_name="kohort", client_software_version="0")
        answer = await self._routes.any(request, ApiVersionsResponse, self._routes.deadline(timeout_ms))
        raise_for(answer.error_code)
        return Features(
            {each.name: each.max_version_level for each in answer.finalized_features},
            {each.name: VersionRange(each.min_version, each.max_version) for each in answer.supported_features},
            answer.finalized_features_epoch if answer.finalized_features_epoch >= 0 else None,
        )

    async def log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> dict[int, tuple[LogDir, ...]]:
        """The log directories of brokers, with the replicas in them; of all brokers by default."""
        deadline = self._routes.deadline(timeout_ms)

        async def ask(line: Line, nodes: Sequence[int]) -> Mapping[int, tuple[LogDir, ...] | Failure]:
            answer = await line.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
            raise_for(answer.error_code)
            return dict.fromkeys(nodes, tuple(map(_log_dir, answer.results)))

        if brokers is None:
            return await everywhere(self._routes, ask, deadline)
        return (await self._routes.spread(brokers, living, ask, deadline)).checked()

    async def quorum(self, *, timeout_ms: int | None = None) -> Quorum:
        """The quorum that keeps the cluster's metadata.

        Raises:
            UnsupportedError: the cluster has none, as Kohort.
        """
        kind = DescribeQuorumRequest.Topic
        request = DescribeQuorumRequest(
            topics=[kind(topic_name="__cluster_metadata", partitions=[kind.Partition(partition_index=0)])]
        )
        answer = await self._routes.any(request, DescribeQuorumResponse, self._routes.deadline(timeout_ms))
        raise_for(answer.error_code, answer.error_message)
        partition = answer.topics[0].partitions[0]
        raise_for(partition.error_code, partition.error_message)
        return Quorum(
            partition.leader_id,
            partition.leader_epoch,
            partition.high_watermark,
            tuple(map(_replica, partition.current_voters)),
            tuple(map(_replica, partition.observers)),
        )


def _log_dir(result: DescribeLogDirsResponse.Result) -> LogDir:
    return LogDir(
        result.log_dir,
        kafka_error(result.error_code) if result.error_code else None,
        result.total_bytes if result.total_bytes >= 0 else None,
        result.usable_bytes if result.usable_bytes >= 0 else None,
        {
            TopicPartition(topic.name, each.partition_index): ReplicaSize(
                each.partition_size, each.offset_lag, each.is_future_key
            )
            for topic in result.topics
            for each in topic.partitions
        },
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id, state.log_end_offset, state.last_fetch_timestamp, state.last_caught_up_timestamp
    )
