"""Kafka's StickyTaskAssignor, in a JVM that stays warm."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

from kohort.coordinator.placement import Group, Placement, TaskId
from tests.interop.java import build

PROJECT = Path(__file__).parent / "java"
FLAGS = ("-Xms1g", "-Xmx1g", "-Djava.awt.headless=true")
WARMUP = 1.0
"""Seconds that each group is assigned for before the clock counts; by then the JVM has compiled what is hot."""


class Kafka:
    """The JVM. It is a context manager."""

    def __init__(self) -> None:
        command = ["java", *FLAGS, "-cp", _classpath(), "kohort.benchmarks.Assignor"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Kafka:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()

    def place(self, group: Group, rounds: int) -> tuple[Placement, list[float]]:
        """What Kafka makes of a group, and the seconds that each of so many rounds took."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(_problem(group, rounds)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended with code {self._process.wait()}")
        answer = json.loads(line)
        return _placement(answer["members"]), [nanos / 1e9 for nanos in answer["nanos"]]


def _classpath() -> str:
    """What Maven fetches and compiles, once."""
    target = build.built(PROJECT, "placement")
    return f"{target / 'classes'}:{target / 'dependency'}/*"


def _problem(group: Group, rounds: int) -> dict[str, Any]:
    return {
        "subtopologies": {
            subtopology.id: {"partitions": subtopology.partitions, "stateful": subtopology.state_stores > 0}
            for subtopology in group.subtopologies
        },
        "members": {
            member.id: {
                "process": member.process,
                "active": _by_subtopology(member.active),
                "standby": _by_subtopology(member.standby),
            }
            for member in group.members
        },
        "standbys": group.standbys,
        "warmup": WARMUP,
        "rounds": rounds,
    }


def _by_subtopology(tasks: frozenset[TaskId]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for task in tasks:
        found[task.subtopology].append(task.partition)
    return found


def _placement(members: dict[str, Any]) -> Placement:
    active: dict[TaskId, str] = {}
    standby: dict[TaskId, tuple[str, ...]] = {}
    for member, tasks in sorted(members.items()):
        for name, partitions in tasks["active"].items():
            active.update((TaskId(name, partition), member) for partition in partitions)
        for name, partitions in tasks["standby"].items():
            for partition in partitions:
                task = TaskId(name, partition)
                standby[task] = (*standby.get(task, ()), member)
    return Placement(active, standby)
