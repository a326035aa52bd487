"""The audit log: a line of JSON for each change, and for each that was refused."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

__all__ = ["AuditLog", "Who"]

_SHORT: Final = 300
"""Characters of what strangers say."""

_REFUSALS: Final = 60
"""Lines a minute of what was refused: who may do nothing can't fill the disk."""

_MINUTE_S: Final = 60.0


class Who(NamedTuple):
    """Who does something: their name, "" for none, and the address that they come from."""

    user: str
    address: str


class AuditLog:
    """Writes lines, each at once and whole.

    Args:
        path: a file that they are appended to, readable by its owner alone if it is made; None for standard error.
        stream: instead of standard error.
        clock: seconds since 1970.

    Raises:
        OSError: the file can't be written.
    """

    def __init__(
        self, path: Path | None = None, *, stream: TextIO | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._stream = stream
        self._clock = clock
        self._minute = 0.0
        self._in_minute = 0
        self._left_out = 0

    def write(self, who: Who, result: str, *, action: str, target: str, **told: Any) -> None:
        """Writes a line.

        Args:
            who: who does it.
            result: "begun", "done", "failed" or "refused".
            action, target: what, and to which group, topic or page.
            told: more of it: what is before and after, or why it was refused.

        Raises:
            OSError: it can't be written: then nothing must be done.
        """
        now = self._clock()
        line = {
            "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds"),
            "user": who.user or None,
            "from": who.address,
            "action": action,
            "target": target,
            "result": result,
            **told,
        }
        data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        if self._file is None:
            stream = self._stream or sys.stderr
            stream.write(data.decode())
            stream.flush()
            return
        while data:
            data = data[os.write(self._file, data) :]

    def refused(self, who: Who, why: str, *, action: str, target: str = "", told: Mapping[str, Any] = {}) -> None:
        """Writes a line about what was refused, in short; of very many a minute, only how many there were."""
        now = self._clock()
        if now - self._minute >= _MINUTE_S:
            self._minute, self._in_minute = now, 0
        self._in_minute += 1
        if self._in_minute > _REFUSALS:
            self._left_out += 1
            return
        more: dict[str, Any] = {"left_out": self._left_out} if self._left_out else {}
        self._left_out = 0
        short = Who(who.user[:_SHORT], who.address)
        self.write(short, "refused", action=action[:_SHORT], target=target[:_SHORT], why=why[:_SHORT], **more, **told)

    def close(self) -> None:
        """Closes the file. May be called twice."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
