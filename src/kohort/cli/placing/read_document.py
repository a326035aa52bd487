"""Reads YAML and JSON as a tree of values.

Scalars stay the text they are in the file: a member may be called `no` or `010` without quotes. Anchors, aliases and
tags, which nobody needs here, are refused; so are keys that come twice.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NoReturn

from kohort.cli.placing.document import DocumentError, Value, mapping_of
from kohort.extras import require


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


def _with_paths(value: Value, path: str = "") -> Value:
    """The same tree, in which each value knows its path."""
    data = value.data
    if isinstance(data, dict):
        data = {key: _with_paths(item, f"{path}.{key}" if path else key) for key, item in data.items()}
    elif isinstance(data, list):
        data = [_with_paths(item, f"{path}[{index}]") for index, item in enumerate(data)]
    return replace(value, data=data, path=path)
