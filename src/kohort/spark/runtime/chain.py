"""Chains: subtopologies that hand each other rows, and so go through epochs together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kohort.client.types import TopicPartition
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import SubtopologyPlan, TopicOutput
from kohort.streams.tasks import TaskId


@dataclass(frozen=True)
class Chain:
    """Subtopologies of which some merge what others make, or just one.

    They share epochs, one after the other, and a producer. So what is made for a task that runs here can be merged by
    that task at once, in the same transaction, instead of going through the repartition topic.

    Attributes:
        subtopologies: by id, those that merge rows before those that make them: rounds go in this order, so that what
            waits in repartition topics is read before more is made.
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

    def partitions(self, tasks: Iterable[TaskId]) -> set[TopicPartition]:
        """What tasks read."""
        return {
            TopicPartition(topic, task.partition) for task in tasks for topic in self.inputs[task.subtopology].topics
        }


def chains_of(subtopologies: Mapping[str, SubtopologyPlan]) -> list[Chain]:
    """The chains of an application."""
    made_for: dict[str, list[str]] = {name: [] for name in subtopologies}
    for name, plan in subtopologies.items():
        for output in plan.branches.values():
            if isinstance(output, TopicOutput) and output.merged_by is not None:
                made_for[output.merged_by].append(name)
    chains: list[Chain] = []
    left = dict.fromkeys(sorted(subtopologies))
    while left:
        linked = _linked(next(iter(left)), made_for)
        names = [name for name in _readers_first(made_for) if name in linked]
        chains.append(Chain({name: subtopologies[name] for name in names}))
        left = {name: None for name in left if name not in linked}
    return chains


def _linked(start: str, made_for: Mapping[str, list[str]]) -> set[str]:
    """All subtopologies that one is linked to, over however many others."""
    pairs = [(name, source) for name, sources in made_for.items() for source in sources]
    linked: set[str] = set()
    new = {start}
    while new:
        linked |= new
        new = {other for pair in pairs if linked.intersection(pair) for other in pair} - linked
    return linked


def _readers_first(made_for: Mapping[str, list[str]]) -> list[str]:
    """Those that read rows before those that make them. There are no circles."""
    order: list[str] = []

    def add(name: str) -> None:
        for source in made_for[name]:
            add(source)
        if name not in order:
            order.append(name)

    for name in sorted(made_for):
        add(name)
    return order[::-1]
