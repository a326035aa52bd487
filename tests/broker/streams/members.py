"""Members of streams groups that send heartbeats as raw requests."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any

from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TopicInfo,
)
from tests.broker.raw import RawClient

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse
Topology = Request.Topology
Subtopology = Topology.Subtopology

PATIENCE = 20.0
"""Seconds until a condition must hold."""

_numbers = itertools.count()


def stateless(*topics: str) -> Topology:
    """A topology that reads topics, and keeps no state."""
    return Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topics=topics)])


def counting(app: str = "app", source: str = "words", **changelog: str) -> Topology:
    """A topology that reads words, repartitions them, and counts; a changelog may have settings."""
    repartition, store = f"{app}-words-repartition", f"{app}-counts-changelog"
    configs = [KeyValue(key=key.replace("_", "."), value=value) for key, value in changelog.items()]
    return Topology(
        epoch=0,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=(source,), repartition_sink_topics=(repartition,)),
            Subtopology(
                subtopology_id="1",
                repartition_source_topics=[TopicInfo(name=repartition)],
                state_changelog_topics=[TopicInfo(name=store, topic_configs=configs)],
            ),
        ],
    )


class StreamsClient:
    """A member with its tasks."""

    def __init__(self, client: RawClient, topology: Topology, group: str = "app", process: str | None = None) -> None:
        self.client = client
        self.topology = topology
        self.group = group
        self.member_id = f"00000000-0000-4000-8000-{next(_numbers):012d}"
        self.process = process or self.member_id
        self.epoch = 0
        self.endpoint_epoch = -1
        self.tasks: dict[str, list[TaskIds]] = {"active": [], "standby": [], "warmup": []}

    @property
    def active(self) -> set[tuple[str, int]]:
        """Tasks that it runs."""
        return _flat(self.tasks["active"])

    async def join(self, **fields: Any) -> Response:
        """The first heartbeat."""
        self.epoch = 0
        self.tasks = {kind: [] for kind in self.tasks}
        first = {
            "rebalance_timeout_ms": 60_000,
            "topology": self.topology,
            "process_id": self.process,
            "client_tags": [],
        }
        return await self.beat(**{**first, **fields})

    async def beat(self, **fields: Any) -> Response:
        """Sends a heartbeat with all tasks, and takes the assigned ones."""
        request = Request(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=self.endpoint_epoch,
            **{f"{kind}_tasks": tasks for kind, tasks in self.tasks.items()},
        )
        for field, value in fields.items():
            setattr(request, field, value)
        response: Response = await self.client.call(request)
        if not response.error_code:
            self.epoch, self.endpoint_epoch = response.member_epoch, response.endpoint_information_epoch
            for kind in self.tasks:
                assigned = getattr(response, f"{kind}_tasks")
                if assigned is not None:
                    self.tasks[kind] = assigned
        return response

    async def leave(self) -> Response:
        """Leaves the group."""
        return await self.beat(member_epoch=-1)


def _flat(tasks: Iterable[TaskIds]) -> set[tuple[str, int]]:
    return {(ids.subtopology_id, partition) for ids in tasks for partition in ids.partitions}


class Crowd:
    """The clients of a server.

    Attributes:
        server, topics: the server, and its topics.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.topics = server.broker.topics
        self._clients: list[RawClient] = []

    async def client(self) -> RawClient:
        """A connection."""
        client = await RawClient.connect(self.server.port)
        self._clients.append(client)
        return client

    async def member(self, topology: Topology, group: str = "app", process: str | None = None) -> StreamsClient:
        """A member that hasn't joined yet, on a connection of its own, with a coordinator that is ready for it."""
        self.server.broker.groups.start()
        return StreamsClient(await self.client(), topology, group, process)

    async def joined(self, topology: Topology, group: str = "app", process: str | None = None) -> StreamsClient:
        """A member that has joined."""
        member = await self.member(topology, group, process)
        response = await member.join()
        assert not response.error_code, (ErrorCode(response.error_code).name, response.error_message)
        return member

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.close()


async def reconcile(*members: StreamsClient) -> None:
    """Sends heartbeats of all members until nothing changes, and all have the same epoch."""
    async with asyncio.timeout(PATIENCE):
        while True:
            changes = []
            for member in members:
                before = member.epoch, dict(member.tasks)
                response = await member.beat()
                assert not response.error_code, (ErrorCode(response.error_code).name, response.error_message)
                changes.append(bool(response.status) or before != (member.epoch, member.tasks))
            if not any(changes) and len({member.epoch for member in members}) == 1:
                return
            await asyncio.sleep(0.005)


def statuses(response: Response) -> dict[int, str]:
    """A response's status details by code."""
    return {status.status_code: status.status_detail for status in response.status or ()}
