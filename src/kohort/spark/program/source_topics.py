"""Which topics a stream reads: one, several that are alike, or those that a pattern matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kohort.protocol.stored import INTERNAL_TOPICS
from kohort.spark.errors import ProgramError
from kohort.spark.program.compiled import CompiledSubtopology, Program, SourceSpec, TopicInput
from kohort.spark.program.settings import check_name
from kohort.streams.patterns import check_pattern, matching


@dataclass(frozen=True)
class SourceTopics:
    """What a stream reads.

    Attributes:
        name: the first topic, or the pattern.
        others: topics beside it.
    """

    name: str
    others: tuple[str, ...] = ()
    pattern: bool = False

    @property
    def named(self) -> frozenset[str]:
        """The topics that are named."""
        return frozenset() if self.pattern else frozenset((self.name, *self.others))


def source_topics(topic: str | Sequence[str] | None, pattern: str | None) -> SourceTopics:
    """The topics that a user names.

    Raises:
        ProgramError: neither topics nor a pattern, both, or something that can't be.
    """
    if (topic is None) == (pattern is None):
        raise ProgramError(
            'stream takes a topic, several, ["orders-eu", "orders-us"], or pattern="orders-.*" for those it matches'
        )
    if pattern is not None:
        try:
            check_pattern(pattern)
        except (ValueError, TypeError) as error:
            raise ProgramError(f"stream(pattern={pattern!r}): {error}") from None
        return SourceTopics(pattern, pattern=True)
    if isinstance(topic, str) or not isinstance(topic, Iterable):
        return SourceTopics(check_name("stream(topic)", topic))
    names = [check_name("stream(topic)", each) for each in topic]
    if not names:
        raise ProgramError("stream([]): name a topic at least")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ProgramError(f"stream({names!r}): {twice[0]!r} is named twice")
    return SourceTopics(names[0], tuple(names[1:]))


def matched_topics(program: Program, topics: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Which of a cluster's topics each pattern of a program means: those that the program doesn't read or keep itself.

    So the group's coordinator has them.
    """
    own = program.topology.required_topics | INTERNAL_TOPICS
    there = sorted(set(topics) - own)
    return {pattern: tuple(matching(pattern, there)) for pattern in sorted(program.topology.source_patterns)}


def with_topics(program: Program, found: dict[str, tuple[str, ...]]) -> Program:
    """A program with the topics that its patterns match (`matched_topics`).

    Raises:
        ProgramError: a pattern matches none, or one that the program reads or writes otherwise.
    """
    read = {topic: pattern for pattern, topics in found.items() for topic in topics}
    for pattern, topics in found.items():
        if not topics:
            raise no_match(pattern)
        if also := [topic for topic in topics if read[topic] != pattern]:
            raise ProgramError(f"topic {also[0]!r} matches two patterns, {pattern!r} and {read[also[0]]!r}")
    for table in program.globals:
        if (name := table.source.topic) in read:
            raise ProgramError(f"stream {read[name]!r}: it matches {name!r} too, which is a global table")
    if written := sorted(read.keys() & set(program.sinks)):
        raise ProgramError(
            f"stream {read[written[0]]!r}: it matches {written[0]!r}, too, which the program writes and so would read "
            f"again: give that another name, or say a narrower pattern"
        )
    return replace(program, subtopologies=tuple(_with_topics(each, found) for each in program.subtopologies))


def no_match(pattern: str) -> ProgramError:
    """The error for a pattern that matches no topic."""
    return ProgramError(
        f"stream {pattern!r}: no topic matches this pattern. Create one, and start the application again"
    )


def _with_topics(subtopology: CompiledSubtopology, found: dict[str, tuple[str, ...]]) -> CompiledSubtopology:
    read = subtopology.input
    if not isinstance(read, TopicInput) or not read.source.pattern:
        return subtopology
    source: SourceSpec = replace(read.source, others=found[read.source.topic])
    return replace(subtopology, input=TopicInput(source))
