"""A program in short: what each subtopology reads, keeps and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kohort.spark.program.compiled import Aggregate, Branch, Program, ToFunction, ToPartials, ToRows, ToTopic


@dataclass(frozen=True, slots=True)
class SubtopologyOutline:
    """A subtopology, or the global tables.

    Attributes:
        id: as in tasks' ids; "globals" for global tables.
        reads: topics, or a pattern of topics' names.
        stores: their names.
        writes: topics, "by column …" where a column has the topic, and functions.
    """

    id: str
    reads: tuple[str, ...]
    stores: tuple[str, ...]
    writes: tuple[str, ...]


def outline(program: Program) -> tuple[SubtopologyOutline, ...]:
    """All of a program's subtopologies, in their order, and its global tables."""
    found = []
    for each in program.subtopologies:
        pattern = each.pattern
        own = each.input_topics if pattern is None else (pattern, *(table.source.topic for table in each.tables))
        writes = (name for branch in each.branches for name in _written(branch))
        stores = (*(store.name for store in each.stores),)
        found.append(SubtopologyOutline(each.id, _once(own), _once(stores), _once(writes)))
    if program.globals:
        topics, names = (table.source.topic for table in program.globals), (table.name for table in program.globals)
        found.append(SubtopologyOutline("globals", tuple(topics), tuple(names), ()))
    return tuple(found)


def _written(branch: Branch) -> Iterator[str]:
    match branch.terminal:
        case ToTopic() as output:
            yield _output(output)
        case ToRows(topic=topic) | ToPartials(topic=topic):
            yield topic
        case Aggregate(outputs=outputs, stream=stream):
            yield from map(_output, outputs)
            if stream is not None:
                yield stream
        case ToFunction(function=function):
            yield f"{getattr(function, '__name__', 'a function')}()"


def _output(output: ToTopic) -> str:
    return output.topic if output.topic_column is None else f"by column {output.topic_column}"


def _once(names: Iterator[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
