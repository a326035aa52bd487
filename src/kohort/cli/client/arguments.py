"""Parsing of arguments: settings, partitions, durations, files of offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kohort.cli.client.times import UNITS_MS
from kohort.cli.terminal import fail
from kohort.client.types import TopicPartition

_ISO_DURATION: Final = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)


def parse_settings(texts: Iterable[str], option: str) -> dict[str, str]:
    """Parses KEY=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            fail(f"{option} {text}: KEY=VALUE is wanted, such as retention.ms=3600000")
        found[key.strip()] = value
    return found


def parse_partitions(texts: Iterable[str], option: str) -> tuple[list[str], list[TopicPartition]]:
    """Parses T and T:0,3-5 into topics and partitions."""
    topics: list[str] = []
    partitions: list[TopicPartition] = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not topic:
            fail(f"{option} {text}: a topic's name is wanted, or one with partitions: flights:0,3-5")
        if not colon:
            topics.append(topic)
            continue
        for part in numbers.split(","):
            match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip(), re.ASCII)
            if match is None or int(match[2] or match[1]) < int(match[1]):
                fail(f"{option} {text}: {part.strip()!r} is no partition; flights:0,3-5 is how they are written")
            partitions += [
                TopicPartition(topic, number) for number in range(int(match[1]), int(match[2] or match[1]) + 1)
            ]
    return topics, partitions


def parse_duration(text: str, option: str) -> int:
    """Parses 90s, 15m, 1h, 7d, or ISO 8601's P1DT2H, into ms."""
    simple = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*(ms|s|m|h|d|w)", text.strip(), re.ASCII)
    if simple is not None:
        return int(float(simple[1]) * UNITS_MS[simple[2]])
    iso = _ISO_DURATION.fullmatch(text.strip())
    if iso is not None and any(iso.groups()):
        return int(sum(float(value) * UNITS_MS[unit.lower()] for unit, value in iso.groupdict().items() if value))
    fail(f"{option} {text}: a duration is wanted, such as 90s, 15m, 1h, 7d or PT1H30M")


def parse_number(text: str, option: str, what: str, *, least: int | None = None) -> int:
    """Parses a whole number of at most 18 digits; `what` it is."""
    if re.fullmatch(r"[+-]?\d{1,18}", text.strip(), re.ASCII) and (least is None or int(text) >= least):
        return int(text)
    such = "1500, or -1500" if least is None else f"1500; {least} is the least"
    fail(f"{option} {text}: {what} is wanted, a whole number such as {such}")


def offsets_file(path: str) -> dict[TopicPartition, int]:
    """Reads offsets from lines `topic,partition,offset`, as `--export` and Kafka's tool write them."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        fail(f"--from-file: can't read {path}: {getattr(error, 'strerror', None) or error}")
    found: dict[TopicPartition, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        parts = [part.strip().strip('"') for part in line.split(",")]
        if len(parts) != 3 or not parts[0] or not all(re.fullmatch(r"\d{1,18}", part, re.ASCII) for part in parts[1:]):
            fail(f"{path}, line {number}: topic,partition,offset is wanted, not {line!r}")
        found[TopicPartition(parts[0], int(parts[1]))] = int(parts[2])
    if not found:
        fail(f"{path} holds no offsets; lines are topic,partition,offset")
    return found
