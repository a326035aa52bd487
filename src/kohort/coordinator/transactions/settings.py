"""Settings of the transaction coordinator, by Kafka's keys."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TransactionSettings"]


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """What a user may set; times in ms, defaults as Kafka's.

    Attributes:
        transaction_max_timeout_ms: longest time that a producer may ask for its transactions.
        transactional_id_expiration_ms: how long an id is remembered that nobody uses.
        transaction_abort_timed_out_transaction_cleanup_interval_ms: how often to look for transactions that take too
            long; and how long markers may lack until they are asked for again.
        transaction_remove_expired_transaction_cleanup_interval_ms: how often to look for ids to forget.
    """

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
