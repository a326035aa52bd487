"""A producer's settings, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kohort.client.errors import ConfigError
from kohort.protocol.records.batch import Compression

Partitioner = Callable[[str, bytes | None, int], int]
"""A user's partitioner: (topic, key, number of partitions) to a partition."""

_MOST_IN_FLIGHT: Final = 5
"""A broker remembers the last five batches of a producer in a partition, so no more may be in flight."""

_ACKS: Final[dict[object, int]] = {"all": -1, "-1": -1, -1: -1, "0": 0, 0: 0, "1": 1, 1: 1}
_LEVELS: Final = {"gzip": range(1, 10), "zstd": range(1, 23)}
_PARTITIONERS: Final = ("murmur2", "murmur2_random", "consistent_random")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """Kafka's settings of a producer, with underscores; times are ms, sizes bytes. `Producer` explains them.

    Attributes:
        required_acks: `acks` as in a request.
        compression: the codec.
        largest_batch: bytes that a batch of several records may have.

    Raises:
        ConfigError: an invalid value, or two that don't go together.
    """

    acks: Literal["all", 0, 1] | str | int = "all"
    enable_idempotence: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    compression_type: str = "none"
    compression_level: int | None = None
    batch_size: int = 262_144
    linger_ms: float = 5
    max_request_size: int = 1_048_576
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    max_in_flight_requests_per_connection: int = 5
    partitioner: str | Partitioner = "murmur2"
    key_serializer: Callable[[Any], bytes | None] | None = None
    value_serializer: Callable[[Any], bytes | None] | None = None
    allow_auto_create_topics: bool = True

    required_acks: int = field(init=False)
    compression: Compression = field(init=False)
    largest_batch: int = field(init=False)

    def __post_init__(self) -> None:
        if self.acks not in _ACKS:
            raise ConfigError(f"acks is {self.acks!r}; it is 'all', 1 or 0")
        object.__setattr__(self, "required_acks", _ACKS[self.acks])
        object.__setattr__(self, "largest_batch", min(self.batch_size, self.max_request_size))
        try:
            object.__setattr__(self, "compression", Compression[self.compression_type.upper()])
        except (KeyError, AttributeError):
            names = ", ".join(codec.name.lower() for codec in Compression)
            raise ConfigError(f"compression_type is {self.compression_type!r}; it is one of {names}") from None
        if self.compression_level is not None and self.compression_level not in _LEVELS.get(self.compression_type, ()):
            raise ConfigError(f"compression_level {self.compression_level}: {self.compression_type} has no such level")
        for name, least in (
            ("batch_size", 1), ("max_request_size", 128), ("buffer_memory", 1), ("linger_ms", 0), ("max_block_ms", 0),
            ("delivery_timeout_ms", 1), ("max_in_flight_requests_per_connection", 1), ("transaction_timeout_ms", 1),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it is at least {least}")
        if isinstance(self.partitioner, str) and self.partitioner not in _PARTITIONERS:
            raise ConfigError(f"partitioner is {self.partitioner!r}; it is a callable or {', '.join(_PARTITIONERS)}")
        if self.transactional_id is not None:
            if not self.transactional_id:
                raise ConfigError("transactional_id is empty; leave it out for a producer without transactions")
            if not self.enable_idempotence:
                raise ConfigError("transactional_id needs enable_idempotence=True")
        if self.enable_idempotence:
            if self.required_acks != -1:
                raise ConfigError(f"acks={self.acks!r} can't be idempotent: acks='all', or enable_idempotence=False")
            if self.max_in_flight_requests_per_connection > _MOST_IN_FLIGHT:
                raise ConfigError(
                    f"max_in_flight_requests_per_connection is {self.max_in_flight_requests_per_connection}; "
                    f"with enable_idempotence it is at most {_MOST_IN_FLIGHT}"
                )
