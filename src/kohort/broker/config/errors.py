"""Configuration errors, and hints at misspelled keys."""

from __future__ import annotations

from collections.abc import Iterable


class ConfigError(ValueError):
    """One or more invalid keys or values.

    The message has a line for each: the key, where it was set, what is wrong, and a hint.
    """


def nearest(name: str, known: Iterable[str], broker_key_of: dict[str, str] | None = None) -> str:
    """Returns a hint at the key that was meant, as the end of a message; "" without one.

    Args:
        broker_key_of: the broker key of each topic key, where a topic key may be given by mistake.
    """
    from difflib import get_close_matches  # imported late: it is needed for errors only

    meant = (broker_key_of or {}).get(name)
    if meant:
        return f"; that is a topic's key, the default of all topics is {meant}"
    close = get_close_matches(name.lower().replace("_", "."), known, n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""
