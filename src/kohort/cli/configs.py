"""`kohort configs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.client import completion
from kohort.cli.client.admin import existing_topics, with_admin
from kohort.cli.client.arguments import parse_settings
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.terminal import err, fail, out, print_json, printable

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.administration.configs import ConfigEntry, ConfigResource

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

KINDS = {
    "topic": "TOPIC",
    "broker": "BROKER",
    "broker-logger": "BROKER_LOGGER",
    "group": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}

KindArgument = Annotated[
    str,
    typer.Argument(
        metavar="KIND", help=f"Kind of resource: {', '.join(KINDS)}.", autocompletion=completion.words(*KINDS)
    ),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME…",
        help="Names, or brokers' ids. None for settings of all brokers.",
        autocompletion=completion.resources,
    ),
]


@app.command("list")
def list_resources(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND", help=f"Only these: {', '.join(KINDS)}.", autocompletion=completion.words(*KINDS)
        ),
    ] = None,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """List resources that can have settings.

    kohort configs list group
    """
    from kohort.client.administration.configs import ResourceType

    types = () if kind is None else (ResourceType[_kind(kind)],)
    found = with_admin(bootstrap_server, config, timeout, lambda admin: admin.configs.list(*types))
    if as_json:
        print_json([{"kind": _name(each), "name": each.name} for each in found])
        return
    from kohort.cli.client.tables import table

    out.print(table(("Kind", "Name"), ((_name(each), each.name) for each in found)))


@app.command()
def describe(
    kind: KindArgument,
    names: NamesArgument = None,
    keys: Annotated[
        list[str] | None, typer.Option("--key", metavar="KEY", help="Only this setting. Repeatable.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="With defaults.")] = False,
    synonyms: Annotated[bool, typer.Option("--synonyms", help="With other sources of each value.")] = False,
    documentation: Annotated[bool, typer.Option("--documentation", help="With the purpose of each setting.")] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Show settings: those that differ from the defaults, or all.

    kohort configs describe topic flights

    kohort configs describe broker 1 --all --synonyms

    kohort configs describe group word-count --key streams.num.standby.replicas
    """
    resources = _resources(kind, names or [])

    async def work(admin: Admin) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        await _check(admin, kind, names or [])
        return await admin.configs.describe(*resources, keys=keys, synonyms=synonyms, documentation=documentation)

    described = with_admin(bootstrap_server, config, timeout, work)
    found = {
        resource: {key: entry for key, entry in entries.items() if everything or keys or not entry.default}
        for resource, entries in described.items()
    }
    for key in keys or []:
        for resource, entries in found.items():
            if key not in entries:
                err.print(f"note: {printable(str(resource))} has no setting {printable(key)}", markup=False)
    if as_json:
        print_json([_as_json(resource, entries.values()) for resource, entries in found.items()])
        return
    for resource, entries in found.items():
        _print(resource, [*entries.values()], len(described[resource]) - len(entries), synonyms, documentation)


@app.command()
def alter(
    kind: KindArgument,
    names: NamesArgument = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A new value. Repeatable.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="KEY", help="Back to the default. Repeatable.")
    ] = None,
    append: Annotated[
        list[str] | None, typer.Option("--append", metavar="KEY=ITEMS", help="Add items to a list. Repeatable.")
    ] = None,
    subtract: Annotated[
        list[str] | None, typer.Option("--subtract", metavar="KEY=ITEMS", help="Remove items from a list. Repeatable.")
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--dry-run", "--validate-only", help="Only check; change nothing.")
    ] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Change single settings; the others stay as they are.

    kohort configs alter topic flights --set retention.ms=86400000 --append cleanup.policy=compact

    kohort configs alter group word-count --set streams.num.standby.replicas=1

    Of all brokers:

    kohort configs alter broker --set log.cleaner.threads=2
    """
    resources = _resources(kind, names or [])
    changes = parse_settings(settings or [], "--set")
    more = parse_settings(append or [], "--append")
    less = parse_settings(subtract or [], "--subtract")
    if not (changes or more or less or unset):
        fail("nothing to alter: give --set, --unset, --append or --subtract")

    async def work(admin: Admin) -> None:
        if kind == "topic":  # a group may have settings before it exists
            await _check(admin, kind, names or [])
        await admin.configs.alter(
            *resources, set=changes, delete=unset or (), append=more, subtract=less, validate_only=validate_only
        )

    with_admin(bootstrap_server, config, timeout, work, changes=True)
    typer.echo(
        f"{'could alter' if validate_only else 'altered'} {', '.join(printable(str(each)) for each in resources)}"
    )


def _kind(text: str) -> str:
    if text.removesuffix("s") in KINDS:  # topics for topic
        text = text.removesuffix("s")
    if text not in KINDS:
        from difflib import get_close_matches

        near = get_close_matches(text, KINDS, n=1)
        fail(f"{text} has no settings; " + (f"did you mean {near[0]}?" if near else f"these have: {', '.join(KINDS)}"))
    return KINDS[text]


def _name(resource: ConfigResource) -> str:
    return resource.type.name.lower().replace("_", "-")


def _resources(kind: str, names: list[str]) -> list[ConfigResource]:
    from kohort.client.administration.configs import ConfigResource, ResourceType

    type_ = ResourceType[_kind(kind)]
    if type_ in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        for name in names:
            if not name.isdecimal():
                fail(f"{name}: a broker's id is wanted, a number")
    if not names:
        if type_ is not ResourceType.BROKER:
            fail(f"which {type_.name.lower().replace('_', '-')}? Give its name")
        names = [""]
    return [ConfigResource(type_, name) for name in dict.fromkeys(names)]


async def _check(admin: Admin, kind: str, names: list[str]) -> None:
    """Ends the command if there is no topic of that name."""
    if _kind(kind) == "TOPIC":
        await existing_topics(admin, names)


def _source(entry: ConfigEntry) -> str:
    return entry.source.name.lower().replace("_", " ")


def _print(
    resource: ConfigResource, entries: list[ConfigEntry], defaults: int, synonyms: bool, documentation: bool
) -> None:
    from kohort.cli.client.tables import table

    columns = ["Setting", "Value", "From"]
    columns += ["Could come from"] if synonyms else []
    columns += ["What it is for"] if documentation else []
    rows = []
    for entry in entries:
        row: list[object] = [entry.name, "(secret)" if entry.sensitive else entry.value, _source(entry)]
        if synonyms:
            row.append(", ".join(f"{each.name}={each.value} ({each.source.name.lower()})" for each in entry.synonyms))
        if documentation:
            row.append(entry.documentation or "")
        rows.append(row)
    if rows:
        out.print(table(columns, rows, title=str(resource)))
    else:
        typer.echo(f"{printable(str(resource))}: nothing is set")
    if defaults:
        err.print(f"and {defaults} defaults; --all shows them")


def _as_json(resource: ConfigResource, entries: Any) -> dict[str, Any]:
    return {
        "kind": _name(resource),
        "name": resource.name,
        "settings": [
            {
                "name": entry.name,
                "value": entry.value,
                "source": entry.source.name.lower(),
                "read_only": entry.read_only,
                "sensitive": entry.sensitive,
                "synonyms": [
                    {"name": each.name, "value": each.value, "source": each.source.name.lower()}
                    for each in entry.synonyms
                ],
                "documentation": entry.documentation,
            }
            for entry in entries
        ],
    }
