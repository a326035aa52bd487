"""ListConfigResources: configuration resources by type and name (KIP-1142)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kohort.broker.admin.loggers import BROKER_LOGGER
from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.topics import ConfigResource
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

SERVED: Final = Served(ListConfigResourcesRequest, versions=(0, 1))

WITH_TYPES: Final = 1
"""First version that asks for types of resources; before, there were only metrics subscriptions."""

TYPES: Final = (
    ConfigResource.GROUP, ConfigResource.CLIENT_METRICS, BROKER_LOGGER, ConfigResource.BROKER, ConfigResource.TOPIC,
)  # fmt: skip


def handle(request: ListConfigResourcesRequest, context: Context) -> Slices[ListConfigResourcesResponse]:
    """Lists topics, the broker, and the groups and metrics subscriptions that have keys set."""
    if not context.cluster_allowed(Operation.DESCRIBE_CONFIGS):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.version < WITH_TYPES:
        wanted = {int(ConfigResource.CLIENT_METRICS)}
    else:
        wanted = set(request.resource_types) or {int(kind) for kind in TYPES}
    if not wanted <= set(TYPES):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    found = yield from in_slices(
        lambda each: ListConfigResourcesResponse.ConfigResource(resource_name=each[1], resource_type=each[0]),
        [(kind, name) for kind in TYPES if kind in wanted for name in _names(kind, context)],
    )
    return ListConfigResourcesResponse(config_resources=found)


def _names(kind: int, context: Context) -> Iterator[str]:
    match kind:
        case ConfigResource.TOPIC:
            yield from (topic.name for topic in context.broker.topics)
        case ConfigResource.GROUP | ConfigResource.CLIENT_METRICS:
            yield from context.broker.topics.config_names(ConfigResource(kind))
        case _:
            yield str(context.broker.node_id)
