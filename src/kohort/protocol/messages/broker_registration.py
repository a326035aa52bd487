"""BrokerRegistration: API 62."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, int64, string, uint16, uuid_


class BrokerRegistrationRequest(Request, key=62, versions="0-4", flexible=0):
    """A starting broker announces itself to the active controller, to be given a broker epoch.

    - v1: IsMigratingZkBroker
    - v2: LogDirs
    - v3: PreviousBrokerEpoch
    - v4: same fields; Features may hold entries with a minimum level of 0
    """

    class Listener(Struct):
        name: str = string("Name of the listener, such as PLAINTEXT or EXTERNAL.")
        host: str = string("Host name or address the listener advertises.")
        port: int = uint16("TCP port the listener advertises.")
        security_protocol: int = int16("How to talk to it: 0 = PLAINTEXT, 1 = SSL, 2 = SASL_PLAINTEXT, 3 = SASL_SSL.")

    class Feature(Struct):
        """The range of levels the broker supports of one feature."""

        name: str = string("Name of the feature, such as metadata.version.")
        min_supported_version: int = int16("Lowest level of the feature that the broker can run.")
        max_supported_version: int = int16("Highest level of the feature that the broker can run.")

    broker_id: int = int32("Id of the broker that registers.")
    cluster_id: str = string("Cluster the broker believes it is part of; must match the controller's.")
    incarnation_id: UUID = uuid_("Random id of this run of the process, to tell a restart from a retry.")
    listeners: list[Listener] = array(Listener, "Endpoints at which clients and brokers reach this broker.")
    features: list[Feature] = array(
        Feature, "Feature levels the broker can run; v0 to v3 leave out those with minimum 0."
    )
    rack: str | None = string("Rack the broker stands in; null if none is configured.", nullable=True, default="")
    is_migrating_zk_broker: bool = boolean("True for a ZooKeeper broker that is set up to migrate to KRaft.", since=1)
    log_dirs: tuple[UUID, ...] = array(
        uuid_, "Ids of the broker's log directories that are online.", since=2, ignorable=True
    )
    previous_broker_epoch: int = int64(
        "Broker epoch before the last clean shutdown; -1 = first start or unclean.", since=3, default=-1, ignorable=True
    )


class BrokerRegistrationResponse(Response, key=62, versions="0-4", flexible=0):
    """Tells the broker whether it is registered, and under which broker epoch."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    broker_epoch: int = int64("Epoch to use in this run's later requests; -1 if registration failed.", default=-1)
