"""The reference of settings, out of the code that reads them: broker, topics, groups, clients, applications."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Final

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.client_metrics_keys import CLIENT_METRICS_KEYS
from kohort.broker.config.group_keys import GROUP_KEYS
from kohort.broker.config.ignored_keys import IGNORED_KEYS
from kohort.broker.config.inert_keys import INERT_KEYS
from kohort.broker.config.keys import Change, Key, show
from kohort.broker.config.topic_keys import TOPIC_KEYS
from kohort.client.config import ClientConfig
from kohort.spark.program.settings import AppSettings
from kohort.testing.settings import TEST_SETTINGS
from website.page import Page, cell, code

_AREAS: Final = {
    "Security": (
        r"(authorizer|super\.users|allow\.everyone|ssl\.|sasl\.|delegation\.|principal|connections\.max\.reauth|"
        r"security|early\.start)"
    ),
    "Groups": r"group\.",
    "Offsets of groups": r"offsets?\.",
    "Transactions and producers": r"(transaction|producer\.)",
    "Share groups' state": r"share\.",
    "Logs": r"log\.",
    "Quotas": r"(quota|controller\.quota)",
}
"""Headings of the broker's settings, and the names below each; all others are the server's own."""


_BROKER: Final = """# Settings of the broker

They have Kafka's names. Give them as `kohort serve --set NAME=VALUE`, in a file with `--config`, or in tests as
`Broker(settings={…})`. “At run time” says whether `kohort configs alter` can change a value while the broker runs,
for one broker or for the whole cluster.
"""

_IGNORED: Final = """## Taken, without effect

Kafka has these, and configurations that name them are read. On a single node they mean nothing, or Kohort does the
same in another way.

| Setting | Why |
| --- | --- |"""

_TOPICS: Final = """# Settings of topics, groups and client metrics

`kohort topics create NAME --set KEY=VALUE` sets those of a topic, `kohort configs alter group NAME --set KEY=VALUE`
those of a group. What isn't set comes from the [broker](broker.md).

## Topics
"""

_CLIENTS: Final = """# Settings of all clients

`Consumer`, `Producer`, `ShareConsumer`, `StreamsMember`, `Admin` and `StreamsApp` all take addresses, or a
`kohort.client.ClientConfig` that has these. [The Python reference](../python/kohort-client.md) has the arguments that
each client has of its own.
"""

_APPLICATIONS: Final = """# Settings of streams applications

`StreamsApp(application_id, bootstrap_servers=…, …)` takes them as keywords. They have Kafka Streams' names.
"""


def pages() -> list[Page]:
    """A page for each of those who read settings."""
    return [
        Page("reference/settings/broker.md", ("Settings",), _broker()),
        Page("reference/settings/topics-and-groups.md", ("Settings",), _topics_and_groups()),
        Page("reference/settings/clients.md", ("Settings",), _clients()),
        Page("reference/settings/applications.md", ("Settings",), _applications()),
    ]


def _broker() -> str:
    lines = [_BROKER]
    used = {name: key for name, key in BROKER_KEYS.items() if name not in INERT_KEYS and not key.internal}
    areas: dict[str, list[Key]] = {"Server": [], **{area: [] for area in _AREAS}}
    for key in used.values():
        area = next((area for area, pattern in _AREAS.items() if re.match(pattern, key.name)), "Server")
        areas[area].append(key)
    for area, keys in areas.items():
        lines += [f"## {area}", "", *_table(keys, run_time=True), ""]
    lines += [
        "## In tests",
        "",
        "Brokers for tests have other defaults, so that nothing waits:",
        "",
        "| Setting | Value |",
    ]
    lines += ["| --- | --- |", *(f"| `{name}` | `{value}` |" for name, value in TEST_SETTINGS.items()), ""]
    lines.append(_IGNORED)
    lines += [f"| `{key.name}` | {cell(key.doc)} |" for key in sorted((INERT_KEYS | IGNORED_KEYS).values())]
    return "\n".join(lines) + "\n"


def _topics_and_groups() -> str:
    lines = [_TOPICS]
    lines += [*_table(key for key in TOPIC_KEYS.values() if not key.internal), "", "## Groups", ""]
    lines += [*_table(GROUP_KEYS.values()), "", "## Client metrics", "", *_table(CLIENT_METRICS_KEYS.values())]
    return "\n".join(lines) + "\n"


def _clients() -> str:
    return "\n".join([_CLIENTS, *_attributes(ClientConfig)]) + "\n"


def _applications() -> str:
    return "\n".join([_APPLICATIONS, *_attributes(AppSettings)]) + "\n"


def _table(keys: Iterable[Key], *, run_time: bool = False) -> Iterator[str]:
    more = (" At run time |", " --- |") if run_time else ("", "")
    yield f"| Setting | Type | Default | Allowed | Meaning |{more[0]}"
    yield f"| --- | --- | --- | --- | --- |{more[1]}"
    for key in sorted(keys):
        default = show(key.default)
        end = f" {'—' if key.change is Change.NEVER else key.change.value} |" if run_time else ""
        shown = "none" if default is None else code(default) or "empty"
        yield f"| `{key.name}` | {key.type.name.lower()} | {shown} | {_allowed(key)} | {cell(key.doc)} |{end}"


def _allowed(key: Key) -> str:
    if key.valid:
        return ", ".join(f"`{value}`" for value in key.valid)
    if key.low is not None and key.high is not None:
        return f"{show(key.low)} to {show(key.high)}"
    return f"from {show(key.low)}" if key.low is not None else f"up to {show(key.high)}" if key.high is not None else ""


def _attributes(cls: type) -> Iterator[str]:
    """A table of a dataclass's fields: as its docstring explains them, where several may share a line."""
    types = {field.name: field for field in dataclasses.fields(cls)}
    yield from ("| Setting | Type | Default | Meaning |", "| --- | --- | --- | --- |")
    for names, meaning in explained(cls):
        for name in names:
            field = types[name]
            yield f"| `{name}` | {code(str(field.type))} | {_default(field)} | {cell(meaning)} |"


def explained(cls: type) -> Iterator[tuple[list[str], str]]:
    """The names in the Attributes of a docstring, and what is said of them."""
    text = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    for entry in re.split(r"\n(?=    \S)", text):
        names, _, meaning = " ".join(entry.split()).partition(": ")
        yield names.split(", "), meaning


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        return code(repr(field.default))
    return "see there" if field.default_factory is not dataclasses.MISSING else "must be given"
