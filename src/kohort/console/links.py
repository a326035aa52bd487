"""Addresses of pages. Names are parameters, since browsers would take a path "/groups/.." for another one."""

from __future__ import annotations

from urllib.parse import urlencode


def group_link(group_id: str) -> str:
    """The page of a group."""
    return "/group?" + urlencode({"id": group_id})


def placement_link(group_id: str, task: str | None = None) -> str:
    """The page of a group's placement, or of a task's place."""
    return "/group/placement?" + urlencode({"id": group_id} | ({} if task is None else {"task": task}))


def topic_link(topic: str) -> str:
    """The page of a topic."""
    return "/topic?" + urlencode({"name": topic})


def records_link(topic: str, partition: int | None = None) -> str:
    """The page of a topic's last records, or of those of a partition."""
    return "/records?" + urlencode({"topic": topic} | ({} if partition is None else {"partition": partition}))


def dead_letters_link(topic: str, group_id: str) -> str:
    """The last dead letters of a share group: those whose header has its name."""
    return "/records?" + urlencode({"topic": topic, "header": f"__dlq.errors.group = {group_id}"})
