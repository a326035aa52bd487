"""Jobs for a work queue, and what must become of them: done at least once, dead letters of all that can't be.

A job that is acknowledged never comes again. That can be told of those that were acknowledged at a round's end: each
worker then does a job that was sent later, so whatever it had under way before is written, too.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from kohort.client import Admin
from kohort.client.errors import ClientError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.spark.letter_headers import PREFIX

from .committed import CommittedRecords
from .scenarios import APPLICATION, INSTANCES, Delivered

__all__ = ["MAX_DELIVERIES", "OUTCOME", "JobRecord", "JobResults", "Jobs", "Tally"]

MAX_DELIVERIES: Final = 4
OUTCOME: Final = (
    "CASE WHEN kind = 'bad' THEN 'reject' WHEN kind = 'hopeless' OR kind = 'again' AND _delivery_count = 1 "
    "THEN 'release' ELSE 'accept' END"
)
"""What becomes of a job, by its kind."""
_KINDS: Final = {"once": 85, "again": 6, "bad": 3, "hopeless": 3, "torn": 2, "empty": 1}
_DONE: Final = frozenset({"once", "again"})
_ENDINGS: Final = 120
"""So many small batches at most, until each worker had some of one."""
_AN_ENDING: Final = 200

_At = tuple[int, int]


class JobRecord(NamedTuple):
    """A job: torn and empty ones can't be read, bad ones are rejected, hopeless ones are released each time."""

    id: str
    kind: str

    @property
    def topic(self) -> str:
        """Of jobs."""
        return "jobs"

    @property
    def key(self) -> str:
        """Its identifier."""
        return self.id

    @property
    def value(self) -> bytes | None:
        """As JSON."""
        if self.kind == "empty":
            return None
        return b"{" if self.kind == "torn" else msgspec.json.encode(self._asdict())


class Jobs:
    """A work queue's jobs."""

    name = "jobs"
    inputs = ("jobs",)
    outputs = ("jobs-done", "jobs-dead")

    def __init__(self) -> None:
        self._made = 0
        self._results: JobResults | None = None

    def first(self) -> tuple[()]:
        """Nothing."""
        return ()

    def made_up(self, seed: int, number: int) -> list[JobRecord]:
        """Jobs of all kinds."""
        kinds = random.Random(seed).choices(list(_KINDS), list(_KINDS.values()), k=number)
        return [self._job(kind) for kind in kinds]

    def endings(self) -> Iterator[Sequence[JobRecord]]:
        """Some jobs after the others, until each worker has done one: what it had under way before is over then."""
        assert self._results is not None
        tally = self._results.tally
        acknowledged = tally.begin_ending()
        for _ in range(_ENDINGS):
            yield [self._job("once") for _ in range(_AN_ENDING)]
            if tally.seen.issuperset(INSTANCES):
                tally.forbid(acknowledged)
                return
        raise RuntimeError(f"of {_ENDINGS * _AN_ENDING} jobs only {sorted(tally.seen)} got some")

    def outcome(self, servers: str, partitions: int) -> JobResults:
        """Follow results and dead letters."""
        self._results = JobResults(servers, partitions)
        return self._results

    def _job(self, kind: str) -> JobRecord:
        self._made += 1
        return JobRecord(f"job-{self._made}", kind)


class Tally:
    """What was done, and what is dead, by partition and offset."""

    def __init__(self) -> None:
        self.done: Counter[_At] = Counter()
        self.dead: Counter[_At] = Counter()
        self._names: dict[_At, str] = {}
        self._workers: defaultdict[_At, set[str]] = defaultdict(set)
        self._before: frozenset[_At] = frozenset()
        self._forbidden: frozenset[_At] = frozenset()
        self._again: list[str] = []

    def add_result(self, at: _At, name: str, worker: str) -> None:
        """A worker has done a job."""
        self.done[at] += 1
        self._names[at] = name
        self._workers[at].add(worker)
        self._check(at, f"{worker} has done {name}")

    def add_letter(self, at: _At, why: str) -> None:
        """A job has a dead letter."""
        self.dead[at] += 1
        self._check(at, f"a dead letter, {why}")

    @property
    def seen(self) -> set[str]:
        """Workers that have done a job since the ending began."""
        return {name for at in self._workers.keys() - self._before for name in self._workers[at]}

    def begin_ending(self) -> frozenset[_At]:
        """All has come, and was acknowledged: which jobs these are."""
        self._before = frozenset({*self.done, *self.dead})
        return self._before

    def forbid(self, acknowledged: frozenset[_At]) -> None:
        """These may not come again."""
        self._forbidden = acknowledged

    def differences(self, delivered: Iterable[Delivered]) -> list[str]:
        """Jobs that weren't done, or have no letter; such as shouldn't be."""
        records = {(partition, offset): record for partition, offset, record in delivered}
        found = [*self._again]
        for at, record in records.items():
            assert isinstance(record, JobRecord)
            can_be = record.kind in _DONE
            if can_be and at in self.done and self._names[at] != record.id:
                found.append(f"{at} is {record}, and {self._names[at]} was done")
            for what, there, wanted in (("done", at in self.done, can_be), ("dead", at in self.dead, not can_be)):
                if there is not wanted:
                    found.append(f"{at}, {record} is {what}" if there else f"{at}, {record} isn't {what}")
        return found + [f"{at} was never sent" for at in (self.done.keys() | self.dead.keys()) - records.keys()]

    def _check(self, at: _At, what: str) -> None:
        if at in self._forbidden:
            self._again.append(f"{at} comes again after it was acknowledged: {what}")


class JobResults:
    """Results and dead letters, as they come."""

    def __init__(self, servers: str, partitions: int) -> None:
        self._servers = servers
        self._records = CommittedRecords(servers, Jobs.outputs, partitions)
        self.tally = Tally()

    def close(self) -> None:
        """Disconnect."""
        self._records.close()

    def read(self, seconds: float = 0.5) -> None:
        """Take what has come."""
        for message in self._records.take(seconds):
            if message.topic() == "jobs-dead":
                said = dict(message.headers() or ())
                partition, offset, why = (_text(said[f"{PREFIX}{name}"]) for name in ("partition", "offset", "message"))
                self.tally.add_letter((int(partition), int(offset)), why)
            else:
                row = json.loads(message.value() or b"")
                self.tally.add_result((row["place"], row["at"]), row["id"], row["worker"])

    def differences(self, delivered: Collection[Delivered]) -> list[str]:
        """What isn't as it should be; if all is, what isn't acknowledged yet."""
        return self.tally.differences(delivered) or asyncio.run(_unacknowledged(self._servers, delivered))

    def summary(self, delivered: Iterable[Delivered]) -> str:
        """What was compared."""
        done = self.tally.done
        twice = sum(1 for count in done.values() if count > 1)
        return f"{len(done):,} jobs done, {twice:,} of them more than once, {len(self.tally.dead):,} are dead letters"


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


async def _unacknowledged(servers: str, delivered: Iterable[Delivered]) -> list[str]:
    """Partitions whose jobs aren't all acknowledged."""
    partitions = {TopicPartition("jobs", each.partition) for each in delivered}
    try:
        async with Admin(servers) as admin:
            lags = await admin.group_offsets.lag(APPLICATION, partitions=partitions)
    except (KafkaError, ClientError) as error:
        return [f"the group doesn't say what is acknowledged: {error}"]
    return [
        f"{at}: {each.lag} jobs aren't acknowledged, {each.in_flight}"
        for at, each in lags.items()
        if at in partitions and each.lag != 0
    ]
