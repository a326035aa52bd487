"""Reads configurations: from a file, environment variables, the command line, or a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.errors import nearest
from kohort.broker.config.ignored_keys import IGNORED_KEYS, REFUSED, REMOVED
from kohort.broker.config.keys import show
from kohort.broker.config.properties import decode, parse
from kohort.broker.config.security_keys import listener_key_ends

ENVIRONMENT_PREFIX: Final = "KOHORT_"


class ConfiguredValue(NamedTuple):
    """A value as text, and its source: "server.properties:12", "KOHORT_NODE_ID", "--set node.id"."""

    text: str
    where: str


def from_file(file: Path, problems: list[str]) -> Iterator[tuple[str, ConfiguredValue]]:
    """Yields the keys and values of a .properties file; adds what can't be parsed to `problems`.

    Raises:
        OSError: the file can't be read.
    """
    try:
        properties = list(parse(decode(file.read_bytes())))
    except ValueError as error:
        problems.append(f"{file}, {error}")
        return
    for key, value, line in properties:
        yield key, ConfiguredValue(value, f"{file}:{line}")


_KUBERNETES: Final = (f"{ENVIRONMENT_PREFIX}SERVICE_", f"{ENVIRONMENT_PREFIX}PORT")
"""Variables that Kubernetes sets in every container if a service is named "kohort"."""

_CLIENTS: Final = frozenset(f"{ENVIRONMENT_PREFIX}{name}" for name in ("BOOTSTRAP_SERVERS", "CLUSTER", "CONSOLE_TOKEN"))
"""Variables of `kohort`'s other commands, which a shell has exported that then starts a server."""


def from_environment(environ: Mapping[str, str], problems: list[str]) -> Iterator[tuple[str, ConfiguredValue]]:
    """Yields the keys of environment variables: KOHORT_LOG_RETENTION_MS sets log.retention.ms."""
    variables = sorted(name for name in environ if name.startswith(ENVIRONMENT_PREFIX))
    if not variables:
        return
    known = {_variable(key): key for key in (*IGNORED_KEYS, *REMOVED, *REFUSED, *BROKER_KEYS)}
    for variable in variables:
        key = known.get(variable) or _of_listener(variable)
        if key is None and (variable in _CLIENTS or variable.startswith(_KUBERNETES)):
            continue
        if key is None:
            hint = nearest(variable.removeprefix(ENVIRONMENT_PREFIX), BROKER_KEYS)
            problems.append(f"{variable} (environment): no such key{hint}")
        else:
            yield key, ConfiguredValue(environ[variable], variable)


_LISTENER: Final = f"{ENVIRONMENT_PREFIX}LISTENER_NAME_"


def _of_listener(variable: str) -> str | None:
    """The key of KOHORT_LISTENER_NAME_<LISTENER>_[<MECHANISM>_]<KEY>; None if it is none."""
    if not variable.startswith(_LISTENER):
        return None
    rest = variable.removeprefix(_LISTENER)
    ends = {"_" + end.upper().replace(".", "_").replace("-", "_"): end for end in listener_key_ends()}
    end = max((end for end in ends if rest.endswith(end)), key=len, default="")
    name = rest.removesuffix(end).lower()
    return f"listener.name.{name}.{ends[end]}" if end and name else None


def _variable(key: str) -> str:
    return ENVIRONMENT_PREFIX + key.upper().replace(".", "_")


def from_overrides(overrides: Iterable[str], problems: list[str]) -> Iterator[tuple[str, ConfiguredValue]]:
    """Yields the keys and values of "key=value" texts."""
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            problems.append(f"--set {override}: key=value is needed")
        else:
            yield key.strip(), ConfiguredValue(value, f"--set {key.strip()}")


def from_program(values: Mapping[str, object], where: str) -> dict[str, ConfiguredValue]:
    """Keys and values from a program: texts, numbers, booleans, lists."""
    return {name: ConfiguredValue(_text(value), where) for name, value in values.items()}


def _text(value: object) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, value))
    return show(value) or "" if isinstance(value, (bool, float)) else str(value)
