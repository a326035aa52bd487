"""Clusters by name: profiles in a file of the user's, `~/.config/kohort/clusters.toml`.

    default = "dev"

    [dev]
    bootstrap.servers = "localhost:9092"

    [prod]
    bootstrap.servers = "kafka-1.example:9093,kafka-2.example:9093"
    config = "prod.properties"

A table has Kafka's keys, as a file of `--config` does. `config` names such a file, whose keys the table's override.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from kohort.client.errors import ConfigError

CLUSTER: Final = "KOHORT_CLUSTER"
HIDDEN: Final = "(hidden)"

named_by_option: ContextVar[str | None] = ContextVar("named_by_option", default=None)
"""What `--cluster` of the command that runs has named."""

readers_told: ContextVar[bool] = ContextVar("readers_told", default=False)
"""Whether the command that runs has said that others may read the file: once is enough."""

_SECRET: Final = re.compile(r"password|secret|jaas|\.key$|\.pem$", re.IGNORECASE)
_DEFAULT: Final = "default"
_DEFAULT_LINE: Final = re.compile(
    r"""(?P<key>\s*(?:default|"default"|'default')\s*=\s*)(?:"[^"]*"|'[^']*')(?P<rest>\s*(?:\#.*)?\n?)"""
)
_FILE: Final = "config"
_FIRST_WORDS: Final = frozenset(("bootstrap", "client", "sasl", "security", "ssl"))
"""Of keys: a table so called is a key that is before the first table."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Profiles:
    """What the file has.

    Attributes:
        path: of the file; it needn't be there.
        default: the cluster that is used where none is named; None for none.
        clusters: properties by Kafka's keys, of each cluster.
        readable: whether others may read the file, and it has secrets.
    """

    path: Path
    default: str | None
    clusters: Mapping[str, Mapping[str, str]]
    readable: bool = False

    def properties(self, name: str) -> dict[str, str]:
        """All properties of a cluster, those of the file that it names, too.

        Raises:
            ConfigError: there is no such cluster, or the file that it names can't be read.
        """
        if name not in self.clusters:
            near = get_close_matches(name, self.clusters, 1)
            known = ", ".join(sorted(self.clusters)) or "none"
            hint = f"did you mean {near[0]}?" if near else f"it has {known}"
            raise ConfigError(f"there is no cluster {name!r} in {self.path}; {hint}")
        own = dict(self.clusters[name])
        if (file := own.pop(_FILE, None)) is None:
            return own
        from kohort.client.properties import read_file

        return read_file(self.path.parent / Path(file).expanduser()) | own


def profiles_path(environment: Mapping[str, str] | None = None) -> Path:
    """Where the file is, or would be."""
    home = (os.environ if environment is None else environment).get("XDG_CONFIG_HOME")
    if not home:
        try:
            home = str(Path.home() / ".config")
        except RuntimeError:  # a user without a home: there is no such file
            home = "~/.config"
    return Path(home) / "kohort" / "clusters.toml"


def read_profiles(path: Path | None = None, *, needed: bool = True) -> Profiles:
    """Reads the file. One that isn't there has no clusters.

    Args:
        needed: whether a file that this user can't get at is an error, as where a cluster of it is named.

    Raises:
        ConfigError: it can't be read, or isn't such a file.
    """
    path = profiles_path() if path is None else path
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        out_of_reach = isinstance(error, PermissionError | NotADirectoryError)
        if isinstance(error, FileNotFoundError) or (out_of_reach and not needed):
            return Profiles(path, None, {})
        raise ConfigError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: no TOML: {error}") from error
    default = document.pop(_DEFAULT, None)
    if default is not None and not isinstance(default, str):
        raise ConfigError(f'{path}: default = "NAME" is wanted; no cluster can be called default')
    clusters = {}
    for name, table in document.items():
        if not isinstance(table, dict) or name in _FIRST_WORDS:
            raise ConfigError(f"{path}: {name} is in no table: [NAME] is wanted before the keys of a cluster")
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{path}: [{name}]: a name of letters, digits, - and _ is wanted; a file is of one cluster"
            )
        clusters[name] = dict(_flat(table, "", f"{path}: [{name}]"))
    if default is not None and default not in clusters:
        raise ConfigError(f"{path}: default = {default!r}: there is no such cluster in it")
    secret = any(is_secret(key) for table in clusters.values() for key in table)
    return Profiles(path, default, clusters, readable=secret and bool(mode & (stat.S_IRWXG | stat.S_IRWXO)))


def is_secret(key: str) -> bool:
    """Whether the value of a key isn't shown."""
    return bool(_SECRET.search(key))


def named_cluster() -> str | None:
    """The cluster of `--cluster`, else of the environment; None for neither.

    To be asked only where no other option says which cluster: then credentials of a profile go nowhere but where the
    profile says, unless somebody names both.
    """
    option = named_by_option.get()
    return (os.environ.get(CLUSTER) or None) if option is None else option


def with_default(text: str, name: str | None) -> str:
    """The file's text with another default, or none. All else stays as it is, with comments.

    Raises:
        ConfigError: it is written in a way that isn't understood here.
    """
    new = _with_default(text, name)
    try:
        found = tomllib.loads(new).get(_DEFAULT)
    except tomllib.TOMLDecodeError:
        found = ""
    if found != name:
        raise ConfigError("how its default is written isn't understood: change it in the file yourself")
    return new


def _with_default(text: str, name: str | None) -> str:
    lines = text.splitlines(keepends=True)
    head = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    for at in range(head):
        if (there := _DEFAULT_LINE.fullmatch(lines[at])) is not None:
            changed = "" if name is None else f'{there["key"]}"{name}"{there["rest"]}'
            return "".join([*lines[:at], changed, *lines[at + 1 :]])
    wanted = [] if name is None else [f'default = "{name}"\n']
    return "".join([*wanted, *(["\n"] if wanted and lines else []), *lines])


def _flat(table: Mapping[str, Any], prefix: str, where: str) -> Iterator[tuple[str, str]]:
    """Keys with dots, which TOML takes apart, and values as text."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.", where)
        elif isinstance(value, bool):
            yield prefix + key, "true" if value else "false"
        elif isinstance(value, str | int | float):
            yield prefix + key, str(value)
        else:
            raise ConfigError(f"{where} {prefix}{key}: a text, a number, true or false is wanted")
