"""FindCoordinator: always this node; the coordinator's internal topic is created by the first request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.turns import Slices, in_slices
from kohort.coordinator.share_state import SharePartitionKey
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

SERVED: Final = Served(FindCoordinatorRequest, versions=(0, 6))

BATCHED: Final = 4
"""First version with several keys."""

GROUP = 0
TRANSACTION = 1
SHARE = 2

SHARE_KEYS: Final = 6
"""First version with keys of share partitions."""

_Coordinator = FindCoordinatorResponse.Coordinator


def handle(request: FindCoordinatorRequest, context: Context) -> Slices[FindCoordinatorResponse]:
    """Finds the coordinator of one key, or of several."""
    if context.version < BATCHED:
        found = _find(request.key_type, request.key, context)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    found_all = yield from in_slices(lambda key: _find(request.key_type, key, context), request.coordinator_keys)
    return FindCoordinatorResponse(coordinators=found_all)


def _find(key_type: int, key: str, context: Context) -> _Coordinator:
    broker = context.broker
    error: KafkaError | None = None
    if key_type == GROUP:
        if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, key):
            error = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        else:
            error = _started(broker.groups.start)
    elif key_type == TRANSACTION:
        if not context.allowed(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            error = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        else:
            error = _started(broker.transactions.start)
    elif key_type == SHARE and context.version >= SHARE_KEYS:
        error = _share_partition_error(key, context) or _started(broker.share_state.start)
    else:
        error = KafkaError(ErrorCode.INVALID_REQUEST, f"There is no coordinator of type {key_type} here.")
    if error is not None:
        return _Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.detail or error.code.name
        )
    host, port = context.session.advertised
    return _Coordinator(key=key, node_id=broker.node_id, host=host, port=port)


def _share_partition_error(key: str, context: Context) -> KafkaError | None:
    if not context.cluster_allowed(Operation.CLUSTER_ACTION):
        return KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    try:
        SharePartitionKey.parse(key)
    except ValueError as error:
        return KafkaError(ErrorCode.INVALID_REQUEST, str(error))
    return None


def _started(start: Callable[[], None]) -> KafkaError | None:
    try:
        start()
    except KafkaError as error:
        return error
    return None
