"""EndTxn: API 26."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import boolean, int16, int32, int64, string


class EndTxnRequest(Request, key=26, versions="0-5", flexible=3):
    """A producer commits or aborts its open transaction.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: same layout; may answer PRODUCER_FENCED
    - v3: flexible
    - v4: same layout; may answer TRANSACTION_ABORTABLE (KIP-890)
    - v5: same layout; transactions V2: each ended transaction bumps the producer epoch (KIP-890)
    """

    transactional_id: str = string("The transactional id the producer was configured with.")
    producer_id: int = int64("Producer id the transactional id has at present.")
    producer_epoch: int = int16("Epoch of that producer id; an older one is fenced.")
    committed: bool = boolean("True = commit the transaction, false = abort it.")


class EndTxnResponse(Response, key=26, versions="0-5", flexible=3):
    """Says that the end of a transaction is decided, and what to produce with next.

    - v3: flexible
    - v5: ProducerId and ProducerEpoch for the next transaction
    """

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    producer_id: int = int64(
        "Id for the next transaction, a new one if epochs ran out; -1 on an error.", since=5, default=-1, ignorable=True
    )
    producer_epoch: int = int16(
        "Epoch for the next transaction, already bumped; -1 on an error.", since=5, default=-1, ignorable=True
    )
