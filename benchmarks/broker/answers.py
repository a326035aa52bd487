"""When a generator of requests has measured enough, and when it has waited too long."""

from __future__ import annotations

import select

FEWEST = 500
"""Answers that are waited for even if the time of a measure is over: a rate from none says nothing."""
PATIENCE = 60.0
"""Seconds until the next answer."""


def arrived(poll: select.epoll) -> list[tuple[int, int]]:
    """The connections on which there is something to read, with what epoll says of them.

    Raises:
        TimeoutError: there is nothing for a minute.
    """
    if found := poll.poll(PATIENCE):
        return found
    raise TimeoutError(f"the server answered nothing for {PATIENCE:.0f} seconds")
