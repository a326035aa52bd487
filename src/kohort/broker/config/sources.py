"""Where a configuration is read from: a file, the environment, the command line, a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.errors import nearest
from kohort.broker.config.ignored_keys import IGNORED_KEYS, REFUSED, REMOVED
from kohort.broker.config.keys import show
from kohort.broker.config.properties import decode, parse

__all__ = ["ENVIRONMENT_PREFIX", "Given", "from_environment", "from_file", "from_overrides", "from_program"]

ENVIRONMENT_PREFIX: Final = "KOHORT_"


class Given(NamedTuple):
    """A value as it was written, and where: "server.properties:12", "KOHORT_NODE_ID", "--set node.id"."""

    text: str
    where: str


def from_file(file: Path, problems: list[str]) -> Iterator[tuple[str, Given]]:
    """The keys and values of a .properties file; what can't be read is added to `problems`.

    Raises:
        OSError: the file can't be read.
    """
    try:
        properties = list(parse(decode(file.read_bytes())))
    except ValueError as error:
        problems.append(f"{file}, {error}")
        return
    for key, value, line in properties:
        yield key, Given(value, f"{file}:{line}")


_KUBERNETES: Final = (f"{ENVIRONMENT_PREFIX}SERVICE_", f"{ENVIRONMENT_PREFIX}PORT")
"""What Kubernetes puts into every container's environment where a service is named "kohort"."""


def from_environment(environ: Mapping[str, str], problems: list[str]) -> Iterator[tuple[str, Given]]:
    """The keys that variables stand for: KOHORT_LOG_RETENTION_MS for log.retention.ms."""
    variables = sorted(name for name in environ if name.startswith(ENVIRONMENT_PREFIX))
    if not variables:
        return
    known = {_variable(key): key for key in (*IGNORED_KEYS, *REMOVED, *REFUSED, *BROKER_KEYS)}
    for variable in variables:
        key = known.get(variable)
        if key is None and variable.startswith(_KUBERNETES):
            continue
        if key is None:
            hint = nearest(variable.removeprefix(ENVIRONMENT_PREFIX), BROKER_KEYS)
            problems.append(f"{variable} (environment): it stands for no key{hint}")
        else:
            yield key, Given(environ[variable], variable)


def _variable(key: str) -> str:
    return ENVIRONMENT_PREFIX + key.upper().replace(".", "_")


def from_overrides(overrides: Iterable[str], problems: list[str]) -> Iterator[tuple[str, Given]]:
    """The keys and values of "key=value" texts."""
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            problems.append(f"--set {override}: key=value is needed")
        else:
            yield key.strip(), Given(value, f"--set {key.strip()}")


def from_program(values: Mapping[str, object], where: str) -> dict[str, Given]:
    """Keys and values that a program gives: texts, numbers, booleans, lists."""
    return {name: Given(_text(value), where) for name, value in values.items()}


def _text(value: object) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, value))
    return show(value) or "" if isinstance(value, (bool, float)) else str(value)
