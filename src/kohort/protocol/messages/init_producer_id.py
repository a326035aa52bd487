"""InitProducerId: API 22."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import boolean, int16, int32, int64, string


class InitProducerIdRequest(Request, key=22, versions="0-6", flexible=2):
    """A producer gets its id and epoch, which fences earlier users of its transactional id.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    - v3: ProducerId and ProducerEpoch: a producer can go on after INVALID_PRODUCER_EPOCH
    - v4: same layout; may answer PRODUCER_FENCED
    - v5: same layout; may answer TRANSACTION_ABORTABLE (KIP-890)
    - v6: two-phase commit: Enable2Pc and KeepPreparedTxn (KIP-939); not stable yet
    """

    transactional_id: str | None = string(
        "The producer's transactional id; null = idempotent only.", nullable=True, default=""
    )
    transaction_timeout_ms: int = int32(
        "Idle transactions are aborted after this many ms; unused when not transactional."
    )
    producer_id: int = int64("Id the producer already holds and wants bumped; -1 = none yet.", since=3, default=-1)
    producer_epoch: int = int16(
        "Epoch the producer holds, which must be the last one known; -1 = none yet.", since=3, default=-1
    )
    enable2_pc: bool = boolean("Whether an outside coordinator decides; prepared transactions never time out.", since=6)
    keep_prepared_txn: bool = boolean(
        "Whether an open transaction is left open to be ended later, not aborted.", since=6
    )


class InitProducerIdResponse(Response, key=22, versions="0-6", flexible=2):
    """Hands a producer the id and epoch to put into its batches.

    - v2: flexible
    - v6: OngoingTxnProducerId and OngoingTxnProducerEpoch (KIP-939)
    """

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    error_code: int = int16("0, or the error that failed the whole request.")
    producer_id: int = int64("Id to produce with; -1 on an error.", default=-1)
    producer_epoch: int = int16("Epoch to produce with; it rises whenever the id is taken over.")
    ongoing_txn_producer_id: int = int64(
        "Id under which the kept transaction is open; -1 = none is open.", since=6, default=-1
    )
    ongoing_txn_producer_epoch: int = int16(
        "Epoch under which the kept transaction is open; -1 = none is open.", since=6, default=-1
    )
