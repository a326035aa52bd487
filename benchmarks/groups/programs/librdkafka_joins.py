"""Members of a consumer group with librdkafka: the seconds from when the late ones begin to join until it's stable.

python -m benchmarks.groups.programs.librdkafka_joins BOOTSTRAP GROUP TOPIC PARTITIONS MEMBERS LATE REST

REST is the seconds that the others rest before.
"""

from __future__ import annotations

import json
import os
import sys
import time

from confluent_kafka import Consumer, TopicPartition

PATIENCE = 120.0
PAUSE = 0.001


def main() -> None:
    bootstrap, group, topic, partitions, members, late, rest = sys.argv[1:]
    consumers = [
        Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "enable.auto.commit": False,
                "log_level": 3,
            }
        )
        for _ in range(int(members))
    ]
    early = consumers[: int(members) - int(late)]
    if early:
        until_stable(early, early, topic, int(partitions))
        ends = time.monotonic() + float(rest)
        while time.monotonic() < ends:
            for consumer in early:
                consumer.poll(PAUSE)
    seconds = until_stable(consumers, consumers[len(early) :], topic, int(partitions))
    print(json.dumps({"seconds": seconds}), flush=True)
    os._exit(0)  # 200 that leave, one after the other


def until_stable(consumers: list[Consumer], joining: list[Consumer], topic: str, partitions: int) -> float:
    """Seconds until each partition has one owner, and none has two partitions more than another."""
    started = time.perf_counter()
    for consumer in joining:
        consumer.subscribe([topic])
    while True:
        owned: list[TopicPartition] = []
        sizes = []
        for consumer in consumers:
            if (message := consumer.poll(0)) is not None and message.error():
                raise RuntimeError(message.error())
            own = consumer.assignment()
            owned += own
            sizes.append(len(own))
        taken = time.perf_counter() - started
        if len(owned) == len(set(owned)) == partitions and max(sizes) - min(sizes) <= 1:
            return taken
        if taken > PATIENCE:
            raise TimeoutError(f"the group isn't stable: its members have {sizes} partitions")
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
