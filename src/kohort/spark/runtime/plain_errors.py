"""Errors in plain words, for who reads why nothing goes on."""

from __future__ import annotations


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
