"""A share consumer's own settings, named as Kafka's."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kohort.client.errors import ConfigError


class AcknowledgementMode(enum.StrEnum):
    """Who says what became of a record."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"


class AcquireMode(enum.StrEnum):
    """How `max_poll_records` acts (KIP-1206)."""

    BATCH_OPTIMIZED = "batch_optimized"
    RECORD_LIMIT = "record_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSettings:
    """What `ShareConsumer` is told; sizes in bytes, times in ms.

    Raises:
        ConfigError: a value that can't be: names it, and what can be.
    """

    group_id: str
    share_acknowledgement_mode: str = AcknowledgementMode.IMPLICIT
    share_acquire_mode: str = AcquireMode.BATCH_OPTIMIZED
    max_poll_records: int = 500
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    lock_renewal_ms: int = 300_000
    acknowledge_linger_ms: int = 100
    check_crcs: bool = True
    default_api_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigError("group_id shouldn't be empty: a share consumer is a member of a share group")
        for name, kinds in (
            ("share_acknowledgement_mode", AcknowledgementMode),
            ("share_acquire_mode", AcquireMode),
        ):
            value, allowed = getattr(self, name), [each.value for each in kinds]
            if value not in allowed:
                raise ConfigError(f"{name}={value!r} should be one of {', '.join(allowed)}")
        for name, least in (
            ("max_poll_records", 1),
            ("fetch_min_bytes", 0),
            ("fetch_max_wait_ms", 0),
            ("fetch_max_bytes", 1),
            ("lock_renewal_ms", 0),
            ("acknowledge_linger_ms", 0),
            ("default_api_timeout_ms", 1),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
                raise ConfigError(f"{name}={value!r} should be a whole number from {least} to {2**31 - 1}")

    @property
    def implicit(self) -> bool:
        """Whether a delivered record is accepted when the user asks for the next."""
        return self.share_acknowledgement_mode == AcknowledgementMode.IMPLICIT

    @property
    def strict(self) -> bool:
        """Whether `max_poll_records` is a limit, and nothing is acquired ahead."""
        return self.share_acquire_mode == AcquireMode.RECORD_LIMIT
