"""ListConfigResources: API 74."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Request, key=74, versions="0-1", flexible=0):
    """Asks which resources there are that can carry configuration.

    - v1: ResourceTypes; v0 lists client metrics subscriptions only
    """

    resource_types: tuple[int, ...] = array(
        int8, "Types to list: 2 topic, 4 broker, 8 logger, 16 client metrics, 32 group; none = all.", since=1
    )


class ListConfigResourcesResponse(Response, key=74, versions="0-1", flexible=0):
    """Names the resources that can carry configuration.

    - v1: resources have ResourceType; in v0 all are client metrics
    """

    class ConfigResource(Struct):
        """One resource, by type and name."""

        resource_name: str = string("Name of the resource within its type.")
        resource_type: int = int8(
            "2 = topic, 4 = broker, 8 = broker logger, 16 = client metrics, 32 = group.",
            since=1,
            default=16,
            ignorable=True,
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    config_resources: list[ConfigResource] = array(ConfigResource, "The resources found.")
