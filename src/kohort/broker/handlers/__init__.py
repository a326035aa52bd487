"""What the broker does for each API: one file an API, named as in `kohort.protocol.messages`, and their index.

A file declares what it serves, and handles it:

    SERVED: Final = Served(HeartbeatRequest, versions=(0, 4))

    def handle(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:

What changed between the versions is told by the messages; where a handler depends on it, a constant has the version's
number and says why. A file is imported at the first request for its API, and the others for the first ApiVersions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kohort.protocol.message import Request
from kohort.protocol.messages import API_NAMES, module_name

if TYPE_CHECKING:
    from kohort.broker.context import Context

Handle: TypeAlias = "Callable[[Any, Context], Any]"
"""Takes a request, and returns the response or a `Reply`; None for a request that isn't answered."""


MAX_ITEMS: Final = 100_000
"""Elements in all arrays of a large request. Kafka has no limit, but threads, and smaller messages in memory."""

ONE_STEP: Final = 10_000
"""The same where all of it is one step."""


@dataclass(frozen=True, slots=True)
class Served:
    """An API as the broker serves it.

    Attributes:
        versions: the first and the last.
        takes_records: whether requests carry records: they may be as large as socket.request.max.bytes allows.
        returns_records: whether responses carry records, which are sent without being copied.
        max_items: elements that the arrays of a large request may have in all. What a request asks for is worked off in
            slices; where it is one step of a coordinator, which can't be interrupted, it is `ONE_STEP`.
    """

    request: type[Request]
    versions: tuple[int, int]
    takes_records: bool = False
    returns_records: bool = False
    max_items: int = MAX_ITEMS


def handler(key: int) -> tuple[Served, Handle] | None:
    """The declaration and the function of an API's file; None if there is no file."""
    if key not in API_NAMES:
        return None
    name = f"{__name__}.{module_name(API_NAMES[key])}"
    if find_spec(name) is None:
        return None
    module = import_module(name)
    return module.SERVED, module.handle


def served_apis() -> Iterator[tuple[int, Served]]:
    """Yields all served APIs, by key."""
    for key in API_NAMES:
        found = handler(key)
        if found is not None:
            yield key, found[0]
