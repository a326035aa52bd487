"""The cluster: nodes, features, log directories, the metadata quorum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kohort.client.administration.node_lookup import ask_all_brokers, controller, live_brokers, metadata
from kohort.client.administration.request_router import Failure, Node, RequestRouter, outcomes_of
from kohort.client.errors import kafka_error, raise_for
from kohort.client.types import Broker, TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kohort.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState
from kohort.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster.

    Attributes:
        cluster_id: its id; None if unknown.
        controller: node id of the broker for the controller's requests; None if there is none.
        brokers: the live ones, sorted by node id.
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
        supported: the levels that the asked broker supports.
        epoch: rises as finalized levels change; None if the broker knows none.
    """

    finalized: Mapping[str, int]
    supported: Mapping[str, VersionRange]
    epoch: int | None


class ReplicaSize(NamedTuple):
    """A replica on a disk: its size in bytes, its lag in offsets, whether it is being moved there."""

    size: int
    lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A directory that a broker keeps logs in.

    Attributes:
        path: its path.
        error: why it can't be read; None if it can.
        total, usable: bytes of its volume; None if unknown.
        replicas: those in it.
    """

    path: str
    error: KafkaError | None
    total: int | None
    usable: int | None
    replicas: Mapping[TopicPartition, ReplicaSize]


class QuorumReplica(NamedTuple):
    """A replica of the metadata log: its log end offset, and when (ms since 1970) it last fetched and was caught up.

    Unknown values are -1.
    """

    node_id: int
    log_end_offset: int
    last_fetch: int
    last_caught_up: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum (KRaft): its leader, voters and observers."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class ClusterInfo:
    """The cluster: `Admin.cluster`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Returns the cluster's id, controller and brokers."""
        answer = await metadata(self._router, (), self._router.deadline(timeout_ms))
        brokers = sorted(Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers)
        controller = answer.controller_id if answer.controller_id >= 0 else None
        return ClusterDescription(answer.cluster_id, controller, tuple(brokers))

    async def features(self, *, timeout_ms: int | None = None) -> Features:
        """Returns the finalized features, and those that a broker supports."""
        request = ApiVersionsRequest(client_software_name="kohort", client_software_version="0")
        answer = await self._router.any(request, ApiVersionsResponse, self._router.deadline(timeout_ms))
        raise_for(answer.error_code)
        return Features(
            {each.name: each.max_version_level for each in answer.finalized_features},
            {each.name: VersionRange(each.min_version, each.max_version) for each in answer.supported_features},
            answer.finalized_features_epoch if answer.finalized_features_epoch >= 0 else None,
        )

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        downgrade: bool = False,
        unsafe: bool = False,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Changes finalized levels, of all these features or none.

        Args:
            levels: the new ones, by name; 0 switches a feature off.
            downgrade: whether levels go down instead of up.
            unsafe: whether a downgrade may lose data.
            validate_only: whether to change nothing.

        Raises:
            KafkaError: a level can't be changed so: FEATURE_UPDATE_FAILED, INVALID_UPDATE_VERSION.
            PartialFailureError: an older broker has changed some of several.
        """
        kind = _UNSAFE_DOWNGRADE if unsafe else _SAFE_DOWNGRADE if downgrade else _UPGRADE

        async def ask(node: Node, keys: Sequence[str]) -> Mapping[str, None]:
            request = UpdateFeaturesRequest(
                feature_updates=[
                    UpdateFeaturesRequest.FeatureUpdate(feature=name, max_version_level=level, upgrade_type=kind)
                    for name, level in levels.items()
                ],
                validate_only=validate_only,
                timeout_ms=node.timeout_ms,
            )
            answer = await node.ask(request, UpdateFeaturesResponse)
            raise_for(answer.error_code, answer.error_message)
            outcomes_of((each.feature, each.error_code, each.error_message) for each in answer.results).checked()
            return dict.fromkeys(keys)

        (await self._router.ask_nodes(["features"], controller, ask, self._router.deadline(timeout_ms))).checked()

    async def log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> dict[int, tuple[LogDir, ...]]:
        """Returns the log directories of brokers, with their replicas; of all brokers by default."""
        deadline = self._router.deadline(timeout_ms)

        async def ask(node: Node, nodes: Sequence[int]) -> Mapping[int, tuple[LogDir, ...] | Failure]:
            answer = await node.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
            raise_for(answer.error_code)
            return dict.fromkeys(nodes, tuple(map(_log_dir, answer.results)))

        if brokers is None:
            return await ask_all_brokers(self._router, ask, deadline)
        return (await self._router.ask_nodes(brokers, live_brokers, ask, deadline)).checked()

    async def quorum(self, *, timeout_ms: int | None = None) -> Quorum:
        """Returns the metadata quorum.

        Raises:
            UnsupportedError: the cluster has none, or is too old to tell of it.
        """
        kind = DescribeQuorumRequest.Topic
        request = DescribeQuorumRequest(
            topics=[kind(topic_name="__cluster_metadata", partitions=[kind.Partition(partition_index=0)])]
        )
        answer = await self._router.any(request, DescribeQuorumResponse, self._router.deadline(timeout_ms))
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
