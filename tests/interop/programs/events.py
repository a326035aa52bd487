"""How a member program tells its parent what happens to it: one line of JSON an event, with the time it happened."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any, NamedTuple


class Options(NamedTuple):
    """What the parent wants, as JSON in the first argument."""

    bootstrap: str
    group: str
    topic: str
    strategy: str = "range"
    protocol: str = "classic"
    instance: str | None = None
    session_timeout: int = 6000  # ms
    target: str = ""
    transactional_id: str = ""


def options() -> Options:
    return Options(**json.loads(sys.argv[1]))


def say(event: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"at": time.monotonic_ns(), "event": event} | facts) + "\n")
    sys.stdout.flush()


class Terminated:
    """True once SIGTERM has come."""

    def __init__(self) -> None:
        self.value = False
        signal.signal(signal.SIGTERM, self.note)

    def note(self, *_: object) -> None:
        self.value = True

    def __bool__(self) -> bool:
        return self.value
