"""Coordinators of groups and transactions: FindCoordinator."""

from __future__ import annotations

import asyncio
from typing import Final

from kohort.client.config import ClientConfig
from kohort.client.connection import Connection
from kohort.client.connections import Connections
from kohort.client.errors import NoBrokerError, kafka_error
from kohort.client.retrying import ask_until, retry_backoff
from kohort.client.server_cluster_info import CoordinatorKind, ServerClusterInfo
from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

__all__ = ["Coordinators"]

_SEVERAL_KEYS: Final = 4
"""The first version of FindCoordinator with several keys, in other fields than before."""


class Coordinators:
    """Finds coordinators, and keeps them in the server cluster info until they are forgotten."""

    def __init__(self, connections: Connections, info: ServerClusterInfo, config: ClientConfig) -> None:
        self._connections = connections
        self._info = info
        self._config = config

    async def find(self, kind: CoordinatorKind, key: str, timeout_ms: float) -> int:
        """Returns the coordinator's node id; raises as `Cluster.coordinator`."""
        known = self._info.coordinators.get((kind, key))
        if known is not None:
            return known
        now = asyncio.get_running_loop().time
        deadline = now() + timeout_ms / 1000
        backoff = retry_backoff(self._config)
        refused: KafkaError | None = None
        while True:
            left_ms = max((deadline - now()) * 1000, 1)
            try:
                found = await ask_until(
                    self._connections, self._config, "FindCoordinator", left_ms, lambda each: _ask(each, kind, key)
                )
            except NoBrokerError:
                if refused is None:
                    raise
                raise refused from None  # says more than that the last attempt had too little time
            if isinstance(found, Broker):
                self._info.learn_broker(found)
                self._info.coordinators[kind, key] = found.node_id
                return found.node_id
            pause = backoff.next() / 1000
            if not found.code.retriable or now() + pause > deadline:
                raise found
            refused = found
            await asyncio.sleep(pause)


async def _ask(connection: Connection, kind: CoordinatorKind, key: str) -> Broker | KafkaError:
    if connection.version(FindCoordinatorRequest) < _SEVERAL_KEYS:
        one = await connection.ask(FindCoordinatorRequest(key=key, key_type=kind), FindCoordinatorResponse)
        code, detail = one.error_code, one.error_message
        broker = Broker(one.node_id, one.host, one.port)
    else:
        request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=kind)
        several = (await connection.ask(request, FindCoordinatorResponse)).coordinators
        if not several:
            return kafka_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the response has none")
        code, detail = several[0].error_code, several[0].error_message
        broker = Broker(several[0].node_id, several[0].host, several[0].port)
    return kafka_error(code, detail) if code else broker
