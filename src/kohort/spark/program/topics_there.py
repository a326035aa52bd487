"""Whether the topics that a program names are on its cluster; known before it is compiled."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.spark.errors import ProgramError
from kohort.spark.program.error_policies import DeadLetter
from kohort.spark.program.queues import QueueDef
from kohort.spark.program.shown_options import options_to_reach
from kohort.spark.program.source_topics import no_match
from kohort.spark.program.sources import TableDef
from kohort.spark.program.streams import AggregateDef, Graph, SinkDef
from kohort.streams.patterns import matching

if TYPE_CHECKING:
    from kohort.client.config import ClientConfig
    from kohort.client.types import TopicInfo


@dataclass(frozen=True)
class NamedTopics:
    """What a program says of topics that others make.

    Attributes:
        read: those that it reads.
        written: those that it writes, dead letters' too.
        patterns: of streams; each is to match a topic.
    """

    read: frozenset[str]
    written: frozenset[str]
    patterns: tuple[str, ...] = ()


def topics_of(graph: Graph, queues: Iterable[QueueDef] = ()) -> NamedTopics:
    """The topics of a program as it is written."""
    sources = [each.source if isinstance(each, TableDef) else each for each in graph.sources]
    read = {topic for each in sources if not each.pattern for topic in (each.topic, *each.others)}
    written = {each.on_error.topic for each in sources if isinstance(each.on_error, DeadLetter)}
    for end in graph.ends:
        outputs = [end.output] if isinstance(end, SinkDef) else end.outputs if isinstance(end, AggregateDef) else []
        written.update(each.topic for each in outputs if each.topic_column is None)
    for queue in queues:
        read.add(queue.source.topic)
        if queue.work is not None:
            written.update(each.topic for each in queue.work.outputs)
        if queue.settings.dead_letters is not None:
            written.add(queue.settings.dead_letters)
    return NamedTopics(frozenset(read), frozenset(written), tuple(each.topic for each in sources if each.pattern))


def check_topics(
    application_id: str,
    named: NamedTopics,
    topics: Mapping[str, TopicInfo],
    client: ClientConfig | None = None,
    joined: Iterable[Collection[str]] = (),
) -> None:
    """Compares the topics that a program names with those that there are.

    Args:
        topics: of the cluster.
        client: how it is reached, for the command that makes topics.
        joined: topics that have equally many partitions, where that is known.

    Raises:
        ProgramError: topics are missing; names all of them, and the command that makes them.
    """
    for pattern in named.patterns:
        if not matching(pattern, (name for name, each in topics.items() if not each.internal)):
            raise no_match(pattern)
    read, written = sorted(named.read - topics.keys()), sorted(named.written - topics.keys() - named.read)
    if not read and not written:
        return
    parts = [f"{', '.join(names)}, {how}" for names, how in ((read, "read"), (written, "written")) if names]
    missing = [*read, *written]
    counts = {
        len(topics[name].partitions)
        for group in joined
        if not set(read).isdisjoint(group)
        for name in group
        if name in topics
    }
    partitions = next(iter(counts)) if len(counts) == 1 else None
    raise ProgramError(
        f"{application_id} lacks {'a topic' if len(missing) == 1 else 'topics'}: {'; '.join(parts)}. "
        f"{create(missing, client, partitions)}"
    )


def create(topics: Sequence[str], client: ClientConfig | None, partitions: int | None = None) -> str:
    """The sentence that says how to make topics. Arguments as of `create_command`."""
    more = ", if need be with --partitions N" if partitions is None else ""
    return f"Create {'it' if len(topics) == 1 else 'them'}{more}: {create_command(topics, client, partitions)}"


def create_command(topics: Sequence[str], client: ClientConfig | None, partitions: int | None = None) -> str:
    """The command that makes topics, to be pasted.

    Args:
        client: how the cluster is reached; None leaves that out.
        partitions: how many; None for as many as the brokers have by default.
    """
    words = ["kohort", "topics", "create", *topics]
    if client is not None:
        words += options_to_reach(client)
    if partitions is not None:
        words += ["--partitions", str(partitions)]
    return shlex.join(words)
