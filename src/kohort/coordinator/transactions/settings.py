"""Settings of the transaction coordinator, by Kafka's keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Times in ms, with Kafka's defaults.

    Attributes:
        transaction_max_timeout_ms: longest transaction timeout that a producer may ask for.
        transactional_id_expiration_ms: how long an unused transactional id is kept.
        transaction_abort_timed_out_transaction_cleanup_interval_ms: how often to abort transactions that timed out; and
            when to ask again for markers that are still pending.
        transaction_remove_expired_transaction_cleanup_interval_ms: how often to remove expired transactional ids.
    """

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
