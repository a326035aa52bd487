"""A consumer's own settings, named as Kafka's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kohort.client.consuming.consumed_partitions import EARLIEST, LATEST
from kohort.client.errors import ConfigError

_DURATION: Final = re.compile(r"(-)?P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """Where to begin when there's no offset (`auto_offset_reset`).

    Attributes:
        to: `EARLIEST` or `LATEST`; None to raise `NoOffsetError`.
        back_ms: with a duration (KIP-1106): so long before now.
    """

    to: int | None
    back_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> ResetPolicy:
        """Parses "earliest", "latest", "none" or "by_duration:" with an ISO 8601 duration, as PT1H or P1DT12H."""
        match text.split(":", 1):
            case ["earliest"]:
                return cls(EARLIEST)
            case ["latest"]:
                return cls(LATEST)
            case ["none"]:
                return cls(None)
            case ["by_duration", duration] if (ms := _duration_ms(duration)) is not None:
                return cls(LATEST, ms)
        raise ConfigError(
            f'auto_offset_reset={text!r} should be "earliest", "latest", "none", or "by_duration:" and an ISO 8601 '
            'duration, such as "by_duration:PT1H"'
        )

    def resolve(self, now_ms: int) -> int | None:
        """Returns the time (ms since 1970), `EARLIEST` or `LATEST` to look up, where `now_ms` is ms since 1970."""
        return self.to if self.back_ms is None else max(0, now_ms - self.back_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How records are fetched; sizes in bytes, times in ms. See `Consumer`."""

    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    queued_max_bytes: int = 64 * 1024 * 1024
    check_crcs: bool = True

    def __post_init__(self) -> None:
        if self.isolation_level not in ("read_uncommitted", "read_committed"):
            raise ConfigError(
                f'isolation_level={self.isolation_level!r} should be "read_uncommitted" or "read_committed"'
            )
        for name, least in (
            ("fetch_min_bytes", 0),
            ("fetch_max_wait_ms", 0),
            ("fetch_max_bytes", 1),
            ("max_partition_fetch_bytes", 1),
            ("queued_max_bytes", 1),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
                raise ConfigError(f"{name}={value!r} should be a whole number from {least} to {2**31 - 1}")

    @property
    def committed(self) -> bool:
        """Whether records of open and aborted transactions are left out."""
        return self.isolation_level == "read_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """A consumer's settings beside those of its membership; times in ms. See `Consumer`.

    `auto_commit_interval_ms` is None without auto commit.
    """

    fetch: FetchSettings
    auto_offset_reset: ResetPolicy
    auto_commit_interval_ms: int | None
    max_poll_interval_ms: int
    default_api_timeout_ms: int
    allow_auto_create_topics: bool


def _duration_ms(text: str) -> int | None:
    match = _DURATION.fullmatch(text)
    if match is None or match[1] or not any(match.groups()[1:]):
        return None
    days, hours, minutes = (int(part or 0) for part in match.groups()[1:4])
    return round((((days * 24 + hours) * 60 + minutes) * 60 + float(match[5] or 0)) * 1000)
