"""AlterConfigs: API 33."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class AlterConfigsRequest(Request, key=33, versions="0-2", flexible=2):
    """Replaces all dynamic settings of resources; what is left out returns to its default.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    """

    class Resource(Struct):
        class Config(Struct):
            name: str = string("Key of the setting, as in retention.ms.")
            value: str | None = string("Value to give it, as text; brokers refuse null.", nullable=True, default="")

        resource_type: int = int8("2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
        resource_name: str = string("Topic, group or metrics subscription name, or broker id in text.")
        configs: list[Config] = array(Config, "All settings the resource is to have; others are reset.")

    resources: list[Resource] = array(Resource, "Things to reconfigure, each with its full set of settings.")
    validate_only: bool = boolean("True = only check the settings, alter nothing.")


class AlterConfigsResponse(Response, key=33, versions="0-2", flexible=2):
    """Says for each resource whether its settings were replaced.

    - v2: flexible
    """

    class ResourceResponse(Struct):
        error_code: int = int16("0, or why this resource was left as it was.")
        error_message: str | None = string(
            "Why it was left as it was, for people; null on success.", nullable=True, default=""
        )
        resource_type: int = int8("2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
        resource_name: str = string("Topic, group or metrics subscription name, or broker id in text.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    responses: list[ResourceResponse] = array(ResourceResponse, "Outcomes, one per resource of the request.")
