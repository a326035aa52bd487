"""What the writers of decoders and of encoders share: Python source under construction."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kohort.protocol.schema import Field, Struct

if TYPE_CHECKING:
    from kohort.protocol.message import Message

__all__ = ["Emitter"]


class Emitter(ABC):
    """Source under construction: indented lines, fresh names, and the objects that the source refers to."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = cls.__message__.flexible_in(version)
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = {"MESSAGE": cls, "VERSION": version}
        self.counter = 0

    def line(self, text: str) -> None:
        """Add a line of source."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        self.counter += 1
        return f"{hint}_{self.counter}"

    def global_(self, name: str, value: Any) -> str:
        """Make `value` known to the source as `name`."""
        self.names.setdefault(name, value)
        return name

    def class_(self, cls: type[Struct]) -> str:
        """Make a class known to the source, and return its name there."""
        name = re.sub(r"\W", "_", cls.__qualname__)
        while self.names.setdefault(name, cls) is not cls:
            name += "_"
        return name

    def compact(self, field: Field) -> bool:
        """Whether the length before the field is a varint."""
        return self.flexible and field.compact

    def compile(self, function: str) -> Callable[..., Any]:
        """One of the functions that the source may define."""
        spec = self.cls.__message__
        code = compile(self.source(function), f"<codec of {spec.name} v{self.version}>", "exec")
        scope = dict(self.names)
        exec(code, scope)
        made: Callable[..., Any] = scope[function]
        return made

    @abstractmethod
    def source(self, function: str) -> str:
        """Write the source of a function."""
