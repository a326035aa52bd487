"""AddOffsetsToTxn: API 25."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, key=25, versions="0-4", flexible=3):
    """Adds a group's offsets partition to a transaction, before its offsets are committed in it.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: same layout; may answer PRODUCER_FENCED
    - v3: flexible
    - v4: same layout; may answer TRANSACTION_ABORTABLE (KIP-890)
    """

    transactional_id: str = string("The transactional id the producer was configured with.")
    producer_id: int = int64("Producer id the transactional id has at present.")
    producer_epoch: int = int16("Epoch of that producer id; an older one is fenced.")
    group_id: str = string("Group whose offsets the transaction will commit.")


class AddOffsetsToTxnResponse(Response, key=25, versions="0-4", flexible=3):
    """Says whether the group's offsets partition joined the transaction.

    - v3: flexible
    """

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
