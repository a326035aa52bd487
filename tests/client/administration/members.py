"""Records and members of groups, made of single requests: what an admin is shown."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from kohort.client.cluster import Cluster
from kohort.client.server_cluster_info import CoordinatorKind
from kohort.client.types import TopicPartition
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.produce import ProduceResponse
from kohort.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TopicInfo,
)
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.protocol.records.rows import encode_rows
from tests.client.consuming.support import append
from tests.produce_requests import produce_request

__all__ = ["join_classic", "join_streams", "open_transaction", "write_at"]


async def write_at(servers: str, to: TopicPartition, timestamps: Sequence[int]) -> None:
    """Write records with these times, in ms since 1970."""
    values = [b"value"] * len(timestamps)
    async with Cluster(servers) as cluster:
        await append(cluster, to.topic, [encode_rows(timestamps, values, values)], to.partition)


async def open_transaction(servers: str, transactional_id: str, to: TopicPartition) -> None:
    """Write a record in a transaction that nobody ends."""
    async with Cluster(servers) as cluster:
        coordinator = await cluster.coordinator_connection(CoordinatorKind.TRANSACTION, transactional_id)
        init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        producer = await coordinator.ask(init, InitProducerIdResponse)
        assert not producer.error_code
        records = encode_rows(
            [0],
            [None],
            [b"value"],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        request = produce_request(to.topic, records, to.partition, transactional_id=transactional_id)
        connection = await cluster.any_connection()
        answer = await connection.ask(request, ProduceResponse, version=12)
        assert answer.responses[0].partition_responses[0].error_code == 0


async def join_classic(servers: str, group_id: str, assigned: TopicPartition) -> str:
    """Make a consumer the only member of a classic group; its member id. It stays until its session is over."""
    async with Cluster(servers) as cluster:
        connection = await cluster.coordinator_connection(CoordinatorKind.GROUP, group_id)
        subscription = ConsumerProtocolSubscription(topics=(assigned.topic,))
        member_id = ""
        for _ in range(2):  # the first answer is the id to come with
            request = JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"\0\3" + subscription.encode(3))],
            )
            joined = await connection.ask(request, JoinGroupResponse)
            member_id = joined.member_id
        assert joined.error_code == 0
        partitions = ConsumerProtocolAssignment.AssignedPartition(
            topic=assigned.topic, partitions=(assigned.partition,)
        )
        assignment = ConsumerProtocolAssignment(assigned_partitions=[partitions])
        sync = SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequest.Assignment(member_id=member_id, assignment=b"\0\3" + assignment.encode(3))],
        )
        assert (await connection.ask(sync, SyncGroupResponse)).error_code == 0
        return member_id


async def join_streams(servers: str, group_id: str, topic: str) -> str:
    """Make a streams group of one member, with a task and a state store for each partition of the topic; its id."""
    member_id = str(uuid.uuid4())
    kind = StreamsGroupHeartbeatRequest.Topology
    topology = kind(
        epoch=0,
        subtopologies=[
            kind.Subtopology(
                subtopology_id="0",
                source_topics=(topic,),
                state_changelog_topics=[TopicInfo(name=f"{group_id}-store-changelog")],
            )
        ],
    )
    async with Cluster(servers) as cluster:
        connection = await cluster.coordinator_connection(CoordinatorKind.GROUP, group_id)
        epoch = 0
        for _ in range(1000):
            request = StreamsGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)
            if not epoch:
                request.rebalance_timeout_ms = 30_000
                request.topology = topology
                request.process_id = "process"
                request.user_endpoint = Endpoint(host="here", port=80)
                request.client_tags = []
                request.active_tasks = request.standby_tasks = request.warmup_tasks = []
            answer = await connection.ask(request, StreamsGroupHeartbeatResponse)
            assert not answer.error_code, answer.error_message
            epoch = answer.member_epoch
            if answer.active_tasks:
                return member_id
            await asyncio.sleep(0.01)
        raise AssertionError("no task was given out")
