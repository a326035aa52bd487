"""What is committed beside an offset: with what the next owner of the task goes on, and which program that was."""

from __future__ import annotations

import json
from typing import NamedTuple

__all__ = ["Committed", "committed_by", "metadata"]


class Committed(NamedTuple):
    """The largest event time that was read of the stream (ms; None: nothing yet), and the program's fingerprint."""

    stream_time: int | None
    program: str


def metadata(stream_time: int | None, program: str) -> str:
    """The text that is committed beside an offset."""
    return json.dumps({"stream_time": stream_time, "program": program}, separators=(",", ":"))


def committed_by(text: str) -> Committed | None:
    """What such a text says; None if another tool has set the offset."""
    try:
        said = json.loads(text)
        stream_time, program = said["stream_time"], said["program"]
        return Committed(None if stream_time is None else int(stream_time), str(program))
    except (ValueError, KeyError, TypeError):
        return None
