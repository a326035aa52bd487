"""Resolves the regular expressions of consumer groups, between other work of the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from kohort.broker.authorizer import Authorizer, Operation, ResourceType
from kohort.broker.topics import Topics
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.protocol.errors import shown
from kohort.regex import full_matches

log = logging.getLogger("kohort.broker.regex_resolver")

Resolved = Mapping[str, tuple[str, ...]]


class _Work(NamedTuple):
    """A job that has begun: what is still to be resolved, and what is."""

    job: RegexJob
    pending: Iterator[str]
    resolved: dict[str, tuple[str, ...]]


class RegexResolver:
    """Takes jobs, and does one regular expression in a turn of the loop, each job's in turn: O(topics).

    Args:
        authorizer: says which topics a client may describe; others don't match. None allows all.

    Attributes:
        on_resolved: called with a job, and the sorted names of topics by regular expression; None if it failed.
    """

    def __init__(self, topics: Topics, authorizer: Authorizer | None) -> None:
        self.on_resolved: list[Callable[[RegexJob, Resolved | None], None]] = []
        self._topics: Final = topics
        self._authorizer: Final = authorizer
        self._jobs: deque[_Work] = deque()
        self._handle: asyncio.Handle | None = None

    def __call__(self, job: RegexJob) -> None:
        """Begins a job."""
        self._add(_Work(job, iter(job.regexes), {}))

    def _add(self, work: _Work) -> None:
        self._jobs.append(work)
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._run)

    def stop(self) -> None:
        """Drops all jobs."""
        self._jobs.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _run(self) -> None:
        """Resolves the next regular expression of one job, then it is the next job's turn."""
        work = self._jobs.popleft()
        self._handle = asyncio.get_running_loop().call_soon(self._run) if self._jobs else None
        resolved: Resolved | None = work.resolved
        try:
            if (regex := next(work.pending, None)) is not None:
                work.resolved[regex] = self._resolve(regex, work.job)
                self._add(work)
                return
        except Exception:  # other groups' jobs go on
            log.exception("regular expressions could not be resolved group=%s", shown(work.job.group_id))
            resolved = None
        for listener in self.on_resolved:
            listener(work.job, resolved)

    def _resolve(self, regex: str, job: RegexJob) -> tuple[str, ...]:
        names = sorted(topic.name for topic in self._topics)
        try:
            matches = full_matches(regex, names)
        except ValueError as error:  # another server's, which took it
            log.warning("a regular expression matches nothing group=%s because=%s", shown(job.group_id), error)
            return ()
        found = (name for name, matched in zip(names, matches, strict=True) if matched)
        return tuple(name for name in found if self._may_describe(job, name))

    def _may_describe(self, job: RegexJob, name: str) -> bool:
        if self._authorizer is None:
            return True
        client = job.client
        host = client.host.removeprefix("/")
        return self._authorizer.allowed(client.principal, host, Operation.DESCRIBE, ResourceType.TOPIC, name)
