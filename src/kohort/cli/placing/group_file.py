"""The file that `kohort place` reads: a group, as YAML or JSON.

    standbys: 1
    rack_tags: [zone]
    subtopologies:
      "0": {partitions: 6, state_stores: 2}
      "1": {partitions: 12}
    members:
      m1: {process: p1, tags: {zone: a}, active: {"0": 0-2, "1": 0-5}}
      m2: {process: p2, tags: {zone: b}, active: {"0": 3-5, "1": "6, 7, 10-11"}}
    lags:
      p2: {"0": {0-2: 120}}
    ends:
      "0": 250000

Partitions are a number, a range, several of both with commas between them, or a list of such.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from typing import Final

from kohort.cli.placing.document import Value
from kohort.cli.placing.read_document import read_document
from kohort.coordinator.placement.model import Group, Member, SubtopologyTasks
from kohort.coordinator.placement.what_if import MOST_MEMBERS, MOST_STANDBYS
from kohort.streams.tasks import TaskId

MOST_TASKS: Final = 1_000_000
MOST_MENTIONS: Final = 2_000_000
"""How often tasks may be named in a file, in all; a range names each of its own."""

_TOP: Final = ("subtopologies", "members", "standbys", "rack_tags", "lags", "ends", "acceptable_lag")
_OF_A_SUBTOPOLOGY: Final = ("partitions", "state_stores")
_OF_A_MEMBER: Final = ("process", "tags", "active", "standby")

_MOST: Final = 2**63 - 1
"""Of records, as Kafka counts them."""


def read_group(text: str, file: str) -> Group:
    """The group that a file describes. A member without a process has one of its own, called as the member.

    Raises:
        DocumentError: there is a mistake in it; says where, and what would be right.
    """
    document = read_document(text, file)
    if document.data is None:
        document.refuse("it is empty; a group has at least subtopologies and members")
    top = _mapping(document, "a group", _TOP)
    for key in ("subtopologies", "members"):
        if key not in top:
            document.refuse(f"{key} are missing")
    subtopologies = _subtopologies(top["subtopologies"])
    tasks = _Tasks(subtopologies)
    members = _members(top["members"], tasks)
    return Group(
        subtopologies=subtopologies,
        members=members,
        standbys=_number(top["standbys"], MOST_STANDBYS) if "standbys" in top else 0,
        rack_tags=_texts(top["rack_tags"]) if "rack_tags" in top else (),
        lags=_lags(top["lags"], members, tasks) if "lags" in top else {},
        ends=dict(tasks.numbers(top["ends"])) if "ends" in top else {},
        **({"acceptable_lag": _number(top["acceptable_lag"], _MOST)} if "acceptable_lag" in top else {}),
    )


class _Tasks:
    """Reads tasks, and numbers of records by task; refuses tasks that don't exist."""

    def __init__(self, subtopologies: tuple[SubtopologyTasks, ...]) -> None:
        self._partitions = {subtopology.id: subtopology.partitions for subtopology in subtopologies}
        self._mentions = 0

    def tasks(self, value: Value) -> Iterator[tuple[TaskId, Value]]:
        """The tasks of a mapping from subtopologies to partitions, each with where it stands; none of them twice."""
        seen = set()
        for name, partitions in _mapping(value, "partitions by subtopology", self._partitions, "subtopology").items():
            for partition, place in self._numbers_of(name, partitions):
                task = TaskId(name, partition)
                if task in seen:
                    place.refuse(f"partition {partition} stands here twice")
                seen.add(task)
                yield task, place

    def numbers(self, value: Value) -> Iterator[tuple[TaskId, int]]:
        """A number of records by task; for a subtopology it may be one number for all of its tasks."""
        for name, found in _mapping(value, "records by subtopology", self._partitions, "subtopology").items():
            if not isinstance(found.data, dict):
                records, count = _number(found, _MOST), self._partitions[name]
                self._mention(count, found)
                yield from ((TaskId(name, partition), records) for partition in range(count))
                continue
            seen = set()
            for key, number in found.data.items():
                records = _number(number, _MOST)
                for partition in self._ranges(name, key, number):
                    if partition in seen:
                        number.refuse(f"partition {partition} stands here twice")
                    seen.add(partition)
                    yield TaskId(name, partition), records

    def _numbers_of(self, name: str, value: Value) -> Iterator[tuple[int, Value]]:
        if isinstance(value.data, dict):
            value.refuse("partitions are a list, or ranges such as 0-3, 7")
        for item in value.data if isinstance(value.data, list) else [value]:
            if isinstance(item.data, (dict, list)):
                item.refuse("a partition is a number, or a range such as 0-3")
            for partition in self._ranges(name, item.data or "", item):
                yield partition, item

    def _ranges(self, name: str, text: str, place: Value) -> Iterator[int]:
        """The partitions that a text such as `0-3, 7` stands for; nothing for an empty one."""
        count = self._partitions[name]
        for part in text.split(",") if text.strip() else ():
            match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", part)
            if match is None:
                place.refuse(f"{_cut(part.strip())} is neither a partition nor a range of them, such as 0-3")
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first:
                place.refuse(f"{part.strip()} ends before it begins")
            if last >= count:
                there = f"they are 0-{count - 1}" if count else "it has none"
                place.refuse(f"subtopology {_cut(name)} has no partition {last}: {there}")
            self._mention(last - first + 1, place)
            yield from range(first, last + 1)

    def _mention(self, count: int, place: Value) -> None:
        self._mentions += count
        if self._mentions > MOST_MENTIONS:
            place.refuse(f"the file names tasks more than {MOST_MENTIONS:,} times up to here; that is too much")


def _subtopologies(value: Value) -> tuple[SubtopologyTasks, ...]:
    found, tasks = [], 0
    for name, item in _mapping(value, "subtopologies by their id").items():
        parts = _mapping(item, "partitions and state_stores", _OF_A_SUBTOPOLOGY)
        if "partitions" not in parts:
            item.refuse("partitions are missing: how many tasks has it?")
        partitions = _number(parts["partitions"], MOST_TASKS)
        tasks += partitions
        if tasks > MOST_TASKS:
            parts["partitions"].refuse(f"more than {MOST_TASKS:,} tasks in all; that many can't be placed")
        found.append(
            SubtopologyTasks(name, partitions, _number(parts["state_stores"]) if "state_stores" in parts else 0)
        )
    return tuple(found)


def _members(value: Value, tasks: _Tasks) -> tuple[Member, ...]:
    owners: dict[TaskId, str] = {}
    found = []
    for name, item in _mapping(value, "members by their id").items():
        parts = _mapping(item, "a member", _OF_A_MEMBER)
        active = set()
        if "active" in parts:
            for task, place in tasks.tasks(parts["active"]):
                if (owner := owners.setdefault(task, name)) != name:
                    place.refuse(f"partition {task.partition} is active at {_cut(owner)} as well; one has to have it")
                active.add(task)
        standby = {task for task, _ in tasks.tasks(parts["standby"])} if "standby" in parts else set()
        process = (_text(parts["process"]) if "process" in parts else "") or name
        tags = {tag: _text(given) for tag, given in _mapping(parts["tags"], "tags").items()} if "tags" in parts else {}
        found.append(Member(name, process, tags, frozenset(active), frozenset(standby)))
    if len(found) > MOST_MEMBERS:
        value.refuse(f"{len(found):,} members; more than {MOST_MEMBERS:,} can't be placed")
    return tuple(found)


def _lags(value: Value, members: tuple[Member, ...], tasks: _Tasks) -> dict[tuple[str, TaskId], int]:
    processes = {member.process for member in members}
    found = _mapping(value, "records by process, subtopology and partition", processes, "process")
    return {(process, task): lag for process, item in found.items() for task, lag in tasks.numbers(item)}


def _mapping(value: Value, what: str, known: Collection[str] | None = None, kind: str = "key") -> dict[str, Value]:
    """The items of a mapping; nothing for an empty place. Keys that aren't known are refused, if there are such."""
    if value.data is None:
        return {}
    if not isinstance(value.data, dict):
        value.refuse(f"a mapping is needed here ({what}), not {_described(value)}")
    for key, item in value.data.items():
        if not key:
            item.refuse("the name of this is empty")
        if known is not None and key not in known:
            close = difflib.get_close_matches(key, known, 1)
            meant = f"did you mean {close[0]}?" if close else f"known are {_cut(', '.join(sorted(known)) or 'none')}"
            item.refuse(f"there is no {kind} {_cut(key)!r}; {meant}")
    return value.data


def _number(value: Value, most: int = 2**31 - 1) -> int:
    """A whole number from 0 to `most`; digits may be grouped with underscores."""
    if not isinstance(value.data, str) or not re.fullmatch("[0-9][0-9_]{0,39}", value.data):
        value.refuse(f"a whole number of at least 0 is needed here, not {_described(value)}")
    number = int(value.data.replace("_", ""))
    if number > most:
        value.refuse(f"{_cut(value.data)} is too large; the most is {most:,}")
    return number


def _text(value: Value) -> str:
    if isinstance(value.data, (dict, list)):
        value.refuse(f"a text is needed here, not {_described(value)}")
    return value.data or ""


def _texts(value: Value) -> tuple[str, ...]:
    """A list of texts; one that stands alone is a list of one."""
    found = [_text(item) for item in value.data] if isinstance(value.data, list) else [_text(value)]
    return tuple(dict.fromkeys(text for text in found if text))


def _described(value: Value) -> str:
    match value.data:
        case None:
            return "nothing"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case str():
            return _cut(value.data)


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
