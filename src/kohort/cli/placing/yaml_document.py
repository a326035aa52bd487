"""YAML as a tree of values that know where they stand, by PyYAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import yaml

from kohort.cli.placing.document import DocumentError, Value, mapping_of

_DEEPEST: Final = 12
"""Levels that a document may have; a group has six."""


def read_yaml(text: str, file: str) -> Value:
    """The document that `text` holds.

    Raises:
        DocumentError: it isn't YAML, or has more than a group needs; says where.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # compiled where it can be: ten times as fast
    try:
        return _Builder(yaml.parse(text, Loader=loader), file).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise DocumentError(f"{file}{where}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{file}: not YAML: {' '.join(str(error).split())}") from None


class _Builder:
    """Makes values out of PyYAML's events."""

    def __init__(self, events: Iterator[Any], file: str) -> None:
        self._events = events
        self._file = file

    def document(self) -> Value:
        """The one document in the stream; nothing, if that is all there is."""
        found = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found is not None:
                    self._at(event).refuse("a second document begins here; one is wanted")
                found = self._value(next(self._events), 0)
        return Value(None, self._file, None) if found is None else found

    def _value(self, event: Any, depth: int) -> Value:
        place = self._at(event)
        if isinstance(event, yaml.AliasEvent):
            place.refuse(f"*{event.anchor}: aliases aren't supported; write it out")
        if event.anchor is not None:
            place.refuse(f"&{event.anchor}: anchors aren't supported; leave it out")
        if event.tag not in (None, "!"):
            place.refuse(f"{event.tag}: tags aren't supported; leave it out")
        if depth > _DEEPEST:
            place.refuse("nested too deeply")
        if isinstance(event, yaml.ScalarEvent):
            nothing = not event.style and event.value in ("", "~", "null")
            return replace(place, data=None if nothing else event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return replace(place, data=[self._value(item, depth + 1) for item in self._until(yaml.SequenceEndEvent)])
        return replace(place, data=mapping_of(self._pairs(depth), place))

    def _pairs(self, depth: int) -> Iterator[tuple[str, Value, Value]]:
        for event in self._until(yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            if not isinstance(event, yaml.ScalarEvent):
                key.refuse("a key is a name, not a list or a mapping")
            value = self._value(next(self._events), depth + 1)
            yield event.value, key, value

    def _until(self, end: type[Any]) -> Iterator[Any]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield event

    def _at(self, event: Any) -> Value:
        return Value(None, self._file, event.start_mark.line + 1)
