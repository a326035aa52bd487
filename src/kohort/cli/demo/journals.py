"""The journals that the instances write, as lives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kohort.cli.demo.instances import Instance
from kohort.cli.demo.timeline import Life
from kohort.spark.running.listener import EpochDone, TasksNow

__all__ = ["last_words", "read_life"]


def read_life(instance: Instance, killed: float | None) -> Life:
    """What an instance wrote so far."""
    lines = _lines(instance.journal)
    epochs = [msgspec.convert(line, EpochDone) for line in lines if line["event"] == "epoch"]
    tasks = [msgspec.convert(line, TasksNow) for line in lines if line["event"] == "tasks"]
    return Life(instance.name, epochs, tasks, killed)


def last_words(instance: Instance) -> str | None:
    """What an instance said last of what it waits for, or of what failed; None if it goes on."""
    for line in reversed(_lines(instance.journal)):
        if line["event"] == "failed":
            return str(line["text"])
        if line["event"] == "waiting":
            return None if line["reason"] is None else str(line["reason"])
    return None


def _lines(journal: Path) -> list[dict[str, Any]]:
    """The events; what a crash left unfinished is no JSON, and left out."""
    found = []
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            found.append(msgspec.json.decode(line))
        except msgspec.DecodeError:
            continue
    return found
