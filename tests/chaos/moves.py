"""Planned moves of tasks, step by step: from the coordinator's decision to the first epoch of the new owner."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from kohort.protocol.stored import OFFSETS_TOPIC, decode_key
from kohort.protocol.stored.streams_group_target_assignment_metadata import StreamsGroupTargetAssignmentMetadataKey
from kohort.spark.monitoring.journal_analysis import JournalAnalysis

__all__ = ["Move", "decisions", "planned_moves"]


@dataclass(frozen=True)
class Move:
    """A task that went from one instance to another that had a copy of it. Times are in s since 1970.

    Attributes:
        decided: the coordinator's log has the epoch in which the task moves.
        told: its old owner knows.
        released: its old owner has ended its epoch, and given it up.
        given: its new owner knows.
        restored: its new owner has restored what was left.
        began: the new owner's first epoch with it began.
        committed: that epoch was committed.
    """

    task: str
    decided: float
    told: float
    released: float
    given: float
    restored: float
    began: float
    committed: float

    @property
    def seconds(self) -> float:
        """From the decision until the first epoch began."""
        return self.began - self.decided


def decisions(servers: str, application: str) -> list[float]:
    """When the coordinator's log says that the group's assignment had a new epoch, in s since 1970, in order."""
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": "decisions", "enable.auto.commit": False,
        "enable.partition.eof": True,
    })  # fmt: skip
    found = []
    try:
        left = set(consumer.list_topics(OFFSETS_TOPIC, 60).topics[OFFSETS_TOPIC].partitions)
        consumer.assign([TopicPartition(OFFSETS_TOPIC, partition, OFFSET_BEGINNING) for partition in left])
        while left:
            for message in consumer.consume(1_000, 1.0):
                error, key = message.error(), message.key()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                elif error is not None:
                    raise KafkaException(error)
                elif isinstance(key, bytes):
                    _, fields = decode_key(OFFSETS_TOPIC, key)
                    if isinstance(fields, StreamsGroupTargetAssignmentMetadataKey) and fields.group_id == application:
                        found.append(message.timestamp()[1] / 1000)
    finally:
        consumer.close()
    return sorted(found)


def planned_moves(journals: JournalAnalysis, decided: Sequence[float], since: float, until: float) -> list[Move]:
    """The moves decided in that time, of tasks that had been copied to where they went and had an epoch there.

    Args:
        decided: as of `decisions`.
    """
    copies: dict[str, set[str]] = {}
    found = []
    for instance, now in journals.tasks():
        for task in copies.get(instance, set()).intersection(now.active):
            move = _move(task, instance, now.at, journals, decided)
            if move is not None and since <= move.decided < until:
                found.append(move)
        copies[instance] = {*now.standby, *now.warmup}
    return found


def _move(task: str, to: str, given: float, journals: JournalAnalysis, decided: Sequence[float]) -> Move | None:
    """The move that ended with the task's promotion; None if it had no owner, or had no epoch before it moved on."""
    owners = [(name, now.at) for name, now in journals.tasks() if now.at < given and task in now.active]
    if not owners:
        return None
    owner, had_it = owners[-1]
    old = [now for name, now in journals.tasks() if name == owner and had_it < now.at <= given]
    old = [now for now in old if task not in now.active]
    new = [now for name, now in journals.tasks() if name == to and now.at >= given]
    new = list(takewhile(lambda now: task in now.active, new))
    told = next((now.at for now in old), None)
    released = next((now.at for now in old if task not in now.closing), None)
    restored = next((now.at for now in new if task not in now.restoring), None)
    epochs = (done for name, done in journals.epochs() if name == to and done.at > given and task in done.tasks)
    first = next(epochs, None)
    if told is None or released is None or restored is None or first is None:
        return None
    place = bisect_right(decided, told)
    if not place:
        return None
    began = first.at - first.took_ms / 1000
    return Move(task, decided[place - 1], told, released, given, restored, began, first.at)
