"""ControllerRegistration: API 70."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, string, uint16, uuid_


class ControllerRegistrationRequest(Request, key=70, versions="0", flexible=0):
    """A controller announces its endpoints and feature levels to the active controller."""

    class Listener(Struct):
        name: str = string("Name of the listener, such as CONTROLLER.")
        host: str = string("Host name or address the listener advertises.")
        port: int = uint16("TCP port the listener advertises.")
        security_protocol: int = int16("How to talk to it: 0 = PLAINTEXT, 1 = SSL, 2 = SASL_PLAINTEXT, 3 = SASL_SSL.")

    class Feature(Struct):
        """The range of levels the controller supports of one feature."""

        name: str = string("Name of the feature, such as metadata.version.")
        min_supported_version: int = int16("Lowest level of the feature that the controller can run.")
        max_supported_version: int = int16("Highest level of the feature that the controller can run.")

    controller_id: int = int32("Node id of the controller that registers.")
    incarnation_id: UUID = uuid_("Random id of this run of the process.")
    zk_migration_ready: bool = boolean("True if it is configured to migrate a cluster from ZooKeeper.")
    listeners: list[Listener] = array(Listener, "Endpoints at which this controller is reached.")
    features: list[Feature] = array(Feature, "Feature levels the controller can run.")


class ControllerRegistrationResponse(Response, key=70, versions="0", flexible=0):
    """Tells the controller whether it is registered."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
