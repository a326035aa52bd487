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
"""Lines a minute of what was refused, for each action: who may do nothing can't fill the disk, nor hide the rest."""

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
        pace: seconds that only go on, by which refusals are counted.

    Raises:
        OSError: the file can't be written.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.time,
        pace: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._stream = stream
        self._clock = clock
        self._pace = pace
        self._minutes: dict[str, tuple[float, int]] = {}
        self._left_out = 0
        self._torn = False

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
        if self._left_out:
            line["left_out"] = self._left_out
        data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        if self._file is None:
            stream = self._stream or sys.stderr
            stream.write(data.decode())
            stream.flush()
        else:
            self._append(self._file, data)
        self._left_out = 0

    def _append(self, file: int, data: bytes) -> None:
        if self._torn:  # the line that broke off keeps to itself
            data = b"\n" + data
        while data:
            data = data[os.write(file, data) :]
            self._torn = bool(data)

    def refused(self, who: Who, why: str, *, action: str, target: str = "", told: Mapping[str, Any] = {}) -> None:
        """Writes a line about what was refused, in short; of very many a minute, only how many there were."""
        now = self._pace()
        began, count = self._minutes.get(action, (now, 0))
        if now - began >= _MINUTE_S:
            began, count = now, 0
        self._minutes[action] = began, count + 1
        if count >= _REFUSALS:
            self._left_out += 1
            return
        short = Who(who.user[:_SHORT], who.address)
        self.write(short, "refused", action=action[:_SHORT], target=target[:_SHORT], why=why[:_SHORT], **told)

    def close(self) -> None:
        """Closes the file. May be called twice."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
