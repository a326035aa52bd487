"""Which Java it is that says its version."""

from __future__ import annotations

import re


def java_version(output: str) -> int | None:
    """The major version in the output of `java -version`: 17 for "17.0.15", 8 for "1.8.0_402"."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if found is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)
