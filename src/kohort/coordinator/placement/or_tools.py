"""OR-Tools, which the extra `placement` installs; without it, only small groups have an optimal placement."""

from __future__ import annotations

from typing import Final

from kohort.extras import are_installed, require

_PACKAGES: Final = ("ortools",)


def is_installed() -> bool:
    return are_installed(_PACKAGES)


def require_or_tools() -> None:
    """Raises MissingExtraError, which says what to install, if OR-Tools isn't there."""
    require("placement", "placing this group by optimal", _PACKAGES)
