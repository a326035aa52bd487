"""Members of a share group with librdkafka, a thread each: the seconds from the first record until all are there,
and the last of them accepted.

python -m benchmarks.groups.programs.librdkafka_shares BOOTSTRAP GROUP MODE MEMBERS TOPIC RECORDS TOPIC RECORDS

The first topic and number are to warm up with. Python holds its lock while it makes messages, so that four members are
hardly quicker than one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from confluent_kafka import ShareConsumer

POLL = 0.1


class Shares:
    """What the members of one group do together."""

    def __init__(self, bootstrap: str, group: str, mode: str, topic: str, records: int) -> None:
        self.config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": mode,
            "log_level": 3,
        }
        self.explicit = mode == "explicit"
        self.topic = topic
        self.records = records
        self.accepted = 0
        self.counting = threading.Lock()
        self.first: float | None = None
        self.last = 0.0

    def seconds(self, members: int) -> float:
        """Run as many until all is accepted."""
        threads = [threading.Thread(target=self.member) for _ in range(members)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.first is None or self.accepted < self.records:
            raise RuntimeError(f"members ended after {self.accepted} records of {self.records}")
        return self.last - self.first

    def member(self) -> None:
        """Take and accept records."""
        with ShareConsumer(self.config) as consumer:
            consumer.subscribe([self.topic])
            while self.accepted < self.records:
                messages = list(consumer.poll(POLL))
                if not messages:
                    continue
                if self.first is None:
                    self.first = time.perf_counter()
                if messages[0].error():
                    raise RuntimeError(messages[0].error())
                if self.explicit:
                    for message in messages:
                        consumer.acknowledge(message)
                with self.counting:
                    self.accepted += len(messages)
                if self.accepted >= self.records:
                    consumer.commit_sync(20.0)
                    self.last = time.perf_counter()


def main() -> None:
    bootstrap, group, mode, members, warm_topic, warm_records, topic, records = sys.argv[1:]
    Shares(bootstrap, group + "-warm-up", mode, warm_topic, int(warm_records)).seconds(int(members))
    seconds = Shares(bootstrap, group, mode, topic, int(records)).seconds(int(members))
    print(json.dumps({"seconds": seconds}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
