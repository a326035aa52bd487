"""ListTransactions: API 66."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Request, key=66, versions="0-2", flexible=0):
    """Asks a broker for the transactions it coordinates, narrowed by optional filters.

    - v1: DurationFilter
    - v2: TransactionalIdPattern
    """

    state_filters: tuple[str, ...] = array(string, "Names of the states to list, such as Ongoing; empty = every state.")
    producer_id_filters: tuple[int, ...] = array(int64, "Producer ids to list; empty = every producer.")
    duration_filter: int = int64(
        "Only transactions open for longer than this many ms; negative = all.", since=1, default=-1
    )
    transactional_id_pattern: str | None = string(
        "Regex (RE2) a transactional id must match; null or empty = any.", since=2, nullable=True
    )


class ListTransactionsResponse(Response, key=66, versions="0-2", flexible=0):
    """The transactions one broker coordinates that passed the filters."""

    class TransactionState(Struct):
        transactional_id: str = string("Transactional id of the transaction listed.")
        producer_id: int = int64("Producer id that the transactional id now maps to.")
        transaction_state: str = string(
            "State by name: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit ..."
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    unknown_state_filters: tuple[str, ...] = array(string, "State names of the request that the broker does not know.")
    transaction_states: list[TransactionState] = array(TransactionState, "The transactions that passed the filters.")
