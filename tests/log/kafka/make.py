"""How the files here were made: by librdkafka and Apache Kafka 4.2, with one broker on 127.0.0.1:9092 whose
`log.cleaner.backoff.ms` was 500. `plain-0` and `compacted-0` were taken after a clean shutdown; `original-0` are the
segments that the cleaner had replaced (renamed to `.deleted`, but for the first, which it had replaced twice) and the
one after them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

SERVERS = {"bootstrap.servers": "127.0.0.1:9092", "linger.ms": 50}
START = 1_700_000_000_000


def create(name: str, config: dict[str, str]) -> None:
    for future in AdminClient(SERVERS).create_topics([NewTopic(name, 1, 1, config=config)]).values():
        future.result()


def transactional(name: str) -> Producer:
    producer = Producer({**SERVERS, "transactional.id": name, "transaction.timeout.ms": 600_000})
    producer.init_transactions()
    return producer


def pause() -> None:
    """Longer than segment.ms: the next batch goes into a new segment."""
    time.sleep(0.25)


def plain(times: Iterator[int]) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({**SERVERS, "compression.type": codec, "enable.idempotence": codec != "none"})
        for number in range(8):
            producer.produce(
                "plain",
                key=f"{codec}-{number}",
                value=f"value {number} of {codec} " * 6,
                timestamp=next(times),
                headers={"codec": codec} if number == 3 else None,
            )
        producer.flush()
        pause()
    for k in range(3):
        producer = transactional(f"tx{k}")
        for turn in range(3):
            producer.begin_transaction()
            for number in range(3):
                producer.produce("plain", key=f"t{k}-{turn}-{number}", value="in a transaction", timestamp=next(times))
            producer.flush()
            if (turn + k) % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        pause()
    ongoing = transactional("open")
    ongoing.begin_transaction()
    ongoing.produce("plain", key="undecided", value="in an ongoing transaction", timestamp=next(times))
    ongoing.flush()


def compacted() -> None:
    producer = Producer({**SERVERS, "enable.idempotence": True})
    for turn in range(6):
        for number in range(6):
            value = None if number == 2 and turn > 2 else f"round {turn} record {number}"
            producer.produce("compacted", key=f"k{number % 4}", value=value, timestamp=START + turn * 10_000 + number)
        producer.flush()
        pause()
    writer = transactional("ctx")
    for turn in range(2):
        writer.begin_transaction()
        for number in range(3):
            writer.produce("compacted", key=f"x{number}", value=f"tx {turn}", timestamp=START + 100_000 + turn)
        writer.flush()
        (writer.commit_transaction if turn else writer.abort_transaction)()
        pause()
    producer.produce("compacted", key="last", value="1", timestamp=START + 200_000)
    producer.flush()
    time.sleep(8)  # for the cleaner


if __name__ == "__main__":
    create("plain", {"segment.ms": "100", "retention.ms": "-1"})
    policy = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "86400000"}
    create("compacted", {"segment.ms": "100", **policy})
    plain(iter(range(START, 2 * START, 1000)))
    compacted()
