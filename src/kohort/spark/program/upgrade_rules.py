"""What becomes of each store when a changed program goes on with what another has left. Pure.

| Before and now | What becomes of it |
| --- | --- |
| the same keys and columns, or fewer columns | kept |
| a column's expression is another | kept, and told of: Spark may only print it otherwise |
| more columns | an aggregate is extended: they begin with nothing, for each group; a table is read again |
| a column means something else, or other keys, or made of another topic | refused |
| it wasn't there | new; a table is read from the beginning, all else from where its topic is read on |
| it isn't there any more | left: its changelog stays |
| it was left, and is there again | refused: it stands where it stood then |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from kohort.plurals import several
from kohort.spark.program.committed_metadata import Committed, Fingerprint
from kohort.spark.program.store_formats import ROWS, StoreFormat, StoreFormats, other_expressions, same_column


class Fate(StrEnum):
    """What becomes of a store."""

    KEPT = "kept"
    EXTENDED = "extended"
    REBUILT = "rebuilt"
    NEW = "new"
    LEFT = "left"
    REFUSED = "refused"


UNKNOWN: Final = "another program's offsets don't say what it holds"
_MOVED: Final = "-repartition"
_WORST_LAST: Final = (Fate.NEW, Fate.KEPT, Fate.EXTENDED, Fate.REBUILT, Fate.REFUSED)


@dataclass(frozen=True)
class StoreChange:
    """What becomes of a store, and why.

    Attributes:
        store: its name; of rows in a repartition topic the topic's.
        topic: what it is made of.
        why: a part of a sentence; "" where nothing is to be said.
    """

    store: str
    topic: str
    fate: Fate
    why: str = ""


class Verdict(NamedTuple):
    """A fate with its reason, for one partition."""

    fate: Fate
    why: str = ""


@dataclass(frozen=True)
class StoresNow:
    """What a program has.

    Attributes:
        program: its fingerprint.
        formats: of what is made of each topic that it reads.
        tables: the names of its tables.
        filled: the stores whose changelogs have records.
        pending: of repartition topics: how many records are in them that haven't been read.
        of_joins: the stores in subtopologies that join streams.
    """

    program: Fingerprint
    formats: Mapping[str, StoreFormats]
    tables: Collection[str] = ()
    filled: Collection[str] = ()
    pending: Mapping[str, int] | None = None
    of_joins: Collection[str] = ()


def compared(before: StoreFormat, now: StoreFormat, *, table: bool = False) -> Verdict:
    """What becomes of a store that both programs have, in a partition that the one before has committed."""
    if before.left:
        return Verdict(Fate.REFUSED, "a program without it has run since, so its state stands where it stood then")
    if before.keys != now.keys:
        what = "its key is another" if table else "its groups, its window or what it is for are others"
        return Verdict(Fate.REFUSED, what)
    past = {**before.dropped, **before.columns}
    if others := [name for name, digest in now.columns.items() if not same_column(past.get(name, digest), digest)]:
        one = len(others) == 1
        return Verdict(Fate.REFUSED, f"{_named(others)} {'means' if one else 'mean'} something else, or {_types(one)}")
    added = [name for name in now.columns if name not in before.columns]
    gone = [name for name in before.columns if name not in now.columns]
    without = f"without {_named(gone)}" if gone else ""
    if printed := other_expressions(before, now):
        has = "has another expression" if len(printed) == 1 else "have other expressions"
        without = _both(f"{_named(printed)} {has} than the state was made with, which is used all the same", without)
    if not added:
        return Verdict(Fate.KEPT, without)
    if table:
        return Verdict(Fate.REBUILT, _both(f"for {_named(added)} its topic is read again", without))
    return Verdict(Fate.EXTENDED, _both(f"{_named(added)}: nothing yet, of rows from now on", without))


def store_changes(now: StoresNow, committed: Mapping[tuple[str, int], Committed | None]) -> list[StoreChange]:
    """What becomes of all stores.

    Args:
        committed: by topic and partition what the group has committed; None for what another tool has set.
    """
    said = {at: each for at, each in committed.items() if each is not None}
    mine = [each for (topic, _), each in said.items() if topic in now.formats]
    if mine and all(each.program == now.program for each in mine):
        found = [
            _same(now, said, topic, name, made) for topic, stores in now.formats.items()
            for name, made in stores.items() if name
        ]  # fmt: skip
        return [*found, *_left(now, said)]
    changes = [
        _change(now, said, topic, name, made) for topic, stores in now.formats.items() for name, made in stores.items()
    ]
    return [*(each for each in changes if each is not None), *_left(now, said)]


def read_again(before: StoreFormats | None, now: StoreFormats, tables: Collection[str]) -> bool:
    """Whether a topic is to be read from its beginning, for a table that is new or has more columns."""
    return before is not None and any(
        name not in before or not now[name].columns.keys() <= before[name].columns.keys()
        for name in now
        if name in tables
    )


def _change(
    now: StoresNow, said: Mapping[tuple[str, int], Committed], topic: str, name: str, made: StoreFormat
) -> StoreChange | None:
    verdicts = list(_verdicts(now, said, topic, name, made))
    there = bool(verdicts)
    if name == ROWS:
        pending = (now.pending or {}).get(topic, 0)
        if not there or not pending:
            return None
        worst = _worst(verdicts)
        if worst.fate is Fate.REFUSED:
            left = f"{several(pending, 'record')} {'is' if pending == 1 else 'are'} left in it"
            text = f"{worst.why}, and {left}: have the program before read them"
            return StoreChange(topic, topic, Fate.REFUSED, text)
        return StoreChange(topic, topic, Fate.KEPT)
    if there:
        fate, why = _worst(verdicts)
        return StoreChange(name, topic, fate, why)
    if any(each.formats is None and each.program != now.program and at[0] in now.formats for at, each in said.items()):
        return StoreChange(name, topic, Fate.REFUSED, UNKNOWN)
    if elsewhere := sorted({at[0] for at, each in said.items() if each.formats and name in each.formats}):
        why = f"it was made of {elsewhere[0]}, and is made of {topic} now"
        if name in now.of_joins and topic.endswith(_MOVED) != elsewhere[0].endswith(_MOVED):
            why += ": give join_stream the repartition= of before, or reset the store"
        return StoreChange(name, topic, Fate.REFUSED, why)
    if name in now.filled and said:
        return StoreChange(name, topic, Fate.REFUSED, "its changelog has records of which nothing committed tells")
    if any(at[0] == topic for at in said):
        return StoreChange(name, topic, Fate.NEW, _read_for(now, topic, name))
    return StoreChange(name, topic, Fate.NEW)


def _same(
    now: StoresNow, said: Mapping[tuple[str, int], Committed], topic: str, name: str, made: StoreFormat
) -> StoreChange:
    """What becomes of a store of the same program: it is kept, unless it was left meanwhile or reset.

    A program may have the same fingerprint without a store, such as one that holds what waits to be written. Where all
    that a topic makes is left, nobody has read for it since: then the topic's offsets would be another program's.
    """
    told = [each.formats for (read, _), each in said.items() if read == topic and each.formats is not None]
    for formats in told:
        if name in formats and formats[name].left and not all(each.left for each in formats.values()):
            return StoreChange(name, topic, *compared(formats[name], made, table=name in now.tables))
    if told and name not in now.filled and not any(name in formats for formats in told):
        return StoreChange(name, topic, Fate.NEW, _read_for(now, topic, name))
    return StoreChange(name, topic, Fate.KEPT)


def _read_for(now: StoresNow, topic: str, name: str) -> str:
    if name in now.tables:
        return f"{topic} is read again for it"
    return f"has what comes from now on: {topic} is read from where it was"


def _verdicts(
    now: StoresNow, said: Mapping[tuple[str, int], Committed], topic: str, name: str, made: StoreFormat
) -> Iterator[Verdict]:
    """What becomes of a store, by the partitions that tell of it.

    This program's own, that don't say what it holds, count only where another's beside them tell of it: else that has
    perhaps run later, without it.
    """
    others = [each.formats for (read, _), each in said.items() if read == topic and each.program != now.program]
    known = bool(others) and all(formats and name in formats and not formats[name].left for formats in others)
    for (read, _), each in said.items():
        if read != topic:
            continue
        if each.formats is None:
            if each.program == now.program and known:
                yield Verdict(Fate.KEPT)
            else:
                yield Verdict(Fate.REFUSED, UNKNOWN)
        elif name in each.formats:
            yield compared(each.formats[name], made, table=name in now.tables)


def _left(now: StoresNow, said: Mapping[tuple[str, int], Committed]) -> list[StoreChange]:
    ours = {name for stores in now.formats.values() for name in stores} | {ROWS}
    gone = {name: topic for (topic, _), each in said.items() for name in each.formats or () if name not in ours}
    return [StoreChange(name, topic, Fate.LEFT) for name, topic in sorted(gone.items())]


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=lambda each: _WORST_LAST.index(each.fate))


def _named(names: Collection[str]) -> str:
    return ", ".join(names)


def _types(one: bool) -> str:
    return "is of another type" if one else "are of other types"


def _both(first: str, second: str) -> str:
    return f"{first}; {second}" if second else first
