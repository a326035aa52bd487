"""OR-Tools, which the extra `placement` installs; without it, groups that are not small have no optimal placement."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

INSTALL: Final = "pip install 'kohort[placement]'"


class OrToolsMissingError(Exception):
    """An optimal placement would need OR-Tools."""

    def __init__(self) -> None:
        super().__init__(f"placing this group by optimal needs OR-Tools: {INSTALL}")


def is_installed() -> bool:
    return find_spec("ortools") is not None
