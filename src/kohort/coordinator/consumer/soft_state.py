"""The soft state of a consumer group: what isn't in the log, and what a restart may lose."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohort.coordinator.step import Client


@dataclass(frozen=True, slots=True)
class RegexJob:
    """Regular expressions to be resolved, as far as a client may describe the topics."""

    group_id: str
    regexes: tuple[str, ...]
    client: Client


@dataclass(frozen=True, slots=True)
class SoftState:
    """The soft state of a group. A draft replaces it; it becomes the group's when the draft's records are in the log.

    Equal ones lead to the same answers: what is left out of the comparison changes none.

    Attributes:
        topics_checked: whether the metadata hash is that of the topics as they are now.
        job: regular expressions that are being resolved.
        regexes_stale: topics were created since regular expressions were resolved, or it has been a long time.
        client: the latest that subscribed with a regular expression, in whose name these are resolved; None if none did
            since the shard was loaded.
    """

    topics_checked: bool = False
    job: RegexJob | None = field(default=None, compare=False)
    regexes_stale: bool = field(default=False, compare=False)
    client: Client | None = field(default=None, compare=False)
