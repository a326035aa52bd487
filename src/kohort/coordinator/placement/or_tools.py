"""OR-Tools, which the extra `placement` installs; without it, only small groups have an optimal placement."""

from __future__ import annotations

from importlib.util import find_spec

from kohort.extras import require


def is_installed() -> bool:
    return find_spec("ortools") is not None


def require_or_tools() -> None:
    """Raises MissingExtraError, which says what to install, if OR-Tools isn't there."""
    require("placement", "placing this group by optimal", ("ortools",))
