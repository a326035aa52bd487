"""What the members of a consumer group subscribe to, counted over the group, and which topics that makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kohort.coordinator.consumer.member import ConsumerMetadata


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """A regular expression with the topics that it matched.

    Attributes:
        topics: their names, sorted; only those that a member may describe.
        version: version of the cluster's metadata then.
        timestamp: when, in ms since 1970.
    """

    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0


@dataclass(slots=True)
class Subscriptions:
    """How many members subscribe to each topic name and regular expression, and ask for each assignor.

    Attributes:
        classic: how many members use the classic protocol.
        classic_assignors: how many of these support each assignor of their own.
    """

    topics: Counter[str] = field(default_factory=Counter)
    regexes: Counter[str] = field(default_factory=Counter)
    assignors: Counter[str] = field(default_factory=Counter)
    classic: int = 0
    classic_assignors: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Subscriptions:
        return Subscriptions(
            self.topics.copy(),
            self.regexes.copy(),
            self.assignors.copy(),
            self.classic,
            self.classic_assignors.copy(),
        )

    def change(self, before: ConsumerMetadata | None, after: ConsumerMetadata | None) -> None:
        """A member's metadata changes; None stands for a member that isn't there."""
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)

    def _count(self, metadata: ConsumerMetadata, by: int) -> None:
        counted = [(self.topics, name) for name in metadata.topics]
        if metadata.regex:
            counted.append((self.regexes, metadata.regex))
        if metadata.assignor:
            counted.append((self.assignors, metadata.assignor))
        if metadata.classic is not None:
            self.classic += by
            names = {protocol.name for protocol in metadata.classic.supported_protocols}
            counted += [(self.classic_assignors, name) for name in names]
        for counter, name in counted:
            counter[name] += by
            if not counter[name]:
                del counter[name]

    def common_classic_assignors(self, names: Iterable[str]) -> set[str]:
        """Those of these assignors that all members of the classic protocol support."""
        return {name for name in names if self.classic_assignors[name] == self.classic}

    def names(self, resolved: Mapping[str, ResolvedRegex]) -> set[str]:
        """The names of all topics that are subscribed to, those that regular expressions matched included."""
        names = set(self.topics)
        for regex in self.regexes:
            if (found := resolved.get(regex)) is not None:
                names.update(found.topics)
        return names

    def assignor(self, default: str) -> str:
        """The assignor that most members ask for; of several the one that was asked for first."""
        return max(self.assignors, key=self.assignors.__getitem__) if self.assignors else default
