"""The broker's configuration: each key's value and source."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.errors import ConfigError
from kohort.broker.config.keys import Key, Value
from kohort.broker.config.security_keys import listener_prefixes
from kohort.broker.config.sources import ConfiguredValue, from_environment, from_file, from_overrides, from_program
from kohort.broker.config.validation import check_at_start, group_bound_problems

Layer = Mapping[str, ConfiguredValue]
"""Values by key, set in the same way."""

_EMPTY: Final[Layer] = {}

_AS_NODE_ID: Final = "as the node's other id"
"""The source of node.id or broker.id where it follows the other."""


class Settings:
    """The broker's configuration: Kafka's keys, validated.

    In order of precedence a value is set at run time for this broker, at run time for all brokers, at start-up, or by
    default. A key with synonyms in other units (log.retention.ms: log.retention.hours) takes their converted values
    before its own default.

    Attributes:
        static: values set at start-up.
        for_all, for_this: values set at run time, for all brokers and for this one.
        notes: messages for the operator, about keys that have no effect here.
    """

    def __init__(
        self,
        static: Layer = _EMPTY,
        for_all: Layer = _EMPTY,
        for_this: Layer = _EMPTY,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.static = static
        self.for_all = for_all
        self.for_this = for_this
        self.notes = notes
        self._values: dict[str, Value] = {}

    @classmethod
    def load(
        cls, file: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Iterable[str] = ()
    ) -> Settings:
        """Reads a configuration.

        Args:
            file: a .properties file.
            environ: environment variables; KOHORT_LOG_RETENTION_MS sets log.retention.ms, and overrides the file.
            overrides: "key=value" each; they override both.

        Raises:
            ConfigError: unknown keys and invalid values, each with its source.
            OSError: the file can't be read.
        """
        problems: list[str] = []
        static: dict[str, ConfiguredValue] = {}
        if file is not None:
            static.update(from_file(file, problems))
        static.update(from_environment(environ or {}, problems))
        static.update(from_overrides(overrides, problems))
        return cls._checked(static, problems)

    @classmethod
    def of(cls, values: Mapping[str, object], where: str = "a program") -> Settings:
        """Makes a configuration from a program's texts, numbers, booleans and lists by key.

        Raises:
            ConfigError: as `load`.
        """
        return cls._checked(from_program(values, where), [])

    def with_overrides(self, values: Mapping[str, object], where: str = "a program") -> Settings:
        """Returns a copy with other values set at start-up.

        Raises:
            ConfigError: as `load`.
        """
        static = {**self.static, **from_program(values, where)}
        return self._checked(static, [], self.for_all, self.for_this)

    def with_dynamic(self, for_all: Mapping[str, str], for_this: Mapping[str, str]) -> Settings:
        """Returns a copy with the values set at run time, for all brokers and this one; they are validated."""
        return Settings(
            self.static,
            {name: ConfiguredValue(text, "all brokers' configuration") for name, text in for_all.items()},
            {name: ConfiguredValue(text, "this broker's configuration") for name, text in for_this.items()},
            self.notes,
        )

    def for_listener(self, listener: str, mechanism: str = "") -> Settings:
        """Returns what a listener goes by, or a mechanism of it: what is set for it comes before what is for all."""
        static = dict(self.static)
        for prefix in listener_prefixes(listener, mechanism):
            for name, configured in self.static.items():
                if name.startswith(prefix):
                    static[name.removeprefix(prefix)] = configured._replace(where=f"{name}, {configured.where}")
        return Settings(static, self.for_all, self.for_this)

    @classmethod
    def _checked(
        cls,
        static: Mapping[str, ConfiguredValue],
        problems: list[str],
        for_all: Layer = _EMPTY,
        for_this: Layer = _EMPTY,
    ) -> Settings:
        notes = []
        for name, configured in static.items():
            problem, note = check_at_start(name, configured.text)
            if problem:
                problems.append(f"{name} ({configured.where}): {problem}")
            if note:
                notes.append(f"{name} ({configured.where}): {note}")
        static = _with_node_id(static, problems)
        if problems:
            raise ConfigError("\n".join(problems))
        settings = cls(static, for_all, for_this, tuple(notes))
        if problems := group_bound_problems(settings.int):
            raise ConfigError("\n".join(problems))
        return settings

    # Values

    def value(self, name: str) -> Value:
        """Returns a key's effective value.

        Raises:
            KeyError: the broker has no such key (a programming error).
        """
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._effective(BROKER_KEYS[name])
            return value

    def int(self, name: str) -> builtins.int:
        value = self.value(name)
        if not isinstance(value, builtins.int):
            raise TypeError(f"{name} isn't an integer, but {value!r}")
        return value

    def real(self, name: str) -> float:
        value = self.value(name)
        if not isinstance(value, (float, builtins.int)):
            raise TypeError(f"{name} isn't a number, but {value!r}")
        return float(value)

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if not isinstance(value, bool):
            raise TypeError(f"{name} isn't true or false, but {value!r}")
        return value

    def text(self, name: str) -> str:
        """Returns a text; "" if the key has no value."""
        value = self.value(name)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} isn't a text, but {value!r}")
        return value or ""

    def names(self, name: str) -> tuple[str, ...]:
        """Returns a list; empty if the key has no value."""
        value = self.value(name)
        if value is not None and not isinstance(value, tuple):
            raise TypeError(f"{name} isn't a list, but {value!r}")
        return value or ()

    def source_of(self, name: str) -> str:
        """Returns the source of a value, for messages: "default", "server.properties:12", "KOHORT_NODE_ID"."""
        for synonym, _ in ((name, 1), *BROKER_KEYS[name].synonyms):
            configured = self.configured(synonym)
            if configured is not None:
                return configured.where
        return "default"

    def configured(self, name: str) -> ConfiguredValue | None:
        """Returns the value set for this key, at run time or start-up, without synonyms."""
        return self.for_this.get(name) or self.for_all.get(name) or self.static.get(name)

    def _effective(self, key: Key) -> Value:
        names = ((key.name, 1), *key.synonyms)
        for name, factor in names:
            configured = self.configured(name)
            if configured is not None:
                return _converted(BROKER_KEYS[name].parse(configured.text), factor)
        for name, factor in names:
            default = BROKER_KEYS[name].default
            if default is not None:
                return _converted(default, factor)
        return None


def _with_node_id(static: Layer, problems: list[str]) -> Layer:
    """Values in which node.id and broker.id, its old name, are the same; adds a problem if they are set differently."""
    given = {name: value for name, value in static.items() if value.where != _AS_NODE_ID}
    node, broker = given.get("node.id"), given.get("broker.id")
    if node is not None and broker is not None:
        if node.text.strip() != broker.text.strip():
            problems.append(f"broker.id ({broker.where}): it must be the same as node.id, which is {node.text}")
        return given
    if broker is not None:
        return {**given, "node.id": broker._replace(where=_AS_NODE_ID)}
    text = node.text if node is not None else str(BROKER_KEYS["node.id"].default)
    return {**given, "broker.id": ConfiguredValue(text, _AS_NODE_ID)}


def _converted(value: Value, factor: int) -> Value:
    """Converts a value to another unit; below 0 it means "no limit" in any unit."""
    if factor == 1 or not isinstance(value, int):
        return value
    return value * factor if value >= 0 else -1
