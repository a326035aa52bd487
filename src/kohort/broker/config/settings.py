"""What the broker runs with: every key's value, and where it comes from."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.errors import ConfigError
from kohort.broker.config.keys import Key, Value
from kohort.broker.config.sources import Given, from_environment, from_file, from_overrides, from_program
from kohort.broker.config.validation import check_at_start, group_bound_problems

__all__ = ["Layer", "Settings"]

Layer = Mapping[str, Given]
"""Values by key, all given in the same manner."""

_NOTHING: Final[Layer] = {}


class Settings:
    """The broker's configuration: Kafka's keys, checked.

    A key has the first value there is of: what was set at run time for this broker, then for all brokers, then what
    was given at the start, then its default. A key with a substitute in other units (log.retention.ms has
    log.retention.hours) takes that one's before its own default, converted.

    Attributes:
        static: what was given at the start.
        for_all, for_this: what was set at run time, for all brokers and for this one.
        notes: what the operator should be told: keys that were given and mean nothing here.
    """

    def __init__(
        self,
        static: Layer = _NOTHING,
        for_all: Layer = _NOTHING,
        for_this: Layer = _NOTHING,
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
        """Read a configuration.

        Args:
            file: a .properties file.
            environ: environment variables; KOHORT_LOG_RETENTION_MS stands for log.retention.ms, and wins over the file.
            overrides: "key=value" each; they win over both.

        Raises:
            ConfigError: keys that don't exist or values that can't be, each with where it was given.
            OSError: the file can't be read.
        """
        problems: list[str] = []
        static: dict[str, Given] = {}
        if file is not None:
            static.update(from_file(file, problems))
        static.update(from_environment(environ or {}, problems))
        static.update(from_overrides(overrides, problems))
        return cls._checked(static, problems)

    @classmethod
    def of(cls, values: Mapping[str, object], where: str = "a program") -> Settings:
        """A configuration out of a program: texts, numbers, booleans and lists by key.

        Raises:
            ConfigError: as `load`.
        """
        return cls._checked(from_program(values, where), [])

    def with_overrides(self, values: Mapping[str, object], where: str = "a program") -> Settings:
        """The same with other values given at the start.

        Raises:
            ConfigError: as `load`.
        """
        static = {**self.static, **from_program(values, where)}
        return self._checked(static, [], self.for_all, self.for_this)

    def with_dynamic(self, for_all: Mapping[str, str], for_this: Mapping[str, str]) -> Settings:
        """The same with what was set at run time: for all brokers, and for this one. It is checked when it is set."""
        return Settings(
            self.static,
            {name: Given(text, "all brokers' configuration") for name, text in for_all.items()},
            {name: Given(text, "this broker's configuration") for name, text in for_this.items()},
            self.notes,
        )

    @classmethod
    def _checked(
        cls,
        static: Mapping[str, Given],
        problems: list[str],
        for_all: Layer = _NOTHING,
        for_this: Layer = _NOTHING,
    ) -> Settings:
        notes = []
        for name, given in static.items():
            problem, note = check_at_start(name, given.text)
            if problem:
                problems.append(f"{name} ({given.where}): {problem}")
            if note:
                notes.append(f"{name} ({given.where}): {note}")
        for one, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if one in static and other not in static:
                static = {**static, other: static[one]}
        if problems:
            raise ConfigError("\n".join(problems))
        settings = cls(static, for_all, for_this, tuple(notes))
        if problems := group_bound_problems(settings):
            raise ConfigError("\n".join(problems))
        return settings

    # Values

    def value(self, name: str) -> Value:
        """The value that counts.

        Raises:
            KeyError: the broker has no such key: a mistake in the program.
        """
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._effective(BROKER_KEYS[name])
            return value

    def int(self, name: str) -> builtins.int:
        """The value of a key that is a number."""
        value = self.value(name)
        if not isinstance(value, builtins.int):
            raise TypeError(f"{name} isn't a whole number, but {value!r}")
        return value

    def real(self, name: str) -> float:
        """The value of a key that is a number, perhaps with a fraction."""
        value = self.value(name)
        if not isinstance(value, (float, builtins.int)):
            raise TypeError(f"{name} isn't a number, but {value!r}")
        return float(value)

    def flag(self, name: str) -> bool:
        """The value of a key that is true or false."""
        value = self.value(name)
        if not isinstance(value, bool):
            raise TypeError(f"{name} isn't true or false, but {value!r}")
        return value

    def text(self, name: str) -> str:
        """The value of a key that is a text; "" where there is none."""
        value = self.value(name)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} isn't a text, but {value!r}")
        return value or ""

    def names(self, name: str) -> tuple[str, ...]:
        """The value of a key that is a list; empty where there is none."""
        value = self.value(name)
        if value is not None and not isinstance(value, tuple):
            raise TypeError(f"{name} isn't a list, but {value!r}")
        return value or ()

    def provenance(self, name: str) -> str:
        """Where a key's value comes from, for people: "default", "server.properties:12", "KOHORT_NODE_ID"."""
        for stand_in, _ in ((name, 1), *BROKER_KEYS[name].also):
            given = self.given(stand_in)
            if given is not None:
                return given.where
        return "default"

    def given(self, name: str) -> Given | None:
        """What was given for this very key, at run time or at the start."""
        return self.for_this.get(name) or self.for_all.get(name) or self.static.get(name)

    def _effective(self, key: Key) -> Value:
        names = ((key.name, 1), *key.also)
        for name, factor in names:
            given = self.given(name)
            if given is not None:
                return _converted(BROKER_KEYS[name].parse(given.text), factor)
        for name, factor in names:
            default = BROKER_KEYS[name].default
            if default is not None:
                return _converted(default, factor)
        return None


def _converted(value: Value, factor: int) -> Value:
    """A value in another unit; what is below 0 means "no limit" in every unit."""
    if factor == 1 or not isinstance(value, int):
        return value
    return value * factor if value >= 0 else -1
