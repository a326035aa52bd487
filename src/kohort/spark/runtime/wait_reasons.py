"""Why nothing goes on: one reason out of many places that may wait."""

from __future__ import annotations

from collections.abc import Callable


class Reasons:
    """Collects reasons from whoever waits, and tells the oldest one that still holds; None when nobody waits."""

    def __init__(self, tell: Callable[[str | None], None]) -> None:
        self._tell = tell
        self._held: dict[str, str] = {}

    def of(self, source: str) -> Callable[[str | None], None]:
        """What a source calls with its reason, or None when it goes on."""

        def waiting(reason: str | None) -> None:
            if reason is None:
                if self._held.pop(source, None) is None:
                    return
            else:
                self._held[source] = reason
            self._tell(next(iter(self._held.values()), None))

        return waiting


def plain(error: BaseException) -> str:
    """An error in a line or a few: of one that came through Spark, what was raised in Python, or the first line."""
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    traceback = [position for position, line in enumerate(lines) if line.startswith("Traceback (most recent")]
    if traceback:
        # The innermost error is the line after the last frame: frames begin with "File", and code follows them.
        for line in lines[traceback[-1] + 1 :]:
            name, colon, _ = line.partition(":")
            if colon and name.replace(".", "").replace("_", "").isalnum() and name.rpartition(".")[2][:1].isupper():
                return line[:1000]
    return lines[0][:1000] if lines else text
