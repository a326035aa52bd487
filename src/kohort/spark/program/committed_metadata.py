"""The metadata of committed offsets: the stream time, with which the task's next owner goes on, and the program.

And what the stores hold that are made of the topic (`store_formats`), for a changed program to be compared with; and,
where rows go to a function of the user's, the end of the batch that begins at the offset: see `Committed`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kohort.spark.program.store_formats import StoreFormats, as_plain, parsed

_DIGEST: Final = 8
"""Digits of an expression's digest."""
MOST_OF_FORMATS: Final = 3_000
"""Characters of formats: brokers take 4,096 of metadata (`offset.metadata.max.bytes`), so longer ones are left out."""

NotedFormats = Mapping[str, Any]
"""Formats as JSON has them."""


@dataclass(frozen=True)
class Fingerprint:
    """Says whether two programs can read each other's state: they can if the fingerprints are equal.

    Attributes:
        text: 16 hex digits.
        expressions: digests of the aggregations' expressions, as Spark prints them, in the program's order. Two
            fingerprints may be equal though these differ. () in what was committed before there were any.
    """

    text: str
    expressions: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.text


class Committed(NamedTuple):
    """What an offset was committed with.

    Attributes:
        stream_time: the largest event time that was read of the stream (ms; None: nothing yet).
        program: the program's fingerprint.
        until: the end of the batch that was begun at the offset. A function may have had it, so it has to be the same
            batch when it is tried again. None: no batch was begun.
        formats: of what is made of the topic. None: it doesn't say.
    """

    stream_time: int | None
    program: Fingerprint
    until: int | None = None
    formats: StoreFormats | None = None


def noted(formats: StoreFormats) -> NotedFormats | None:
    """Formats as metadata has them; None where they are too long for it."""
    plain = as_plain(formats)
    return plain if len(json.dumps(plain, separators=(",", ":"))) <= MOST_OF_FORMATS else None


def metadata(
    stream_time: int | None, program: Fingerprint, until: int | None = None, formats: NotedFormats | None = None
) -> str:
    """The text of the metadata. Its formats are those of `noted`."""
    said: dict[str, Any] = {"stream_time": stream_time, "program": program.text}
    if until is not None:
        said["until"] = until
    if program.expressions:
        said["expressions"] = "".join(program.expressions)
    if formats is not None:
        said["stores"] = formats
    return json.dumps(said, separators=(",", ":"))


def committed_by(text: str) -> Committed | None:
    """Parses the metadata; None if another tool has set the offset."""
    try:
        said = json.loads(text)
        stream_time, program = said["stream_time"], said["program"]
        until = said.get("until")
        digests = str(said.get("expressions", ""))
        expressions = tuple(digests[at : at + _DIGEST] for at in range(0, len(digests), _DIGEST))
        return Committed(
            None if stream_time is None else int(stream_time),
            Fingerprint(str(program), expressions),
            None if until is None else int(until),
            parsed(said["stores"]) if "stores" in said else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
