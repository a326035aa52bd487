from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.tools import KCAT

from .face import Message, Transactional


class Kcat:
    """Text alone: its output is JSON. Keys and values are parted by bytes that texts don't have."""

    name = "kcat"
    writes_timestamps = False
    writes_bare_records = True

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, compression: str = "none", **settings: Any
    ) -> None:
        chosen = [f"-X{key}={value}" for key, value in ({"enable.idempotence": "true"} | settings).items()]
        to = ["-P", "-b", bootstrap, "-t", topic, "-p", "0", "-z", compression, *chosen]
        for (headers, keyed), same in itertools.groupby(messages, key=lambda m: (m.headers, m.key is not None)):
            named = [argument for name, value in headers for argument in ("-H", f"{name}={value.decode()}")]
            for has_value, some in itertools.groupby(same, key=lambda m: m.value is not None):
                lines = [(m.key + b"\x02" if m.key is not None else b"") + (m.value or b"") for m in some]
                nulls = [] if has_value else ["-Z"]
                kcat(*to, *named, *(["-K", r"\x02"] if keyed else []), *nulls, "-D", r"\x01", given=b"\x01".join(lines))

    def consume(self, bootstrap: str, topic: str, *, committed: bool = False) -> list[Message]:
        isolation = "read_committed" if committed else "read_uncommitted"
        said = kcat(
            "-C", "-J", "-e", "-q", "-b", bootstrap, "-t", topic, "-p", "0", "-o", "beginning",
            f"-Xisolation.level={isolation}", "-Xfetch.wait.max.ms=10",
        )  # fmt: skip
        return [read(line) for line in said.splitlines()]

    def transactional(self, bootstrap: str, transactional_id: str) -> AbstractContextManager[Transactional]:
        raise TypeError("kcat makes one transaction a process")

    def too_large(self, error: Exception) -> bool:
        return isinstance(error, subprocess.CalledProcessError) and b"Message size too large" in error.stderr


def command(*arguments: str) -> list[str]:
    """Starts it; the running test is skipped where it is missing."""
    KCAT.require()
    return ["kcat", *arguments]


def kcat(*arguments: str, given: bytes = b"") -> bytes:
    """What it printed, given that on its standard input; CalledProcessError if it failed."""
    return subprocess.run(command(*arguments), input=given, capture_output=True, timeout=60, check=True).stdout


def read(line: bytes) -> Message:
    fields = json.loads(line)
    names = fields.get("headers", [])
    headers = tuple((name, value.encode()) for name, value in zip(names[::2], names[1::2], strict=True))
    key, value = (None if text is None else text.encode() for text in (fields["key"], fields["payload"]))
    return Message(value, key, headers, fields["ts"], fields["offset"])
