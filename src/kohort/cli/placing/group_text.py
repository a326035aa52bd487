"""A group as the file that `kohort place` reads."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kohort.coordinator.placement.model import Group, Member
from kohort.extras import require
from kohort.number_ranges import numbers
from kohort.streams.tasks import TaskId, by_subtopology


def group_as_yaml(group: Group) -> str:
    """The file, in YAML; `read_group` makes the same group of it, but for members that had no process named."""
    text = _dumped(_plain(group), unicode=True)
    # PyYAML writes these as they are, and reads them as ends of lines.
    return _dumped(_plain(group), unicode=False) if re.search("[\x85\u2028\u2029]", text) else text


def group_as_json(group: Group) -> str:
    return json.dumps(_plain(group), indent=2, ensure_ascii=False) + "\n"


def _dumped(plain: dict[str, Any], unicode: bool) -> str:
    require("placement", "writing a group in YAML", ("yaml",))
    import yaml

    text: str = yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, allow_unicode=unicode, width=1000)
    return text


def _plain(group: Group) -> dict[str, Any]:
    """Returns the group without what is the default."""
    plain: dict[str, Any] = {"standbys": group.standbys}
    if group.rack_tags:
        plain["rack_tags"] = list(group.rack_tags)
    plain["acceptable_lag"] = group.acceptable_lag
    plain["subtopologies"] = {
        subtopology.id: {"partitions": subtopology.partitions, "state_stores": subtopology.state_stores}
        for subtopology in group.subtopologies
    }
    plain["members"] = {member.id: _member(member) for member in group.members}
    if group.lags:
        lags: defaultdict[str, dict[TaskId, int]] = defaultdict(dict)
        for (process, task), lag in group.lags.items():
            lags[process][task] = lag
        plain["lags"] = {process: _numbers(of) for process, of in lags.items()}
    if group.ends:
        plain["ends"] = _numbers(group.ends)
    return plain


def _member(member: Member) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    if member.process not in ("", member.id):
        plain["process"] = member.process
    if member.tags:
        plain["tags"] = dict(member.tags)
    if member.active:
        plain["active"] = _tasks(member.active)
    if member.standby:
        plain["standby"] = _tasks(member.standby)
    return plain


def _tasks(tasks: Iterable[TaskId]) -> dict[str, str]:
    return {name: numbers(partitions) for name, partitions in by_subtopology(tasks).items()}


def _numbers(records: Any) -> dict[str, dict[str, int]]:
    """Records by subtopology and partitions; partitions with the same number stand together."""
    found: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for task, number in sorted(records.items()):
        found[task.subtopology][number].append(task.partition)
    return {name: {numbers(of): number for number, of in by_number.items()} for name, by_number in found.items()}
