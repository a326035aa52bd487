"""What each API needs, each tried without the right: the answer is Kafka's error, or what isn't seen is left out.

A new API without a row fails, and so does a right that is asked for and isn't in the API's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import pytest

from kohort.broker import handlers
from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request
from kohort.protocol.messages import API_NAMES
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kohort.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from kohort.protocol.messages.alter_configs import AlterConfigsRequest
from kohort.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kohort.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kohort.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kohort.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kohort.protocol.messages.create_acls import CreateAclsRequest
from kohort.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from kohort.protocol.messages.create_partitions import CreatePartitionsRequest
from kohort.protocol.messages.create_topics import CreateTopicsRequest
from kohort.protocol.messages.delete_acls import DeleteAclsRequest
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.delete_records import DeleteRecordsRequest
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from kohort.protocol.messages.describe_cluster import DescribeClusterRequest
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest
from kohort.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kohort.protocol.messages.describe_producers import DescribeProducersRequest
from kohort.protocol.messages.describe_quorum import DescribeQuorumRequest
from kohort.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kohort.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kohort.protocol.messages.elect_leaders import ElectLeadersRequest
from kohort.protocol.messages.end_txn import EndTxnRequest
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from kohort.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kohort.protocol.messages.list_groups import ListGroupsRequest
from kohort.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kohort.protocol.messages.list_transactions import ListTransactionsRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from kohort.protocol.messages.update_features import UpdateFeaturesRequest
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kohort.protocol.schema import NO_UUID, Struct
from kohort.security.acls import AclFilter
from tests.broker.handlers import share_groups, share_state
from tests.broker.handlers import test_every_version_of_client_apis as client_apis
from tests.broker.handlers.acls import READS, creation, deletion, describe
from tests.broker.handlers.conftest import Ask, Deny, Rules
from tests.broker.handlers.consumer_groups import joining
from tests.broker.handlers.delegation_tokens import by_sasl, create
from tests.broker.handlers.groups import commit
from tests.broker.handlers.transactions import init

Right = tuple[Operation, ResourceType]
Needs = tuple[ErrorCode | str, tuple[Right, ...]]
"""The error without all of the rights, or the text that isn't in the response then."""

_TOPIC = ResourceType.TOPIC
_GROUP = ResourceType.GROUP
_CLUSTER = ResourceType.CLUSTER
_TXN = ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE, DELETE, ALTER = (
    Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER,
)  # fmt: skip
DESCRIBE = Operation.DESCRIBE
MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
DENIALS: Final = frozenset(code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED"))
ALLOWED_OPERATIONS: Final = {*((each, kind) for kind in (_TOPIC, _GROUP, _CLUSTER) for each in Operation)}
"""What is asked for where the client wants to know what it is allowed (KIP-430)."""


def topic(operation: Operation) -> Needs:
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED, ((operation, _TOPIC),)


def group(operation: Operation) -> Needs:
    return ErrorCode.GROUP_AUTHORIZATION_FAILED, ((operation, _GROUP),)


def cluster(operation: Operation) -> Needs:
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ((operation, _CLUSTER),)


def txn(operation: Operation) -> Needs:
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ((operation, _TXN),)


@dataclass
class Row:
    """A request about topic "there", group "g" or "m", or transactional id "t", and what it needs.

    Attributes:
        version: the newest if it is None.
        also: rights that are asked for without a denial, such as those the response lists.
        prepare: what happens before; members that join, say.
        waits: whether the answer waits for something if nothing is denied.
    """

    make: Callable[[int, UUID, str], Request]
    needs: tuple[Needs, ...] = ()
    version: int | None = None
    also: set[Right] = field(default_factory=set)
    prepare: Callable[[Ask], object] = lambda ask: None
    principal: str = "User:alice"
    waits: bool = False

    @property
    def made_version(self) -> int:
        newest: int = self.make(15, NO_UUID, "g").__message__.versions[-1]
        return newest if self.version is None else self.version


def row(request: Request, *needs: Needs, **options: Any) -> Row:
    return Row(lambda version, topic_id, name: request, needs, **options)


def made(make: Callable[[int, UUID, str], Request], *needs: Needs, **options: Any) -> Row:
    return Row(make, needs, **options)


def of_state(make: Callable[..., Request]) -> Row:
    return Row(lambda version, topic_id, name: make(topic_id, 0), (cluster(Operation.CLUSTER_ACTION),))


def configs(operation: Operation, make: Callable[[int, str], Request]) -> list[Row]:
    return [row(make(2, "there"), topic(operation)), row(make(4, "1"), cluster(operation)),
            row(make(16, "metrics"), cluster(operation)), row(make(32, "g"), group(operation))]  # fmt: skip


def committed(ask: Ask) -> None:
    for group_id in ("g", "offsets"):
        commit(ask, ("there", 0), group_id=group_id)


def streams_heartbeat(version: int, topic_id: UUID, name: str) -> Request:
    """A member whose topology has no internal topics joins."""
    request = client_apis.streams_heartbeat()(version, topic_id, name)
    assert isinstance(request, StreamsGroupHeartbeatRequest)
    assert request.topology is not None
    request.topology.subtopologies[0].state_changelog_topics = []
    return request


def left_share_group(ask: Ask) -> None:
    share_groups.join(ask, "m", "there")
    share_groups.leave(ask)


def opened_session(ask: Ask) -> None:
    ask(ShareFetchRequest(group_id="g", member_id=MEMBER, max_bytes=1, max_records=1, max_wait_ms=1))


def acknowledge(version: int, topic_id: UUID, name: str) -> Request:
    batch = ShareAcknowledgeRequest.Topic.Partition.AcknowledgementBatch(
        first_offset=0, last_offset=0, acknowledge_types=(1,)
    )
    partition = ShareAcknowledgeRequest.Topic.Partition(partition_index=0, acknowledgement_batches=[batch])
    return ShareAcknowledgeRequest(
        group_id="g",
        member_id=MEMBER,
        share_session_epoch=1,
        topics=[ShareAcknowledgeRequest.Topic(topic_id=topic_id, partitions=[partition])],
    )


def produce(version: int, topic_id: UUID, name: str) -> Request:
    return client_apis.produce_at(version, topic_id, "t")


Records = DeleteRecordsRequest.Topic
Marker = WriteTxnMarkersRequest.Marker


TABLE: dict[str, list[Row]] = {
    "Produce": [made(produce, topic(WRITE), txn(WRITE))],
    "Fetch": [made(client_apis.fetch, topic(READ))],
    "ListOffsets": [made(client_apis.list_offsets, topic(DESCRIBE))],
    "Metadata": [
        row(
            MetadataRequest(topics=[MetadataRequest.Topic(name="there")], include_topic_authorized_operations=True),
            topic(DESCRIBE),
            also=ALLOWED_OPERATIONS,
        ),
        row(MetadataRequest(topics=None), ("there", ((DESCRIBE, _TOPIC),))),
        row(
            MetadataRequest(topics=[MetadataRequest.Topic(name="new")], allow_auto_topic_creation=True),
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ((CREATE, _CLUSTER), (CREATE, _TOPIC))),
            also={(DESCRIBE, _TOPIC)},
        ),
    ],
    "OffsetCommit": [made(client_apis.offset_commit, group(READ), topic(READ))],
    "OffsetFetch": [
        made(client_apis.offset_fetch, group(DESCRIBE), topic(DESCRIBE), prepare=lambda ask: commit(ask, ("there", 0))),
    ],
    "FindCoordinator": [
        row(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), group(DESCRIBE)),
        row(FindCoordinatorRequest(key_type=1, coordinator_keys=("t",)), txn(DESCRIBE)),
        made(
            lambda _, topic_id, name: FindCoordinatorRequest(key_type=2, coordinator_keys=(f"g:{topic_id}:0",)),
            cluster(Operation.CLUSTER_ACTION),
        ),
    ],
    "JoinGroup": [made(client_apis.join(), group(READ))],
    "Heartbeat": [row(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), group(READ))],
    "LeaveGroup": [made(client_apis.leave, group(READ))],
    "SyncGroup": [made(client_apis.sync, group(READ))],
    "DescribeGroups": [
        row(
            DescribeGroupsRequest(groups=("g",), include_authorized_operations=True),
            group(DESCRIBE),
            also=ALLOWED_OPERATIONS,
        )
    ],
    "ListGroups": [
        row(
            ListGroupsRequest(),
            ("group_id='g'", ((DESCRIBE, _CLUSTER), (DESCRIBE, _GROUP))),
            prepare=committed,
        )
    ],
    "SaslHandshake": [],
    "ApiVersions": [],
    "CreateTopics": [
        row(
            CreateTopicsRequest(topics=[CreateTopicsRequest.Topic(name="new", num_partitions=1, replication_factor=1)]),
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ((CREATE, _CLUSTER), (CREATE, _TOPIC))),
            topic(Operation.DESCRIBE_CONFIGS),
        )
    ],
    "DeleteTopics": [
        row(
            DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name="there")]),
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ((DELETE, _CLUSTER), (DELETE, _TOPIC))),
            also={(DESCRIBE, _TOPIC)},
        )
    ],
    "DeleteRecords": [
        row(
            DeleteRecordsRequest(topics=[Records(name="there", partitions=[Records.Partition(partition_index=0)])]),
            topic(DELETE),
        )
    ],
    "InitProducerId": [
        row(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000), txn(WRITE)),
        row(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
            (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ((Operation.IDEMPOTENT_WRITE, _CLUSTER), (WRITE, _TOPIC))),
        ),
    ],
    "OffsetForLeaderEpoch": [
        row(
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderEpochRequest.Topic(
                        topic="there", partitions=[OffsetForLeaderEpochRequest.Topic.Partition(partition=0)]
                    )
                ]
            ),
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ((Operation.CLUSTER_ACTION, _CLUSTER), (DESCRIBE, _TOPIC))),
        )
    ],
    "AddPartitionsToTxn": [
        made(client_apis.add_known_partitions, txn(WRITE), topic(WRITE), version=3),
        made(client_apis.add_known_partitions, cluster(Operation.CLUSTER_ACTION)),  # brokers ask so
    ],
    "AddOffsetsToTxn": [
        row(
            AddOffsetsToTxnRequest(transactional_id="t", producer_id=5, producer_epoch=0, group_id="g"),
            txn(WRITE),
            group(READ),
        )
    ],
    "EndTxn": [row(EndTxnRequest(transactional_id="t", producer_id=5, producer_epoch=0), txn(WRITE))],
    "WriteTxnMarkers": [
        row(
            WriteTxnMarkersRequest(
                markers=[
                    Marker(
                        producer_id=5,
                        producer_epoch=0,
                        topics=[Marker.Topic(name="there", partition_indexes=(0,))],
                    )
                ]
            ),
            (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ((ALTER, _CLUSTER), (Operation.CLUSTER_ACTION, _CLUSTER))),
        )
    ],
    "TxnOffsetCommit": [made(client_apis.txn_offset_commit("g", "there"), txn(WRITE), group(READ), topic(READ))],
    "DescribeAcls": [row(describe(AclFilter()), cluster(DESCRIBE))],
    "CreateAcls": [row(CreateAclsRequest(creations=[creation(READS)]), cluster(ALTER))],
    "DeleteAcls": [row(DeleteAclsRequest(filters=[deletion(AclFilter())]), cluster(ALTER))],
    "DescribeConfigs": configs(
        Operation.DESCRIBE_CONFIGS,
        lambda kind, name: DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name)]
        ),
    ),
    "AlterConfigs": configs(
        Operation.ALTER_CONFIGS,
        lambda kind, name: AlterConfigsRequest(
            resources=[AlterConfigsRequest.Resource(resource_type=kind, resource_name=name)]
        ),
    ),
    "AlterReplicaLogDirs": [
        row(
            AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDirsRequest.Dir(
                        path="/d", topics=[AlterReplicaLogDirsRequest.Dir.Topic(name="there", partitions=(0,))]
                    )
                ]
            ),
            cluster(ALTER),
        )
    ],
    "DescribeLogDirs": [row(DescribeLogDirsRequest(topics=None), cluster(DESCRIBE))],
    "SaslAuthenticate": [],
    "CreatePartitions": [
        row(
            CreatePartitionsRequest(topics=[CreatePartitionsRequest.Topic(name="there", count=3, assignments=None)]),
            topic(ALTER),
        )
    ],
    "CreateDelegationToken": [
        row(
            CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob"),
            (
                ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
                ((Operation.CREATE_TOKENS, ResourceType.USER),),
            ),
        )
    ],
    "RenewDelegationToken": [],
    "ExpireDelegationToken": [],
    "DescribeDelegationToken": [
        row(
            DescribeDelegationTokenRequest(owners=None),
            ("carol", ((DESCRIBE, ResourceType.DELEGATION_TOKEN), (Operation.DESCRIBE_TOKENS, ResourceType.USER))),
            prepare=lambda ask: create(ask, "User:carol"),
        )
    ],
    "DeleteGroups": [row(DeleteGroupsRequest(groups_names=("g",)), group(DELETE))],
    "ElectLeaders": [row(ElectLeadersRequest(topic_partitions=None), cluster(ALTER))],
    "IncrementalAlterConfigs": [
        *configs(
            Operation.ALTER_CONFIGS,
            lambda kind, name: IncrementalAlterConfigsRequest(
                resources=[IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name)]
            ),
        ),
        row(
            IncrementalAlterConfigsRequest(
                resources=[IncrementalAlterConfigsRequest.Resource(resource_type=8, resource_name="1")]
            ),
            cluster(Operation.ALTER_CONFIGS),
        ),
    ],
    "AlterPartitionReassignments": [row(AlterPartitionReassignmentsRequest(), cluster(ALTER))],
    "ListPartitionReassignments": [row(ListPartitionReassignmentsRequest(topics=None), cluster(DESCRIBE))],
    "OffsetDelete": [made(client_apis.offset_delete, group(DELETE), topic(READ), prepare=committed)],
    "DescribeUserScramCredentials": [row(DescribeUserScramCredentialsRequest(), cluster(DESCRIBE))],
    "AlterUserScramCredentials": [
        row(
            AlterUserScramCredentialsRequest(
                deletions=[AlterUserScramCredentialsRequest.Deletion(name="alice", mechanism=1)]
            ),
            cluster(ALTER),
        )
    ],
    "DescribeClientQuotas": [row(DescribeClientQuotasRequest(), cluster(Operation.DESCRIBE_CONFIGS))],
    "AlterClientQuotas": [
        row(AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.Entry()]), cluster(Operation.ALTER_CONFIGS))
    ],
    "DescribeQuorum": [row(DescribeQuorumRequest(), cluster(DESCRIBE))],
    "UpdateFeatures": [row(UpdateFeaturesRequest(), cluster(ALTER))],
    "DescribeCluster": [
        row(DescribeClusterRequest(include_cluster_authorized_operations=True), also=ALLOWED_OPERATIONS)
    ],
    "DescribeProducers": [
        row(
            DescribeProducersRequest(topics=[DescribeProducersRequest.Topic(name="there", partition_indexes=(0,))]),
            topic(READ),
        )
    ],
    "DescribeTransactions": [
        row(
            DescribeTransactionsRequest(transactional_ids=("t",)),
            txn(DESCRIBE),
            prepare=lambda ask: init(ask),
        )
    ],
    "ListTransactions": [
        row(
            ListTransactionsRequest(),
            ("transactional_id='t'", ((DESCRIBE, _TXN),)),
            prepare=lambda ask: init(ask),
        )
    ],
    "ConsumerGroupHeartbeat": [row(joining(), group(READ), topic(DESCRIBE))],
    "ConsumerGroupDescribe": [
        row(
            ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=True),
            group(DESCRIBE),
            topic(DESCRIBE),
            also=ALLOWED_OPERATIONS,
            prepare=lambda ask: ask(joining()),
        )
    ],
    "GetTelemetrySubscriptions": [],
    "PushTelemetry": [],
    "ListConfigResources": [row(ListConfigResourcesRequest(), cluster(Operation.DESCRIBE_CONFIGS))],
    "DescribeTopicPartitions": [
        row(
            DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsRequest.Topic(name="there")]),
            topic(DESCRIBE),
            also=ALLOWED_OPERATIONS,
        ),
        row(
            DescribeTopicPartitionsRequest(),
            ("name='there'", ((DESCRIBE, _TOPIC),)),
            also=ALLOWED_OPERATIONS,
        ),
    ],
    "ShareGroupHeartbeat": [row(share_groups.heartbeat("m", 0, "there"), group(READ), topic(DESCRIBE))],
    "ShareGroupDescribe": [
        row(
            ShareGroupDescribeRequest(group_ids=("g",), include_authorized_operations=True),
            group(DESCRIBE),
            topic(DESCRIBE),
            also=ALLOWED_OPERATIONS,
            prepare=lambda ask: share_groups.join(ask, "m", "there"),
        )
    ],
    "ShareFetch": [made(client_apis.open_share_session, group(READ), topic(READ))],
    "ShareAcknowledge": [made(acknowledge, group(READ), topic(READ), prepare=opened_session)],
    "InitializeShareGroupState": [of_state(share_state.initialize)],
    "ReadShareGroupState": [of_state(share_state.read)],
    "WriteShareGroupState": [of_state(share_state.write)],
    "DeleteShareGroupState": [of_state(share_state.delete)],
    "ReadShareGroupStateSummary": [of_state(share_state.summary)],
    "StreamsGroupHeartbeat": [made(streams_heartbeat, group(READ), topic(DESCRIBE), waits=True)],
    "StreamsGroupDescribe": [
        row(
            StreamsGroupDescribeRequest(group_ids=("g",), include_authorized_operations=True),
            group(DESCRIBE),
            # its topics: test_streams_group_describe.py
            also=ALLOWED_OPERATIONS,
        )
    ],
    "DescribeShareGroupOffsets": [
        row(share_groups.describe_offsets({"there": (0,)}), group(DESCRIBE), topic(DESCRIBE)),
    ],
    "AlterShareGroupOffsets": [row(share_groups.alter({"there": {0: 0}}), group(READ), topic(READ))],
    "DeleteShareGroupOffsets": [
        row(share_groups.delete_offsets("there"), group(DELETE), topic(READ), prepare=left_share_group)
    ],
    "StreamsGroupTopologyDescriptionUpdate": [
        row(StreamsGroupTopologyDescriptionUpdateRequest(group_id="g"), group(READ))
    ],
}
"""The rows of each served API; those without rows need no right."""

ROWS = [(api, each) for api, rows in TABLE.items() for each in rows]
DENIED = [(api, each, needs) for api, each in ROWS for needs in each.needs]


def error_codes(part: Any) -> Iterator[int]:
    """All error codes in a response."""
    if isinstance(part, list):
        for each in part:
            yield from error_codes(each)
    elif isinstance(part, Struct):
        for each in type(part).__wire_fields__:
            value = getattr(part, each.attr)
            if each.attr.endswith("error_code"):
                yield value
            else:
                yield from error_codes(value)


@pytest.fixture
def asked_for(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> set[Right]:
    """The rights that are asked for."""
    asked: set[Right] = set()

    def allowed(self: Rules, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        asked.add((operation, kind))
        return decide(self, principal, host, operation, kind, name)

    decide = Rules.allowed
    monkeypatch.setattr(Rules, "allowed", allowed)
    return asked


@pytest.fixture
def settings() -> dict[str, object]:
    return {"delegation.token.secret.key": "secret"}


def answer(each: Row, ask: Ask, broker: Broker, asked_for: set[Right], deny: Callable[[], object]) -> Any:
    topic_id = broker.topics.create("there", 2).id
    each.prepare(ask)
    asked_for.clear()
    deny()
    return ask(each.make(each.made_version, topic_id, "g"), each.version, **by_sasl(each.principal))


def test_every_served_api_is_in_the_table() -> None:
    assert set(TABLE) == {API_NAMES[key] for key, _ in handlers.served_apis()}


@pytest.mark.parametrize(("api", "each"), ROWS, ids=[api for api, _ in ROWS])
def test_with_all_rights(
    api: str, each: Row, ask: Ask, broker: Broker, asked_for: set[Right], monkeypatch: pytest.MonkeyPatch
) -> None:
    if each.waits:  # for the process that places tasks, which nobody starts here
        monkeypatch.setattr(broker.groups.placer, "start", lambda then: None)
        with pytest.raises(AssertionError, match="waits"):
            answer(each, ask, broker, asked_for, lambda: None)
        return
    response = answer(each, ask, broker, asked_for, lambda: None)
    assert response.__message__.api == api
    assert not DENIALS & set(error_codes(response)), response
    hidden = [without for without, _ in each.needs if isinstance(without, str)]
    assert all(text in repr(response) for text in hidden), response
    assert asked_for <= {right for _, rights in each.needs for right in rights} | each.also
    assert bool(asked_for) is bool(each.needs or each.also)


@pytest.mark.parametrize(
    ("api", "each", "needs"), DENIED, ids=[f"{api}-{'-'.join(right[0].name for right in n[1])}" for api, _, n in DENIED]
)
def test_without_a_right(
    api: str, each: Row, needs: Needs, ask: Ask, broker: Broker, deny: Deny, asked_for: set[Right]
) -> None:
    without, rights = needs
    response = answer(each, ask, broker, asked_for, lambda: [deny(*right) for right in rights])
    if isinstance(without, str):
        assert without not in repr(response)
    else:
        assert without in set(error_codes(response)), response
    assert asked_for <= {right for _, rights in each.needs for right in rights} | each.also
    assert asked_for >= set(rights)
