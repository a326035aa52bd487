"""Describes a program as Kafka Streams prints a topology."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from kohort.spark.program.compiled import (
    Aggregate,
    Branch,
    CompiledSubtopology,
    Discard,
    Join,
    Peek,
    Program,
    SidesInput,
    Step,
    TableStore,
    Terminal,
    ToFunction,
    ToPartials,
    ToRows,
    ToTopic,
)
from kohort.spark.program.notes import described
from kohort.spark.program.processor_specs import Process


def describe(program: Program) -> str:
    """Sub-topologies with sources, processors, stores and sinks: as `TopologyDescription` of Kafka Streams prints them.

    Names are numbered as there; steps of a kind that Kafka Streams doesn't have are TRANSFORM and COMBINE (partial
    aggregates, on their way to a repartition topic). What the program's author may not expect comes after them.
    """
    names = _Names()
    text = ["Topologies:\n "]
    for subtopology in program.subtopologies:
        nodes = "".join(f"    {node}\n" for node in _subtopology(subtopology, names))
        text.append(f"  Sub-topology: {subtopology.id}\n{nodes}\n")
    for number, table in enumerate(program.globals, start=len(program.subtopologies)):
        nodes = "".join(f"    {node}\n" for node in _table(table, names))
        text.append(f"  Sub-topology: {number} for global store (will not generate tasks)\n{nodes}")
    return "".join([*text, described(program.notes)])


@dataclass(eq=False)
class _Node:
    name: str
    kind: str
    detail: str
    before: list[_Node] = field(default_factory=list)
    after: list[_Node] = field(default_factory=list)

    def then(self, node: _Node) -> _Node:
        self.after.append(node)
        node.before.append(self)
        return node

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.name} ({self.detail})"]
        if self.kind != "Sink":
            lines.append(f"      --> {_names(self.after)}")
        if self.kind != "Source":
            lines.append(f"      <-- {_names(self.before)}")
        return "\n".join(lines)


class _Names:
    """Nodes with numbers that go up through the whole topology."""

    def __init__(self) -> None:
        self._numbers = count()

    def source(self, *topics: str, pattern: str | None = None) -> _Node:
        read = pattern or f"[{', '.join(topics)}]"
        return _Node(self._name("KSTREAM-SOURCE"), "Source", f"topics: {read}")

    def processor(self, what: str, *stores: str) -> _Node:
        return _Node(self._name(what), "Processor", f"stores: [{', '.join(stores)}]")

    def sink(self, topic: str) -> _Node:
        return _Node(self._name("KSTREAM-SINK"), "Sink", f"topic: {topic}")

    def named_sink(self, column: str) -> _Node:
        return _Node(self._name("KSTREAM-SINK"), "Sink", f"extractor: column {column}")

    def _name(self, what: str) -> str:
        return f"{what}-{next(self._numbers):010d}"


def _subtopology(subtopology: CompiledSubtopology, names: _Names) -> Iterator[_Node]:
    for table in subtopology.tables:
        yield from _table(table, names)
    if isinstance(subtopology.input, SidesInput):
        yield from _sides(subtopology.input, subtopology.branches, names)
    elif subtopology.input is not None:
        root = names.source(*subtopology.input.topics, pattern=subtopology.pattern)
        yield from _walk([root], root, subtopology.branches, names)


def _sides(read: SidesInput, branches: tuple[Branch, ...], names: _Names) -> list[_Node]:
    """Both sides of a join, each with its own steps, and all that follows where they meet."""
    sources = {topic: names.source(topic) for topic in read.topics}
    nodes, ends = list(sources.values()), []
    for side in read.sides:
        at = sources[side.source.topic]
        for step in side.branch.steps[:-1]:  # the last one only names columns
            at = at.then(_step(step, names))
            nodes.append(at)
        ends.append(at)
    first = branches[0].steps[0]
    joined = _step(first, names)
    for end in ends:
        end.then(joined)
    rest = tuple(replace(branch, steps=branch.steps[1:]) for branch in branches)
    return _walk([*nodes, joined], joined, rest, names)


def _walk(nodes: list[_Node], root: _Node, branches: tuple[Branch, ...], names: _Names) -> list[_Node]:
    """Nodes up to a point and all that follows; branches that begin with the same steps share these."""
    shared: dict[tuple[int, ...], _Node] = {(): root}
    for branch in branches:
        path: tuple[int, ...] = ()
        at = root
        for step in branch.steps:
            path = (*path, id(step))
            if path not in shared:
                shared[path] = at.then(_step(step, names))
                nodes.append(shared[path])
            at = shared[path]
        nodes.extend(_end(at, branch.terminal, names))
    return nodes


def _step(step: Step, names: _Names) -> _Node:
    if isinstance(step, Process):
        return names.processor(step.operation.kind, *(state.store for state in step.states))
    if not isinstance(step, Join):
        return names.processor("KSTREAM-PEEK" if isinstance(step, Peek) else "KSTREAM-TRANSFORM")
    stores = () if step.is_global else (step.table.name,)  # Kafka Streams names no global stores here
    return names.processor("KSTREAM-LEFTJOIN" if step.how == "left" else "KSTREAM-JOIN", *stores)


def _end(at: _Node, terminal: Terminal, names: _Names) -> Iterator[_Node]:
    match terminal:
        case ToTopic(topic_column=str(name)):
            yield at.then(names.named_sink(name))
        case ToTopic() | ToRows():
            yield at.then(names.sink(terminal.topic))
        case Discard():
            pass
        case ToFunction():
            yield at.then(names.processor("KSTREAM-FOREACH"))
        case ToPartials():
            combine = at.then(names.processor("KSTREAM-COMBINE"))
            yield combine
            yield combine.then(names.sink(terminal.topic))
        case Aggregate():
            aggregate = at.then(names.processor("KSTREAM-AGGREGATE", terminal.spec.name))
            yield aggregate
            if terminal.waiting is not None:
                aggregate = aggregate.then(names.processor("KTABLE-SUPPRESS", terminal.waiting.name))
                yield aggregate
            topics = [output.topic for output in terminal.outputs]
            for topic in (*topics, *([] if terminal.stream is None else [terminal.stream])):
                yield aggregate.then(names.sink(topic))


def _table(table: TableStore, names: _Names) -> Iterator[_Node]:
    source = names.source(table.source.topic)
    store = source.then(names.processor("KTABLE-SOURCE", table.name))
    yield from (source, store)


def _names(nodes: list[_Node]) -> str:
    return ", ".join(node.name for node in nodes) or "none"
