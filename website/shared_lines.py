"""Lines of docstrings that explain several names, for griffe, which takes what is before a colon for one name."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class SharedLines(Extension):
    """Has griffe find each name's type and default."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Gives each name a line of its own."""
        if obj.docstring is not None:
            obj.docstring.value = parted(obj.docstring.value)


def parted(docstring: str) -> str:
    """A docstring in which the lines of arguments and attributes have one name each.

    The last one of a line has what is said of all. Those before it have nothing: website/templates puts them together
    again.
    """
    return re.sub(r"^(?:Args|Attributes):(?:\n(?: .*)?$)+", _section, docstring, flags=re.MULTILINE)


def _section(section: re.Match[str]) -> str:
    return re.sub(r"^    (?=\w+(?:, \w+)+: )[^:]+", _line, section[0], flags=re.MULTILINE)


def _line(names: re.Match[str]) -> str:
    return names[0].replace(", ", ":\n    ")
