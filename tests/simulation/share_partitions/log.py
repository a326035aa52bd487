"""The log of the partition: batches, of which some belong to aborted transactions or are compacted away."""

from __future__ import annotations

from random import Random


class Log:
    def __init__(self, rng: Random, transactions: bool) -> None:
        self.rng = rng
        self.transactions = transactions
        self.batches: list[tuple[int, int]] = []
        self.start = 0
        self.end = 0
        self.aborted: set[int] = set()
        self.records: set[int] = set()

    def produce(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            size = self.rng.choice([1, 2, 5, 8])
            offsets = range(self.end, self.end + size)
            self.batches.append((self.end, self.end + size - 1))
            self.end += size
            self.records |= set(offsets)
            if self.transactions and self.rng.random() < 0.25:
                self.aborted |= set(offsets)

    def compact(self) -> None:
        """A batch is gone, as all of its keys were written again; never the last one."""
        if len(self.batches) > 1:
            first, last = self.batches.pop(self.rng.randrange(len(self.batches) - 1))
            self.records -= set(range(first, last + 1))

    def cut(self, offset: int) -> None:
        """Retention deletes what is before an offset."""
        self.start = max(self.start, offset)
        self.batches = [batch for batch in self.batches if batch[1] >= self.start]
        self.records = {offset for offset in self.records if offset >= self.start}

    def read(self, offset: int, batches: int) -> list[tuple[int, int]]:
        return [batch for batch in self.batches if batch[1] >= offset][:batches]

    def aborted_of(self, batches: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [batch for batch in batches if batch[0] in self.aborted]
