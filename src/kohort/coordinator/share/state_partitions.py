"""For which partitions a share group has a state at the share coordinator, will have one, or had one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

_NOTHING: Final[Mapping[UUID, Any]] = MappingProxyType({})


class TopicState(NamedTuple):
    """Some partitions of a topic, with its name when the group came to it."""

    name: str
    partitions: frozenset[int]


Topics: TypeAlias = Mapping[UUID, TopicState]


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The partitions by topic id; immutable.

    Attributes:
        initializing: asked of the share coordinator; not answered yet.
        initialized: there, so that they can be assigned.
        deleting: names of topics whose states are being deleted.
    """

    initializing: Topics = field(default_factory=lambda: _NOTHING)
    initialized: Topics = field(default_factory=lambda: _NOTHING)
    deleting: Mapping[UUID, str] = field(default_factory=lambda: _NOTHING)

    @property
    def assignable(self) -> dict[UUID, frozenset[int]]:
        return {topic_id: each.partitions for topic_id, each in self.initialized.items()}

    @property
    def pending(self) -> dict[UUID, TopicState]:
        """What can't be assigned before the share coordinator's answer.

        Initialized partitions are begun anew by an administrator; if the answer is never noted, nothing waits for it.
        """
        return without(self.initializing, self.initialized)

    def known(self) -> dict[UUID, TopicState]:
        """What may have a state: initialized and initializing partitions."""
        return united(self.initialized, self.initializing)

    def begin(self, topics: Topics) -> StatePartitions:
        """These are to be initialized; a topic among them isn't being deleted any longer."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return replace(self, initializing=united(self.initializing, topics), deleting=deleting)

    def finish(self, topics: Topics) -> StatePartitions:
        """These are initialized."""
        return replace(
            self,
            initializing=without(self.initializing, topics),
            initialized=united(self.initialized, topics),
        )

    def give_up(self, topics: Topics) -> StatePartitions:
        """These could not be initialized."""
        return replace(self, initializing=without(self.initializing, topics))

    def delete(self, names: Mapping[UUID, str]) -> StatePartitions:
        """The states of these topics are to be deleted, if they are initialized."""
        return replace(
            self,
            initialized={topic_id: each for topic_id, each in self.initialized.items() if topic_id not in names},
            deleting={**self.deleting, **names},
        )

    def deleted(self, topic_ids: Collection[UUID]) -> StatePartitions:
        """The states of these topics are deleted."""
        return replace(self, deleting={each: name for each, name in self.deleting.items() if each not in topic_ids})

    def without_topic(self, topic_id: UUID) -> StatePartitions:
        """A topic is gone, and its states with it."""
        return StatePartitions(
            {each: of for each, of in self.initializing.items() if each != topic_id},
            {each: of for each, of in self.initialized.items() if each != topic_id},
            {each: name for each, name in self.deleting.items() if each != topic_id},
        )

    def missing(
        self,
        subscribed: Iterable[str],
        topic: Callable[[str], tuple[UUID, int] | None],
        waiting: Callable[[UUID], bool],
    ) -> dict[UUID, TopicState]:
        """The partitions of subscribed topics that are to be initialized.

        Args:
            topic: gives a topic's id and number of partitions by its name; None if there is no such topic.
            waiting: whether the share coordinator's answer on a topic's initializing partitions is still waited for.
        """
        found = {}
        for name in subscribed:
            there = topic(name)
            if there is None:
                continue
            topic_id, partitions = there
            begun = self.initialized.get(topic_id, _NO_TOPIC).partitions
            if topic_id in self.initializing and waiting(topic_id):
                begun |= self.initializing[topic_id].partitions
            if len(begun) < partitions:
                found[topic_id] = TopicState(name, frozenset(range(partitions)) - begun)
        return found


_NO_TOPIC: Final = TopicState("", frozenset())


def united(some: Topics, others: Topics) -> dict[UUID, TopicState]:
    result = dict(some)
    for topic_id, each in others.items():
        result[topic_id] = TopicState(each.name, each.partitions | result.get(topic_id, _NO_TOPIC).partitions)
    return result


def without(some: Topics, others: Topics) -> dict[UUID, TopicState]:
    result = {}
    for topic_id, each in some.items():
        left = each.partitions - others.get(topic_id, _NO_TOPIC).partitions
        if left:
            result[topic_id] = TopicState(each.name, left)
    return result
