"""YAML and JSON as a tree of values that know where they stand, so that a mistake can be pointed at.

Scalars stay the text they are in the file: a member may be called `no` or `010` without quotes. Anchors, aliases and
tags, which nobody needs here, are refused; so are keys that come twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from kohort.extras import require


class DocumentError(ValueError):
    """What is wrong with a document: its text names the file, the place, and what would be right."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a document.

    Attributes:
        data: text, a list of values, a dict of values by key, or None for nothing (an empty place, or `null`).
        file: how to call the file.
        line: where the value begins, from 1; None where that isn't known (JSON).
        path: keys and indexes that lead here, such as "members.m1.active"; "" for the whole document.
    """

    data: str | list[Value] | dict[str, Value] | None
    file: str
    line: int | None
    path: str = ""

    def refuse(self, problem: str) -> NoReturn:
        """Raise a `DocumentError` that says what is wrong here."""
        where = [self.file]
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.path:
            where.append(self.path)
        raise DocumentError(f"{', '.join(where)}: {problem}")


def read_document(text: str, file: str) -> Value:
    """The document that `text` holds: JSON if it begins as JSON does, otherwise YAML.

    Raises:
        DocumentError: it is neither; says where.
        MissingExtraError: it may be YAML, and PyYAML isn't installed.
    """
    document = _read_json(text, file) if text.lstrip()[:1] == "{" else None
    if document is None:
        require("placement", "reading a group in YAML", ("yaml",))
        from kohort.cli.placing.yaml_document import read_yaml

        document = read_yaml(text, file)
    return _with_paths(document)


def _read_json(text: str, file: str) -> Value | None:
    """The document if it is JSON; None if it may be YAML, where `{` begins a mapping, too."""

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return mapping_of(((key, None, value) for key, value in pairs), Value(None, file, None))

    def constant(name: str) -> NoReturn:
        raise DocumentError(f"{file}: {name} isn't a number that can be used here")

    def value(data: Any) -> Value:
        if isinstance(data, list):
            return Value([value(item) for item in data], file, None)
        if isinstance(data, dict):
            return Value({key: value(item) for key, item in data.items()}, file, None)
        if isinstance(data, bool):
            return Value(json.dumps(data), file, None)
        return Value(data, file, None)

    try:
        return value(
            json.loads(text, object_pairs_hook=mapping, parse_int=str, parse_float=str, parse_constant=constant)
        )
    except json.JSONDecodeError as error:
        if file.endswith(".json"):
            raise DocumentError(f"{file}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
        return None
    except RecursionError:
        raise DocumentError(f"{file}: nested too deeply") from None


def mapping_of(pairs: Iterable[tuple[str, Value | None, Any]], place: Value) -> dict[str, Any]:
    """The pairs as a dict, where no key may come twice; each key stands where the value beside it says."""
    found: dict[str, Any] = {}
    for key, at, value in pairs:
        if key in found:
            (at or place).refuse(f"{key!r} stands here twice; one of them is too many")
        found[key] = value
    return found


def _with_paths(value: Value, path: str = "") -> Value:
    """The same tree, in which each value knows its path."""
    data = value.data
    if isinstance(data, dict):
        data = {key: _with_paths(item, f"{path}.{key}" if path else key) for key, item in data.items()}
    elif isinstance(data, list):
        data = [_with_paths(item, f"{path}[{index}]") for index, item in enumerate(data)]
    return replace(value, data=data, path=path)
