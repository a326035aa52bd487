"""Committed offsets beside a model that is a list of what happened; and what a restart would make of the log."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kohort.protocol.errors import ErrorCode
from tests.coordinator.offsets.fakes import DAY, Log, fetch_all

GROUPS = ["g", "h"]
TOPICS = ["t", "u"]
PARTITIONS = [0, 1]
PRODUCERS = [7, 8]

Place = tuple[str, str, int]

groups = st.sampled_from(GROUPS)
topics = st.sampled_from(TOPICS)
partitions = st.sampled_from(PARTITIONS)
producers = st.sampled_from(PRODUCERS)


@dataclass
class Commit:
    """One commit that was written: by whom (None = outside a transaction), and whether it counts yet."""

    place: Place
    offset: int
    at: int
    producer: int | None
    counts: bool


class OffsetsModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.commits: list[Commit] = []  # in the order they were written
        self.now = 0
        self.next_offset = 0

    def _forget(self, doomed: set[Place]) -> None:
        self.commits = [commit for commit in self.commits if commit.place not in doomed]

    def _newest(self) -> dict[Place, Commit]:
        return {commit.place: commit for commit in self.commits if commit.counts}

    def _unstable(self) -> set[Place]:
        return {commit.place for commit in self.commits if not commit.counts}

    @rule(group=groups, topic=topics, partition=partitions)
    def commit(self, group: str, topic: str, partition: int) -> None:
        self.next_offset += 1
        assert self.log.commit(group, topic, partition, self.next_offset, now=self.now) == 0
        self.commits.append(Commit((group, topic, partition), self.next_offset, self.now, None, counts=True))

    @rule(group=groups, topic=topics, partition=partitions, producer=producers)
    def txn_commit(self, group: str, topic: str, partition: int, producer: int) -> None:
        self.next_offset += 1
        assert self.log.txn_commit(group, topic, partition, self.next_offset, producer, now=self.now) == 0
        self.commits.append(Commit((group, topic, partition), self.next_offset, self.now, producer, counts=False))

    @rule(producer=producers, commit=st.booleans())
    def marker(self, producer: int, commit: bool) -> None:
        self.log.marker(producer, commit)
        ended = [entry for entry in self.commits if entry.producer == producer and not entry.counts]
        for entry in ended:
            entry.counts = True
        if not commit:
            self.commits = [entry for entry in self.commits if entry not in ended]

    @rule(group=groups, topic=topics, partition=partitions)
    def delete(self, group: str, topic: str, partition: int) -> None:
        known = group in self.log.groups.known
        assert self.log.delete(group, topic, partition) == ([0, 0] if known else [ErrorCode.GROUP_ID_NOT_FOUND])
        self._forget({(group, topic, partition)})

    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        self.log.run(self.log.offsets.delete_topic(topic))
        self._forget({commit.place for commit in self.commits if commit.place[1] == topic})

    @rule(days=st.integers(0, 2))
    def expire(self, days: int) -> None:
        self.now += days * DAY
        self.log.run(self.log.offsets.expire(self.now))
        due = {place for place, commit in self._newest().items() if commit.at + DAY <= self.now}
        self._forget(due - self._unstable())

    @invariant()
    def offsets_are_those_of_the_model(self) -> None:
        newest, unstable = self._newest(), self._unstable()
        for group in GROUPS:
            found = fetch_all(self.log.offsets, group)
            assert found == {place[1:]: (0, commit.offset) for place, commit in newest.items() if place[0] == group}
            for topic in TOPICS:
                for partition in PARTITIONS:
                    error, _ = self.log.fetch(group, topic, partition, stable=True)
                    assert (error == ErrorCode.UNSTABLE_OFFSET_COMMIT) is ((group, topic, partition) in unstable)
        assert len(self.log.offsets) == len(newest)

    @invariant()
    def a_group_with_offsets_is_known(self) -> None:
        assert {commit.place[0] for commit in self.commits} <= self.log.groups.known

    @invariant()
    def a_restart_changes_nothing(self) -> None:
        restarted = self.log.restarted()
        for group in GROUPS:
            for stable in (False, True):
                live = fetch_all(self.log.offsets, group, stable=stable)
                assert fetch_all(restarted, group, stable=stable) == live


OffsetsModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestOffsets = OffsetsModel.TestCase
