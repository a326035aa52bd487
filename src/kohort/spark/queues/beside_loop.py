"""Values are read and written beside the event loop, which renews locks meanwhile: a schema registry may be slow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_TURN: Final = threading.Lock()


async def beside_loop(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Runs a function in a thread, and raises what it raises.

    One runs at a time in the process: queues share encoders and the registry's client, which aren't made for threads.
    """

    def in_turn() -> R:
        with _TURN:
            return function(*args, **kwargs)

    return await asyncio.to_thread(in_turn)
