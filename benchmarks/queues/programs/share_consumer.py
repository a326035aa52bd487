"""A share consumer of librdkafka that does the same work in plain Python, row by row.

    python -m benchmarks.queues.programs.share_consumer SERVERS NAME

It reads the topic NAME-rows and writes NAME-done, until it is killed. As the queue
does, it acknowledges what is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time

from confluent_kafka import Producer, ShareConsumer


def main(servers: str, name: str, *_: str) -> None:
    """Works on rows."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 0, "log_level": 3})
    config = {"bootstrap.servers": servers, "group.id": name, "share.acknowledgement.mode": "explicit", "log_level": 3}
    with ShareConsumer(config) as consumer:
        consumer.subscribe([f"{name}-rows"])
        while True:
            messages = list(consumer.poll(0.5))
            for message in messages:
                row = json.loads(message.value())
                if row["ms"]:
                    time.sleep(row["ms"] / 1000)
                made = {
                    "id": row["id"],
                    "sent": row["sent"],
                    "hash": hashlib.sha256(row["text"].encode()).hexdigest(),
                    "worker": os.getpid(),
                }
                producer.produce(f"{name}-done", json.dumps(made).encode(), str(row["id"]).encode())
            producer.flush()
            for message in messages:
                consumer.acknowledge(message)
            if messages:
                consumer.commit_sync(20.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
