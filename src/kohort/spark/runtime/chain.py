"""Chains: a subtopology and those that merge what it makes, which go through epochs together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kohort.client.types import TopicPartition
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan, TopicOutput
from kohort.streams.tasks import TaskId


@dataclass(frozen=True)
class Chain:
    """A subtopology and those that merge what it makes, if any do.

    They share epochs, one after the other, and a producer. So what is made for a task that runs here can be merged by
    that task at once, in the same transaction, instead of going through the repartition topic.

    Attributes:
        subtopologies: by id, those that merge rows before the one that makes them: rounds go in this order, so
            that what waits in repartition topics is read before more is made.
    """

    subtopologies: Mapping[str, SubtopologyPlan]

    @cached_property
    def id(self) -> str:
        """The smallest id of its subtopologies."""
        return min(self.subtopologies)

    def __str__(self) -> str:
        return " and ".join(sorted(self.subtopologies))

    @cached_property
    def inputs(self) -> dict[str, SubtopologyInputs]:
        """What each reads."""
        return {name: plan.inputs for name, plan in self.subtopologies.items()}

    @cached_property
    def placed(self) -> frozenset[str]:
        """Topics whose records must lie in the partitions that their keys lead to."""
        return frozenset().union(*(plan.placed for plan in self.subtopologies.values()))

    @cached_property
    def repartitioned(self) -> frozenset[str]:
        """Topics in between, whose rows can be merged at once."""
        return frozenset(output.topic for name in self.subtopologies for output in self.mergeable(name).values())

    def mergeable(self, subtopology: str) -> dict[int, TopicOutput]:
        """The branches of a subtopology whose rows another one can merge at once."""
        branches = self.subtopologies[subtopology].branches.items()
        return {
            number: output
            for number, output in branches
            if isinstance(output, TopicOutput) and output.merged_by in self.subtopologies
        }

    def merged_into(self, output: TopicOutput) -> StoreOutput:
        """Where rows go that are merged at once: what merges them does nothing else."""
        (store,) = self.subtopologies[output.merged_by or ""].branches.values()
        assert isinstance(store, StoreOutput)
        return store

    def partitions(self, tasks: Iterable[TaskId]) -> set[TopicPartition]:
        """What tasks read."""
        return {
            TopicPartition(topic, task.partition) for task in tasks for topic in self.inputs[task.subtopology].topics
        }


def chains_of(subtopologies: Mapping[str, SubtopologyPlan]) -> list[Chain]:
    """The chains of an application: each subtopology that makes rows, after those that merge them. None does both."""
    made: dict[str, list[str]] = {
        name: [
            output.merged_by
            for output in plan.branches.values()
            if isinstance(output, TopicOutput) and output.merged_by is not None
        ]
        for name, plan in sorted(subtopologies.items())
    }
    merge = {merger for mergers in made.values() for merger in mergers}
    return [
        Chain({each: subtopologies[each] for each in (*mergers, name)})
        for name, mergers in made.items()
        if name not in merge
    ]
