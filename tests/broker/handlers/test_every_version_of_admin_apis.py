"""Admin APIs in each version: the request decodes, is handled, and the response encodes in the version."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.broker.broker import Broker
from kohort.protocol.message import Request
from kohort.protocol.messages import api
from kohort.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from kohort.protocol.messages.alter_configs import AlterConfigsRequest
from kohort.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kohort.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kohort.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kohort.protocol.messages.create_acls import CreateAclsRequest
from kohort.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest
from kohort.protocol.messages.create_topics import CreateTopicsRequest
from kohort.protocol.messages.delete_acls import DeleteAclsRequest
from kohort.protocol.messages.delete_records import DeleteRecordsRequest
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.messages.describe_acls import DescribeAclsRequest
from kohort.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from kohort.protocol.messages.describe_cluster import DescribeClusterRequest
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest
from kohort.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kohort.protocol.messages.describe_producers import DescribeProducersRequest
from kohort.protocol.messages.describe_quorum import DescribeQuorumRequest
from kohort.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kohort.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kohort.protocol.messages.elect_leaders import ElectLeadersRequest
from kohort.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kohort.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kohort.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kohort.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kohort.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kohort.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kohort.protocol.messages.push_telemetry import PushTelemetryRequest
from kohort.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kohort.protocol.messages.update_features import UpdateFeaturesRequest
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.broker.handlers.conftest import Ask, Deny

KINDS = (2, 4, 8, 16, 32, 99)


def requests(directory: str) -> list[Request]:
    """Requests that make each handler answer in all its ways, successes before failures."""
    config = AlterConfigsRequest.Resource.Config
    edit = IncrementalAlterConfigsRequest.Resource.Config
    marker = WriteTxnMarkersRequest.Marker
    quorum = DescribeQuorumRequest.Topic
    names = {2: "there", 4: "1", 8: "1", 16: "subscription", 32: "group", 99: "what"}
    return [
        CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.Topic(
                    name="new",
                    num_partitions=2,
                    replication_factor=1,
                    configs=[CreateTopicsRequest.Topic.Config(name="retention.ms", value="1000")],
                ),
                CreateTopicsRequest.Topic(name="there", num_partitions=1, replication_factor=1),
            ]
        ),
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.Topic(name="new", count=3, assignments=None),
                CreatePartitionsRequest.Topic(name="absent", count=3),
            ]
        ),
        DeleteTopicsRequest(topic_names=("new", "absent")),
        DeleteTopicsRequest(
            topics=[
                DeleteTopicsRequest.Topic(name="absent"),
                DeleteTopicsRequest.Topic(topic_id=UUID(int=9), name=None),
            ]
        ),
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.Topic(
                    name="there",
                    partitions=[
                        DeleteRecordsRequest.Topic.Partition(partition_index=0, offset=-1),
                        DeleteRecordsRequest.Topic.Partition(partition_index=7, offset=0),
                    ],
                )
            ]
        ),
        *(
            DescribeConfigsRequest(
                resources=[DescribeConfigsRequest.Resource(resource_type=kind, resource_name=names[kind])],
                include_synonyms=True,
            )
            for kind in KINDS
        ),
        *(
            AlterConfigsRequest(
                resources=[
                    AlterConfigsRequest.Resource(
                        resource_type=kind, resource_name=names[kind], configs=[config(name="nonsense", value="1")]
                    )
                ]
            )
            for kind in KINDS
        ),
        *(
            IncrementalAlterConfigsRequest(
                resources=[
                    IncrementalAlterConfigsRequest.Resource(
                        resource_type=kind, resource_name=names[kind], configs=[edit(name="nonsense", value="1")]
                    )
                ]
            )
            for kind in KINDS
        ),
        ListConfigResourcesRequest(),
        DescribeLogDirsRequest(topics=None),
        DescribeLogDirsRequest(topics=[DescribeLogDirsRequest.Topic(topic="there", partitions=(0, 9))]),
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderEpochRequest.Topic(
                    topic="there",
                    partitions=[
                        OffsetForLeaderEpochRequest.Topic.Partition(partition=0),
                        OffsetForLeaderEpochRequest.Topic.Partition(partition=9),
                    ],
                )
            ]
        ),
        DescribeTopicPartitionsRequest(),
        DescribeProducersRequest(topics=[DescribeProducersRequest.Topic(name="there", partition_indexes=(0, 9))]),
        ElectLeadersRequest(topic_partitions=[ElectLeadersRequest.TopicPartition(topic="there", partitions=(0, 9))]),
        ElectLeadersRequest(topic_partitions=None),
        DescribeQuorumRequest(
            topics=[quorum(topic_name="__cluster_metadata", partitions=[quorum.Partition(partition_index=0)])]
        ),
        DescribeQuorumRequest(topics=[quorum(topic_name="there", partitions=[quorum.Partition(partition_index=9)])]),
        UpdateFeaturesRequest(
            feature_updates=[UpdateFeaturesRequest.FeatureUpdate(feature="group.version", max_version_level=1)]
        ),
        AlterPartitionReassignmentsRequest(
            topics=[
                AlterPartitionReassignmentsRequest.Topic(
                    name="there",
                    partitions=[AlterPartitionReassignmentsRequest.Topic.Partition(partition_index=0, replicas=(1,))],
                )
            ]
        ),
        ListPartitionReassignmentsRequest(topics=None),
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.Dir(
                    path=path, topics=[AlterReplicaLogDirsRequest.Dir.Topic(name="there", partitions=(0,))]
                )
                for path in (directory, "/elsewhere")
            ]
        ),
        GetTelemetrySubscriptionsRequest(),
        PushTelemetryRequest(client_instance_id=UUID(int=9)),
        WriteTxnMarkersRequest(
            markers=[
                marker(
                    producer_id=5,
                    producer_epoch=0,
                    topics=[marker.Topic(name="there", partition_indexes=(0, 9))],
                )
            ]
        ),
        DescribeClusterRequest(include_cluster_authorized_operations=True),
        DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1),
        CreateAclsRequest(creations=[CreateAclsRequest.Creation(resource_type=2, resource_name="there")]),
        DeleteAclsRequest(filters=[DeleteAclsRequest.Filter(resource_type_filter=1)]),
        DescribeClientQuotasRequest(),
        AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.Entry()]),
        DescribeUserScramCredentialsRequest(),
        AlterUserScramCredentialsRequest(upsertions=[AlterUserScramCredentialsRequest.Upsertion(name="alice")]),
        CreateDelegationTokenRequest(),
        RenewDelegationTokenRequest(),
        ExpireDelegationTokenRequest(),
        DescribeDelegationTokenRequest(),
    ]


REQUESTS = requests("")


def versions(request: Request) -> list[int]:
    """Those in which the request can be sent: topics to delete are named in another way from version 6 on."""
    known = request.__message__.versions
    if isinstance(request, DeleteTopicsRequest):
        return [version for version in known if bool(request.topics) == (version >= 6)]
    return list(known)


@pytest.mark.parametrize("forbidden", [False, True], ids=["allowed", "forbidden"])
@pytest.mark.parametrize("which", range(len(REQUESTS)), ids=[request.__message__.api for request in REQUESTS])
def test_is_answered(which: int, forbidden: bool, ask: Ask, broker: Broker, deny: Deny) -> None:
    request = requests(str(broker.log_manager.directory))[which]
    broker.topics.create("there", 1)
    if forbidden:
        deny(None)
    for version in versions(request):
        if broker.topics.get("new") is None and not isinstance(request, CreateTopicsRequest):
            broker.topics.create("new", 1)
        response = ask(request, version)
        assert type(response) is api(request.__message__.key).response
