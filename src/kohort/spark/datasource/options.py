"""The options of reads and writes, checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.client.config import ClientConfig

EARLIEST: Final = -2
LATEST: Final = -1

_READ_OPTIONS: Final = {
    "assign", "endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp", "failondataloss", "groupidprefix",
    "includeheaders", "isolation", "maxrecordsperpartition", "minpartitions", "path", "servers", "startingoffsets",
    "startingoffsetsbytimestamp", "startingtimestamp", "subscribe", "subscribepattern", "topic",
}  # fmt: skip
STREAM_OPTIONS: Final = frozenset({"groupid", "maxoffsetspertrigger"})
"""What only a stream has; see `StreamOptions`."""

_WRITE_OPTIONS: Final = {"path", "servers", "topic"}
_SPELLING: Final = {"subscribepattern": "subscribePattern", "path": "path (the argument of load(…))"}


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a range begins or ends.

    Attributes:
        offset: `EARLIEST`, `LATEST`, or None if another attribute is set.
        time: at the first record at or after this time, in ms since 1970.
        offsets, times: an offset or time by topic and partition.
    """

    offset: int | None = None
    time: int | None = None
    offsets: Mapping[str, Mapping[int, int]] | None = None
    times: Mapping[str, Mapping[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is read.

    Attributes:
        config: option "servers" (or "kafka.bootstrap.servers"), and others with Kafka's names after "kafka.".
        topics: "topic" or "subscribe": names separated by commas.
        pattern: "subscribePattern": a regular expression (Python's) that matches whole names.
        assigned: "assign": JSON such as {"flights": [0, 1]}.
        start: "startingOffsets" ("earliest", "latest" or JSON such as {"flights": {"0": 23, "1": -2}}, where -2 is
            earliest and -1 latest), "startingTimestamp" (ms since 1970), "startingOffsetsByTimestamp" (JSON).
        end: "endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", the same; exclusive.
        min_partitions: "minPartitions": the least number of Spark partitions, if there are enough records.
        max_records: "maxRecordsPerPartition".
        headers: "includeHeaders".
        committed: "isolation" (or "kafka.isolation.level"): "read_committed" (default) or "read_uncommitted".
        fail_on_data_loss: "failOnDataLoss": whether missing offsets are an error; otherwise what is there is read.
    """

    config: ClientConfig
    topics: tuple[str, ...]
    pattern: str | None
    assigned: Mapping[str, tuple[int, ...]] | None
    start: Bound
    end: Bound
    min_partitions: int
    max_records: int | None
    headers: bool
    committed: bool
    fail_on_data_loss: bool

    @classmethod
    def of(cls, given: Mapping[str, str]) -> ReadOptions:
        """Parses options.

        Raises:
            ValueError: an option is unknown, or a value is invalid; says what is allowed.
        """
        options = {name.lower(): value for name, value in given.items()}
        config, others = _config(options, _READ_OPTIONS)
        names = options.get("topic") or options.get("subscribe") or options.get("path") or ""
        topics = tuple(dict.fromkeys(each.strip() for each in names.split(",") if each.strip()))
        assigned = options.get("assign")
        pattern = options.get("subscribepattern")
        given_names = [
            name for name in ("topic", "subscribe", "path", "subscribepattern", "assign") if options.get(name)
        ]
        if len(given_names) > 1:
            names = ", ".join(_SPELLING.get(name, name) for name in given_names)
            raise ValueError(f"the options {names} each say what to read: leave one of them")
        if not (topics or assigned or pattern):
            raise ValueError('say what to read: option("topic", "…"), or one of "subscribePattern" and "assign"')
        isolation = options.get("isolation") or others.get("isolation.level") or "read_committed"
        if isolation not in ("read_committed", "read_uncommitted"):
            raise ValueError(f'isolation={isolation!r} should be "read_committed" or "read_uncommitted"')
        most = options.get("maxrecordsperpartition")
        return cls(
            config=config,
            topics=topics,
            pattern=pattern,
            assigned=None if assigned is None else _assigned(assigned),
            start=_bound(options, "starting", EARLIEST),
            end=_bound(options, "ending", LATEST),
            min_partitions=whole_number("minPartitions", options.get("minpartitions", "1")),
            max_records=None if most is None else whole_number("maxRecordsPerPartition", most),
            headers=_flag("includeHeaders", options.get("includeheaders", "false")),
            committed=isolation == "read_committed",
            fail_on_data_loss=_flag("failOnDataLoss", options.get("failondataloss", "true")),
        )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where rows are written. Headers are written if there is a column "headers".

    Attributes:
        config: as for `ReadOptions`.
        topic: "topic": the topic of all rows; without it, the column "topic" names that of each row.
        producer: settings of the producer, from options with Kafka's names such as "kafka.compression.type".
    """

    config: ClientConfig
    topic: str | None
    producer: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> WriteOptions:
        """Parses options. Raises as `ReadOptions.of`."""
        options = {name.lower(): value for name, value in given.items()}
        config, others = _config(options, _WRITE_OPTIONS)
        unknown = others.keys() - _PRODUCER_SETTINGS.keys()
        if unknown:
            names = ", ".join(f"kafka.{each}" for each in _PRODUCER_SETTINGS)
            raise ValueError(f"option kafka.{min(unknown)} means nothing to a writer; there are {names}")
        producer = {key.replace(".", "_"): _producer_setting(key, value) for key, value in others.items()}
        return cls(config, options.get("topic") or options.get("path"), producer)


_PRODUCER_SETTINGS: Final[dict[str, Callable[[str], Any]]] = {
    "acks": str,
    "batch.size": int,
    "buffer.memory": int,
    "compression.type": str,
    "delivery.timeout.ms": int,
    "linger.ms": float,
    "max.block.ms": int,
    "max.request.size": int,
}


def _producer_setting(key: str, value: str) -> Any:
    try:
        return _PRODUCER_SETTINGS[key](value)
    except ValueError:
        raise ValueError(f"option kafka.{key}={value!r} should be a number") from None


def _config(options: Mapping[str, str], known: set[str]) -> tuple[ClientConfig, dict[str, str]]:
    unknown = {name for name in options if name not in known and not name.startswith("kafka.")}
    if unknown:
        name, names = min(unknown), ", ".join(sorted(known - {"path"}))
        why = "isn't known"
        if name in STREAM_OPTIONS:
            why = "is for readStream only"
        elif name in _READ_OPTIONS:
            why = "is for reading only"
        raise ValueError(f"option {name!r} {why}; there are {names}, and kafka.…")
    servers = options.get("servers") or options.get("kafka.bootstrap.servers")
    if not servers:
        raise ValueError('say where the cluster is: option("servers", "HOST:PORT")')
    properties = {
        name.removeprefix("kafka."): value
        for name, value in options.items()
        if name.startswith("kafka.") and name != "kafka.bootstrap.servers"
    }
    return ClientConfig.from_properties(properties, "the options after kafka.", bootstrap_servers=servers)


def _bound(options: Mapping[str, str], which: str, default: int) -> Bound:
    # The first of these that is given counts, as in Spark's connector.
    if (time := options.get(f"{which}timestamp")) is not None:
        return Bound(time=whole_number(f"{which}Timestamp", time, least=0))
    if (times := options.get(f"{which}offsetsbytimestamp")) is not None:
        return Bound(times=_by_partition(f"{which}OffsetsByTimestamp", times, 0))
    offsets = options.get(f"{which}offsets")
    if offsets is None:
        return Bound(offset=default)
    if offsets.strip().lower() in ("earliest", "latest"):
        return Bound(offset=EARLIEST if offsets.strip().lower() == "earliest" else LATEST)
    return Bound(offsets=_by_partition(f"{which}Offsets", offsets, EARLIEST))


def _by_partition(name: str, text: str, least: int) -> dict[str, dict[int, int]]:
    wrong = ValueError(f'{name}={text!r} should be JSON such as {{"flights": {{"0": 23, "1": 42}}}}')
    try:
        found = {
            str(topic): {int(number): int(offset) for number, offset in partitions.items()}
            for topic, partitions in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise wrong from None
    if any(offset < least for partitions in found.values() for offset in partitions.values()):
        raise wrong
    return found


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    try:
        return {str(topic): tuple(dict.fromkeys(map(int, numbers))) for topic, numbers in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f'assign={text!r} should be JSON such as {{"flights": [0, 1]}}') from None


def whole_number(name: str, text: str, least: int = 1) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name}={text!r} should be a whole number, {least} at least")
    return number


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f'{name}={text!r} should be "true" or "false"')
    return text.lower() == "true"
