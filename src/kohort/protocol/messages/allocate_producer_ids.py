"""AllocateProducerIds: API 67."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import int16, int32, int64


class AllocateProducerIdsRequest(Request, key=67, versions="0", flexible=0):
    """A broker asks the controller for a block of producer ids to hand out."""

    broker_id: int = int32("Id of the broker that wants the block.")
    broker_epoch: int = int64("That broker's registration epoch; a stale one is refused.", default=-1)


class AllocateProducerIdsResponse(Response, key=67, versions="0", flexible=0):
    """The block of producer ids that the broker may now hand out."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    producer_id_start: int = int64("First producer id of the block.")
    producer_id_len: int = int32("How many consecutive ids the block holds.")
