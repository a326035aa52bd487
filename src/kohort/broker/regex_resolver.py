"""Resolves the regular expressions of consumer groups, between other work of the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from kohort.broker.authorizer import Authorizer, Operation, ResourceType
from kohort.broker.topics import Topics
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.coordinator.regex import full_matches
from kohort.protocol.errors import shown

log = logging.getLogger("kohort.broker.regex_resolver")

Resolved = Mapping[str, tuple[str, ...]]


class RegexResolver:
    """Takes jobs, and does one regular expression in a turn of the loop: O(topics).

    Args:
        authorizer: says which topics a client may describe; others don't match. None allows all.

    Attributes:
        on_resolved: called with a job, and the sorted names of topics by regular expression.
    """

    def __init__(self, topics: Topics, authorizer: Authorizer | None) -> None:
        self.on_resolved: list[Callable[[RegexJob, Resolved], None]] = []
        self._topics: Final = topics
        self._authorizer: Final = authorizer
        self._jobs: deque[tuple[RegexJob, dict[str, tuple[str, ...]]]] = deque()
        self._handle: asyncio.Handle | None = None

    def __call__(self, job: RegexJob) -> None:
        """Begins a job."""
        self._jobs.append((job, {}))
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._run)

    def stop(self) -> None:
        """Drops all jobs."""
        self._jobs.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _run(self) -> None:
        """Resolves the next regular expression."""
        job, resolved = self._jobs[0]
        regex = next((regex for regex in job.regexes if regex not in resolved), None)
        if regex is not None:
            resolved[regex] = self._resolve(regex, job)
        if len(resolved) == len(set(job.regexes)):
            self._jobs.popleft()
            for listener in self.on_resolved:
                listener(job, resolved)
        self._handle = asyncio.get_running_loop().call_soon(self._run) if self._jobs else None

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
