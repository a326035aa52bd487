"""Generates Python source; the base of the decoder and the encoder."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from kohort.protocol.message_spec import MessageStruct
from kohort.protocol.schema import Field, Struct

__all__ = ["Emitter"]


class Emitter(ABC):
    """Source in progress: indented lines, unique names, and the objects that the source refers to."""

    def __init__(self, cls: type[MessageStruct], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = cls.__message__.flexible_in(version)
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = {"MESSAGE": cls, "VERSION": version}
        self.counter = 0

    def line(self, text: str) -> None:
        """Adds a line of source."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, hint: str) -> str:
        """Returns a unique name."""
        self.counter += 1
        return f"{hint}_{self.counter}"

    def global_(self, name: str, value: Any) -> str:
        """Adds a global to the source, and returns its name."""
        self.names.setdefault(name, value)
        return name

    def class_(self, cls: type[Struct]) -> str:
        """Adds a class to the source, and returns its name there."""
        name = re.sub(r"\W", "_", cls.__qualname__)
        while self.names.setdefault(name, cls) is not cls:
            name += "_"
        return name

    def compact(self, field: Field) -> bool:
        """Whether the length before the field is a varint."""
        return self.flexible and field.compact

    def compile(self, function: str) -> Callable[..., Any]:
        """Compiles one of the functions."""
        spec = self.cls.__message__
        code = compile(self.source(function), f"<codec of {spec.name} v{self.version}>", "exec")
        scope = dict(self.names)
        exec(code, scope)
        made: Callable[..., Any] = scope[function]
        return made

    @abstractmethod
    def source(self, function: str) -> str:
        """Generates the source of a function."""
