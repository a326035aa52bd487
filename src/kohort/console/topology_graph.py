"""A topology as a picture: where its topics, subtopologies and stores are drawn, and the arrows between them.

Columns alternate: topics, the subtopologies that read them, the repartition topics that these write, and so on. A
description says in words what the picture shows; the page's table says the same by rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.console.words import visible
from kohort.plurals import several
from kohort.streams.topology import Topology

MOST_NODES: Final = 150
"""Topics and subtopologies that are drawn; a larger topology is told by the table alone."""

MOST_STORES: Final = 8
"""Stores that are named in a subtopology's box."""

WIDTH: Final = 210
LINE: Final = 20
GAP: Final = 90
"""Of a box, a line of text and the way between two columns, in the picture's own units."""

_SPACE: Final = 22
_EDGE: Final = 8
_LONGEST: Final = 24
"""Characters of a line."""

_MOST_LINES: Final = 20
"""Of a name: as many as the longest that Kafka takes may need."""

_BREAKS: Final = "-._/"
"""Characters behind which a name is broken rather than amid a word."""


@dataclass(frozen=True, slots=True)
class Node:
    """A box.

    Attributes:
        key: its name in the page's changing texts: "topic NAME" or "part ID".
        kind: "topic", "repartition" or "subtopology", by which it is coloured.
        lines: its name, in lines that fit.
        stores: of a subtopology, names of its stores, each in lines that fit.
        full: its whole name, and those of these stores.
        x, y, height: where it is.
    """

    key: str
    kind: str
    lines: tuple[str, ...]
    stores: tuple[tuple[str, ...], ...]
    full: str
    x: int
    y: int
    height: int

    @property
    def middle(self) -> int:
        """Where arrows begin and end."""
        return self.y + self.height // 2


class _Entry(NamedTuple):
    """A box that has no place yet."""

    key: str
    kind: str
    lines: tuple[str, ...]
    stores: tuple[tuple[str, ...], ...]
    full: str


@dataclass(frozen=True, slots=True)
class Graph:
    """The picture.

    Attributes:
        nodes, arrows: what is drawn; arrows as paths of SVG.
        width, height: of all of it.
        text: what it shows, in sentences.
    """

    nodes: Sequence[Node]
    arrows: Sequence[str]
    width: int
    height: int
    text: str


def graph(topology: Topology) -> Graph | None:
    """The picture of a topology; None if it is too large for one, or has nothing."""
    parts = topology.subtopologies
    topics = {topic for part in parts.values() for topic in (*part.inputs, *part.repartition_sinks)}
    if not parts or len(parts) + len(topics) > MOST_NODES:
        return None
    repartition = {topic.name for part in parts.values() for topic in part.repartition_sources}
    repartition.update(topic for part in parts.values() for topic in part.repartition_sinks)
    levels = _levels(topology)
    columns: dict[int, list[_Entry]] = {}
    last = max(levels.values()) + 1
    for topic in sorted(topics):
        reader = topology.readers.get(topic)
        level = last if reader is None else levels[reader]
        kind = "repartition" if topic in repartition else "topic"
        columns.setdefault(2 * level, []).append(_entry(f"topic {topic}", kind, topic))
    for name, part in parts.items():
        stores = [topic.name for topic in part.changelogs]
        more = len(stores) - MOST_STORES
        shown = [*stores[:MOST_STORES], *([f"and {more:,} more"] if more > 0 else [])]
        entry = _entry(f"part {name}", "subtopology", f"Subtopology {name}", shown)
        columns.setdefault(2 * levels[name] + 1, []).append(entry)
    nodes = {node.key: node for node in _placed(columns)}
    arrows = []
    for name, part in parts.items():
        box = nodes[f"part {name}"]
        arrows += [_arrow(nodes[f"topic {topic}"], box) for topic in part.inputs]
        arrows += [_arrow(box, nodes[f"topic {topic}"]) for topic in part.repartition_sinks]
    width = max(node.x for node in nodes.values()) + WIDTH + _EDGE
    height = max(node.y + node.height for node in nodes.values()) + _EDGE
    return Graph([*nodes.values()], arrows, width, height, _description(topology))


def _levels(topology: Topology) -> dict[str, int]:
    """How many subtopologies are before each, at most; of those in a circle, some count as before the others."""
    parts = topology.subtopologies
    writers: dict[str, list[str]] = {}
    for name, part in parts.items():
        for topic in part.repartition_sinks:
            writers.setdefault(topic, []).append(name)
    before = {
        name: {each for topic in part.inputs for each in writers.get(topic, ()) if each != name}
        for name, part in parts.items()
    }
    levels: dict[str, int] = {}
    while len(levels) < len(parts):
        left = [name for name in parts if name not in levels]
        ready = [name for name in left if before[name] <= levels.keys()] or left[:1]
        levels.update(
            {name: 1 + max((levels[each] for each in before[name] if each in levels), default=-1) for name in ready}
        )
    return levels


def _placed(columns: Mapping[int, Sequence[_Entry]]) -> list[Node]:
    heights = {at: sum(map(_height, column)) + _SPACE * (len(column) - 1) for at, column in columns.items()}
    tallest = max(heights.values())
    nodes = []
    for place, at in enumerate(sorted(columns)):
        x, y = _EDGE + place * (WIDTH + GAP), _EDGE + (tallest - heights[at]) // 2
        for entry in columns[at]:
            nodes.append(Node(*entry, x, y, _height(entry)))
            y += _height(entry) + _SPACE
    return nodes


def _entry(key: str, kind: str, name: str, stores: Sequence[str] = ()) -> _Entry:
    full = ", ".join(map(visible, (name, *stores)))
    return _Entry(key, kind, _wrapped(name), tuple(map(_wrapped, stores)), full)


def _height(entry: _Entry) -> int:
    return LINE * (1 + len(entry.lines) + sum(map(len, entry.stores))) + 12


def _wrapped(name: str) -> tuple[str, ...]:
    """A name in lines that fit, which together are the name; one longer than Kafka's may be ends with an ellipsis."""
    left, lines = visible(name), list[str]()
    while len(left) > _LONGEST and len(lines) < _MOST_LINES - 1:
        at = max(left.rfind(each, _LONGEST // 2, _LONGEST) for each in _BREAKS) + 1 or _LONGEST
        lines.append(left[:at])
        left = left[at:]
    return (*lines, left if len(left) <= _LONGEST else f"{left[: _LONGEST - 1]}…")


def _arrow(source: Node, target: Node) -> str:
    begin, end = source.x + WIDTH, target.x - 6
    bend = max(30, abs(end - begin) // 2)
    return (
        f"M{begin},{source.middle} C{begin + bend},{source.middle} {end - bend},{target.middle} {end},{target.middle}"
    )


def _description(topology: Topology) -> str:
    sentences = []
    for name, part in topology.subtopologies.items():
        text = f"Subtopology {name} reads {', '.join(part.inputs) or 'nothing'}"
        if part.repartition_sinks:
            text += f", writes {', '.join(part.repartition_sinks)}"
        if part.changelogs:
            text += f", and keeps {several(len(part.changelogs), 'store')}"
        sentences.append(visible(f"{text}."))
    return " ".join(sentences)
