"""What `kohort consume` reads, from its options."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Literal

from kohort.cli.client.times import parse_time
from kohort.cli.data.selection import Selection
from kohort.cli.terminal import fail


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOptions:
    """Which records are read: topics, partitions, where to start and where to stop; None for what wasn't given."""

    topics: list[str] | None
    pattern: str | None
    partitions: list[int] | None
    from_beginning: bool
    offset: str | None
    start_time: str | None
    end_time: str | None
    stop: bool
    max_messages: int | None

    def selection(self) -> Selection:
        """The selection; the command ends if the options contradict each other."""
        if bool(self.topics) == (self.pattern is not None):
            fail("topics are wanted, or --pattern REGEX")
        for topic in self.topics or ():
            _check_name(topic)
        return Selection(
            topics=tuple(dict.fromkeys(self.topics or ())),
            pattern=_regex(self.pattern),
            partitions=tuple(sorted(set(self.partitions))) if self.partitions else None,
            start=self._start(),
            start_time=_time("--from", self.start_time),
            end_time=_time("--to", self.end_time),
            bounded=self.stop,
            most=self.max_messages,
        )

    def _start(self) -> int | Literal["earliest", "latest"]:
        given = {
            "--from-beginning": self.from_beginning,
            "--offset": self.offset is not None,
            "--from": self.start_time is not None,
        }
        if sum(given.values()) > 1:
            names = " and ".join(name for name, is_given in given.items() if is_given)
            fail(f"{names} exclude each other: one start is wanted")
        if self.from_beginning or self.offset == "earliest":
            return "earliest"
        if self.offset is None or self.offset == "latest":
            return "latest"
        if not re.fullmatch(r"-[1-9]\d{0,17}|\d{1,18}", self.offset):
            fail(f"--offset {self.offset}: earliest, latest, an offset, or -N for the last N is wanted")
        return int(self.offset)


def _check_name(topic: str) -> None:
    """Other commands take a topic with its partition: that is told from a name that isn't valid."""
    name, colon, number = topic.partition(":")
    if colon and name:
        only = f" {number}" if re.fullmatch(r"\d{1,9}", number, re.ASCII) else " N, for each"
        fail(f"{topic}: a topic's name has no colon; one partition is read with: {name} --partition{only}")


def _regex(pattern: str | None) -> str | None:
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            fail(f"--pattern {pattern}: {error}")
    return pattern


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_time(text, int(time.time() * 1000))
    except ValueError as error:
        fail(f"{option}: {error}")
