"""Regular expressions of members: RE2 patterns of topic names, which the broker resolves apart from heartbeats.

They are resolved together, so that the group rebalances once: when a member brings a new one, when topics are created,
and at intervals (`group.consumer.regex.refresh.interval.ms`), as clients' rights may have changed; but at most every
ten seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.soft_state import RegexJob
from kohort.coordinator.consumer.subscriptions import ResolvedRegex
from kohort.coordinator.step import Client
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.regex import full_matches

MIN_INTERVAL_MS: Final = 10_000
"""The least time between two resolutions in a group."""


def update_regex(draft: Draft, before: ConsumerMetadata, after: ConsumerMetadata, client: Client) -> str | None:
    """Takes over a member's regular expression, once its metadata is in the draft.

    Returns:
        Why the epoch is to be bumped; None if the topics of the member's regular expression are as before, or aren't
        known yet.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    old, new = before.regex or "", after.regex or ""
    if new:
        draft.soft = replace(draft.soft, client=client)
    if old == new:
        return None
    drop_unused(draft, old)
    if new and new not in draft.group.subscriptions.regexes:
        _check(new)
    if not new or draft.regex(new) is not None:
        return "a member's regular expression changed"
    return None


def _check(regex: str) -> None:
    try:
        full_matches(regex, ())
    except ValueError as error:
        detail = f"SubscribedTopicRegex {shown(regex)} is not a valid RE2 regular expression: {error}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, detail) from None


def due_at(draft: Draft) -> int | None:
    """When regular expressions are to be resolved, in ms since 1970; None if there is no need, or it can't be done."""
    soft = draft.soft
    if soft.job is not None or soft.client is None or not draft.subscriptions.regexes:
        return None
    if not soft.regexes_stale and not draft.has_unresolved():
        return None
    resolved_at = draft.group.resolved_at
    return draft.now if not resolved_at else max(draft.now, resolved_at + MIN_INTERVAL_MS + 1)


def begin(draft: Draft) -> RegexJob:
    """Begins to resolve all regular expressions of the group."""
    client = draft.soft.client
    assert client is not None
    job = RegexJob(draft.group_id, tuple(draft.subscriptions.regexes), client)
    draft.soft = replace(draft.soft, job=job, regexes_stale=False)
    return job


def take_over(draft: Draft, job: RegexJob, topics: Mapping[str, tuple[str, ...]]) -> bool:
    """Takes the topics of regular expressions; returns whether one has others than before, or members gave any up."""
    changed = False
    for regex in job.regexes:
        if regex in draft.subscriptions.regexes and regex in topics:
            before = draft.regex(regex)
            had = () if before is None else before.topics
            changed = changed or had != topics[regex] or (before is None and _has_left(draft, regex))
            draft.put_regex(regex, ResolvedRegex(topics[regex], timestamp=draft.now))
    return changed


def _has_left(draft: Draft, regex: str) -> bool:
    """Whether a member with this regular expression has partitions yet, of what it subscribed to before."""
    return any(metadata.regex == regex and draft.target(name) for name, (metadata, _) in draft.members().items())


def drop_unused(draft: Draft, regex: str) -> None:
    """Removes a regular expression if no member subscribes with it."""
    if regex not in draft.subscriptions.regexes and draft.regex(regex) is not None:
        draft.put_regex(regex, None)
