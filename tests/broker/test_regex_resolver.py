"""Resolving regular expressions between other work of the loop."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kohort.broker.regex_resolver import RegexResolver, Resolved
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.coordinator.step import Client

TOPICS: Any = [SimpleNamespace(name=name) for name in ("b", "a", "c")]


class Broken:
    """An authorizer that fails once."""

    def __init__(self) -> None:
        self.asked = 0

    def allowed(self, *args: object) -> bool:
        del args
        self.asked += 1
        if self.asked == 1:
            raise RuntimeError("no rights today")
        return True


async def outcomes(jobs: list[RegexJob], authorizer: object = None) -> list[tuple[str, Resolved | None]]:
    """What becomes of jobs, by group, in the order in which they are done."""
    resolver = RegexResolver(TOPICS, cast(Any, authorizer))
    found: list[tuple[str, Resolved | None]] = []
    done = asyncio.Event()

    def take(job: RegexJob, resolved: Resolved | None) -> None:
        found.append((job.group_id, resolved))
        if len(found) == len(jobs):
            done.set()

    resolver.on_resolved.append(take)
    for job in jobs:
        resolver(job)
    await asyncio.wait_for(done.wait(), 10)
    return found


def resolve(jobs: list[RegexJob], authorizer: object = None) -> list[tuple[str, Resolved | None]]:
    return asyncio.run(outcomes(jobs, authorizer))


def job(group: str, *regexes: str) -> RegexJob:
    return RegexJob(group, regexes, Client())


def test_the_names_of_the_topics_that_match_are_sorted() -> None:
    assert resolve([job("one", "a|b", "x", "(")]) == [("one", {"a|b": ("a", "b"), "x": (), "(": ()})]


def test_a_group_with_one_does_not_wait_for_a_group_with_many() -> None:
    found = resolve([job("many", *map(str, range(100))), job("one", "a")])
    assert [group for group, _ in found] == ["one", "many"]


def test_a_job_that_fails_is_told_so_and_the_next_one_is_done(caplog: pytest.LogCaptureFixture) -> None:
    found = resolve([job("one", "a"), job("two", "a")], Broken())
    assert found == [("one", None), ("two", {"a": ("a",)})]
    assert "could not be resolved" in caplog.text
