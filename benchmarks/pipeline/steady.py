"""Sends flights at a steady rate; when each was sent is printed as JSON, in ms since 1970, a number a chunk.

Usage: python -m benchmarks.pipeline.steady SERVERS TOPIC FILE (the flights, an Arrow file) RATE SECONDS
"""

from __future__ import annotations

import json
import sys
import time

import pyarrow as pa
from confluent_kafka import Producer

CHUNK = 50
"""Flights that are sent together, with the same time stamp."""


def main(servers: str, topic: str, file: str, rate: float, seconds: float) -> None:
    with pa.memory_map(file) as source:
        flights = pa.ipc.open_file(source).read_all().slice(0, int(rate * seconds) // CHUNK * CHUNK)
    keys, values = flights["key"].to_pylist(), flights["value"].to_pylist()
    producer = Producer({
        "bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 2, "partitioner": "murmur2_random",
        "log_level": 0,
    })  # fmt: skip
    began = time.monotonic()
    sent = []
    for start in range(0, len(keys), CHUNK):
        time.sleep(max(0.0, began + start / rate - time.monotonic()))
        now = int(time.time() * 1000)
        for key, value in zip(keys[start : start + CHUNK], values[start : start + CHUNK], strict=True):
            producer.produce(topic, value, key, timestamp=now)
        sent.append(now)
        producer.poll(0)
    producer.flush()
    print(json.dumps(sent), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(float, sys.argv[4:]))
