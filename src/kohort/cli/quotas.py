"""`kohort quotas`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from kohort.cli.client.admin import confirm, with_admin
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.terminal import fail, out, print_json, printable

if TYPE_CHECKING:
    from kohort.client.admin import Admin, QuotaEntity

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

UserOption = Annotated[str | None, typer.Option(metavar="NAME", help="Of this user.")]
ClientIdOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Of this client id; with a user, of this user's.")
]
IpOption = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Of this address.")]
DefaultUserOption = Annotated[
    bool, typer.Option("--default-user", help="Of all users without quotas of their own, each for itself.")
]
DefaultClientIdOption = Annotated[bool, typer.Option("--default-client-id", help="Of all other client ids, each.")]
DefaultIpOption = Annotated[bool, typer.Option("--default-ip", help="Of all other addresses, each.")]


@app.command("list")
def list_(
    user: UserOption = None,
    client_id: ClientIdOption = None,
    ip: IpOption = None,
    default_user: DefaultUserOption = False,
    default_client_id: DefaultClientIdOption = False,
    default_ip: DefaultIpOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """List quotas: all, or those of a user, a client id, an address.

    kohort quotas list --user alice
    """
    wanted = _entity(user, client_id, ip, default_user, default_client_id, default_ip)
    found = with_admin(bootstrap_server, config, timeout, lambda admin: admin.quotas.describe(wanted))
    if as_json:
        print_json([{**_plain(entity), "quotas": quotas} for entity, quotas in found.items()])
        return
    from kohort.cli.client.tables import table

    rows = [(_words(entity), key, _number(value)) for entity, quotas in found.items() for key, value in quotas.items()]
    out.print(table(("Of", "Quota", ">Value"), rows))


@app.command("set")
def set_(
    quotas: Annotated[list[str], typer.Argument(metavar="QUOTA=VALUE…", help="Such as producer_byte_rate=1048576.")],
    user: UserOption = None,
    client_id: ClientIdOption = None,
    ip: IpOption = None,
    default_user: DefaultUserOption = False,
    default_client_id: DefaultClientIdOption = False,
    default_ip: DefaultIpOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Set quotas: of users and client ids producer_byte_rate and consumer_byte_rate (bytes a second),
    request_percentage (of a thread's time), controller_mutation_rate (partitions a second); of addresses
    connection_creation_rate (connections a second).

    kohort quotas set --user alice producer_byte_rate=1048576 request_percentage=50

    kohort quotas set --default-ip connection_creation_rate=20
    """
    entity = _needed(_entity(user, client_id, ip, default_user, default_client_id, default_ip))
    values = dict(map(_value, quotas))

    async def work(admin: Admin) -> None:
        await admin.quotas.set(entity, values)

    with_admin(bootstrap_server, config, timeout, work, changes=True)
    for key, value in values.items():
        typer.echo(f"set: {printable(key)}={_number(value)} of {printable(_words(entity))}")


@app.command()
def remove(
    quotas: Annotated[list[str] | None, typer.Argument(metavar="QUOTA…", help="Without any: all.")] = None,
    user: UserOption = None,
    client_id: ClientIdOption = None,
    ip: IpOption = None,
    default_user: DefaultUserOption = False,
    default_client_id: DefaultClientIdOption = False,
    default_ip: DefaultIpOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Remove quotas of a user, a client id, both together, or an address: all, or some.

    kohort quotas remove --user alice producer_byte_rate
    """
    entity = _needed(_entity(user, client_id, ip, default_user, default_client_id, default_ip))
    confirm(f"Remove {', '.join(quotas) if quotas else 'all quotas'} of {_words(entity)}?", yes=yes)

    removed = with_admin(
        bootstrap_server, config, timeout, lambda admin: admin.quotas.remove(entity, *(quotas or ())), changes=True
    )
    if not removed:
        fail(f"there is no such quota of {_words(entity)}", 1)
    for key, value in removed.items():
        typer.echo(f"removed: {printable(key)}={_number(value)} of {printable(_words(entity))}")


def _entity(
    user: str | None, client_id: str | None, ip: str | None, default_user: bool, default_client_id: bool,
    default_ip: bool,
) -> QuotaEntity:  # fmt: skip
    """Whom the options name."""
    from kohort.client.admin import DEFAULT, QuotaEntity

    parts = []
    for option, name, default in (
        ("user", user, default_user),
        ("client-id", client_id, default_client_id),
        ("ip", ip, default_ip),
    ):
        if name is not None and default:
            fail(f"--{option} and --default-{option} exclude each other")
        parts.append(DEFAULT if default else name)
    return QuotaEntity(*parts)


def _needed(entity: QuotaEntity) -> QuotaEntity:
    if all(part is None for part in entity):
        fail("of whom? --user, --client-id, --ip, or one of their defaults is needed")
    return entity


def _value(given: str) -> tuple[str, float]:
    key, _, text = given.partition("=")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not key or not math.isfinite(value):
        fail(f"{given}: QUOTA=VALUE is needed, such as producer_byte_rate=1048576")
    return key, value


def _words(entity: QuotaEntity) -> str:
    """An entity as one reads it: `user alice, client id by default`."""
    kinds = ("user", "client id", "address")
    return ", ".join(
        f"{kind} {part}" if isinstance(part, str) else f"{kind} by default"
        for kind, part in zip(kinds, entity, strict=True)
        if part is not None
    )


def _plain(entity: QuotaEntity) -> dict[str, object]:
    """An entity as JSON: a part that is there has a name, or null for the default."""
    kinds = ("user", "client_id", "ip")
    return {
        kind: part if isinstance(part, str) else None
        for kind, part in zip(kinds, entity, strict=True)
        if part is not None
    }


def _number(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:,}"
