"""What CONTRIBUTING.md and ARCHITECTURE.md name, found in their text, so that tests can look whether it is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PLACES: Final = (ROOT, ROOT / "src" / "kohort")
"""What paths are relative to: the repository, or the package."""


class Place(NamedTuple):
    """A place in the sources, written `folder/`, `folder/file.py`, or `folder/file.py::Class.method`."""

    path: str
    name: str

    def wrong(self) -> str | None:
        """What isn't there; None if all is."""
        found = [match for base in PLACES for match in base.glob(self.path)]
        if not found:
            return f"{self.path} isn't there"
        if self.name and not any(self.name in names(match) for match in found):
            return f"{self.path} has no {self.name}"
        return None


def code(text: str) -> list[str]:
    """What is written in backticks, code blocks apart."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def places(text: str) -> list[Place]:
    """The places that a text names."""
    found = []
    for span in code(text):
        path, _, name = span.partition("::")
        if re.fullmatch(r"[\w.*-]+(/[\w.*-]*)*", path) and ("/" in path or path.endswith((".py", ".md", ".toml"))):
            found.append(Place(path, name))
    return found


def methods(text: str) -> list[str]:
    """The methods and class attributes that a text names without a path: `Class.method`."""
    return [span for span in code(text) if re.fullmatch(r"[A-Z]\w+\.\w+", span)]


def make_targets(text: str) -> list[str]:
    """The targets of the Makefile that a text names."""
    return [target for span in code(text) for target in re.findall(r"^make ([a-z-]+)(?=\s|$)", span)]


def names(module: Path) -> set[str]:
    """What a module defines: functions, classes, their methods and attributes, constants."""
    return set(_names(ast.parse(module.read_text()).body, ""))


def _names(body: list[ast.stmt], within: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield within + node.name
            case ast.ClassDef():
                yield within + node.name
                yield from _names(node.body, f"{within}{node.name}.")
            case ast.Assign(targets=targets):
                yield from (within + target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield within + name
            case ast.If():
                yield from _names(node.body, within)
