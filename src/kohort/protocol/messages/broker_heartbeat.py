"""BrokerHeartbeat: API 63."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import array, boolean, int16, int32, int64, uuid_


class BrokerHeartbeatRequest(Request, key=63, versions="0-2", flexible=0):
    """A broker keeps its registration alive and asks the controller to be fenced, unfenced or shut down.

    - v1: OfflineLogDirs, a tagged field
    - v2: CordonedLogDirs
    """

    broker_id: int = int32("Id of the broker that reports.")
    broker_epoch: int = int64("Epoch it got when it registered; a stale one is refused.", default=-1)
    current_metadata_offset: int = int64("How far the broker has read the metadata log, as an offset.")
    want_fence: bool = boolean("True while the broker asks to stay fenced, for example as it starts.")
    want_shut_down: bool = boolean("True when the broker asks for a controlled shutdown.")
    offline_log_dirs: tuple[UUID, ...] = array(uuid_, "Ids of its log directories that have failed.", since=1, tag=0)
    cordoned_log_dirs: tuple[UUID, ...] | None = array(
        uuid_,
        "Ids of its directories closed to new replicas; null before its RECOVERY state.",
        since=2,
        nullable=True,
        ignorable=True,
        tag=1,
    )


class BrokerHeartbeatResponse(Response, key=63, versions="0-2", flexible=0):
    """The controller's answer to a heartbeat: the state in which it sees the broker."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    is_caught_up: bool = boolean("True once the broker has read at least as far as its own registration record.")
    is_fenced: bool = boolean("True while the controller keeps the broker out of leadership and ISRs.", default=True)
    should_shut_down: bool = boolean("True once its leaderships have moved and it may stop.")
