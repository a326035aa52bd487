"""What is wrong with a configuration."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ConfigError", "nearest"]


class ConfigError(ValueError):
    """One or more values that can't be taken.

    The message has a line for each, with the key, where it was set, what is wrong, and what may have been meant.
    """


def nearest(name: str, known: Iterable[str], broker_key_of: dict[str, str] | None = None) -> str:
    """A hint at the key that was meant, to be put behind a message; empty if none is near.

    Args:
        name: the key that isn't known.
        known: the keys that are.
        broker_key_of: the broker's key for each topic key, where somebody may have taken one for the other.
    """
    from difflib import get_close_matches  # only here, where time doesn't matter

    meant = (broker_key_of or {}).get(name)
    if meant:
        return f"; that is a topic's key, the default of all topics is {meant}"
    close = get_close_matches(name.lower().replace("_", "."), known, n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
