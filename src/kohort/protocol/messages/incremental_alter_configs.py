"""IncrementalAlterConfigs: API 44."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class IncrementalAlterConfigsRequest(Request, key=44, versions="0-1", flexible=1):
    """Changes single settings of topics, brokers and the like, leaving their other settings.

    - v1: flexible
    """

    class Resource(Struct):
        class Config(Struct):
            name: str = string("Setting to change, such as retention.ms.")
            config_operation: int = int8("0 = set, 1 = delete, 2 = append to a list, 3 = subtract from a list.")
            value: str | None = string(
                "New value, or the list items to add or take away; null for a delete.", nullable=True, default=""
            )

        resource_type: int = int8("Kind: 2 = topic, 4 = broker, 8 = broker logger, 16 = client metrics, 32 = group.")
        resource_name: str = string("Topic, group or subscription name, or node id; empty = default for all brokers.")
        configs: list[Config] = array(Config, "Changes to make to this resource.")

    resources: list[Resource] = array(Resource, "Resources to reconfigure, each with its changes.")
    validate_only: bool = boolean("True to check the changes without applying them.")


class IncrementalAlterConfigsResponse(Response, key=44, versions="0-1", flexible=1):
    """Says for each resource whether its settings were changed.

    - v1: flexible
    """

    class ResourceResponse(Struct):
        error_code: int = int16("0, or why this resource was left unchanged.")
        error_message: str | None = string(
            "Why it failed, for people; null without an error.", nullable=True, default=""
        )
        resource_type: int = int8("Kind: 2 = topic, 4 = broker, 8 = broker logger, 16 = client metrics, 32 = group.")
        resource_name: str = string("Topic, group or subscription name, or node id; empty = default for all brokers.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    responses: list[ResourceResponse] = array(ResourceResponse, "One outcome per resource.")
