"""`kohort acls`."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kohort.cli.client.admin import confirm, with_admin
from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, JsonOption, TimeoutOption
from kohort.cli.terminal import fail, out, print_json, printable

if TYPE_CHECKING:
    from kohort.client.admin import Acl, AclPattern, AclResource, Admin

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

E = TypeVar("E", bound=enum.IntEnum)

PrincipalOption = Annotated[
    str | None, typer.Option(metavar="PRINCIPAL", help="Whose rules, such as User:alice; User:* is everyone.")
]
OperationOption = Annotated[
    str | None, typer.Option(metavar="OPERATION", help="What they may do: read, write, create, … all.")
]
TopicOption = Annotated[str | None, typer.Option(metavar="NAME", help="About this topic; '*' is all of them.")]
GroupOption = Annotated[str | None, typer.Option(metavar="NAME", help="About this group; '*' is all of them.")]
TransactionalOption = Annotated[
    str | None, typer.Option("--transactional-id", metavar="ID", help="About this transactional id.")
]
UserOption = Annotated[str | None, typer.Option(metavar="NAME", help="About tokens of this user.")]
ClusterOption = Annotated[bool, typer.Option("--cluster", help="About the cluster.")]
PrefixedOption = Annotated[bool, typer.Option("--prefixed", help="The name is a prefix of the names that are meant.")]
HostOption = Annotated[str | None, typer.Option(metavar="ADDRESS", help="From this address.")]
DenyOption = Annotated[bool, typer.Option("--deny", help="A denial, which counts before any permission.")]


@app.command("list")
def list_(
    principal: PrincipalOption = None,
    operation: OperationOption = None,
    topic: TopicOption = None,
    group: GroupOption = None,
    transactional_id: TransactionalOption = None,
    user: UserOption = None,
    on_cluster: ClusterOption = False,
    covering: Annotated[
        bool, typer.Option("--covering", help="All that cover the name, prefixes and '*' too.")
    ] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """List access rules: all, or those about a resource, of a principal.

    kohort acls list --topic orders --covering
    """
    from kohort.client.admin import AclFilter, AclOperation, AclPattern, AclResource

    about = _about(topic, group, transactional_id, user, on_cluster)
    if covering and about is None:
        fail("--covering needs a topic, group, transactional id or user")
    wanted = AclFilter(
        resource=AclResource.ANY if about is None else about[0],
        name=None if about is None else about[1],
        principal=principal,
        operation=AclOperation.ANY if operation is None else _of(AclOperation, operation),
        pattern=AclPattern.MATCH if covering else AclPattern.ANY,
    )
    acls = with_admin(bootstrap_server, config, timeout, lambda admin: admin.acls.describe(wanted))
    if as_json:
        print_json([_plain(acl) for acl in acls])
        return
    from kohort.cli.client.tables import table

    out.print(table(("Principal", "May", "Operation", "Resource", "Pattern", "Name", "Host"), map(_cells, acls)))


@app.command()
def add(
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Such as User:alice; User:* is everyone.")],
    operations: Annotated[list[str], typer.Argument(metavar="OPERATION…", help="read, write, create, … all.")],
    topic: TopicOption = None,
    group: GroupOption = None,
    transactional_id: TransactionalOption = None,
    user: UserOption = None,
    on_cluster: ClusterOption = False,
    prefixed: PrefixedOption = False,
    host: HostOption = None,
    deny: DenyOption = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Add access rules, one for each operation.

    kohort acls add User:alice read describe --topic orders- --prefixed
    """
    from kohort.client.admin import Acl, AclOperation, AclPermission

    resource, name = _needed(_about(topic, group, transactional_id, user, on_cluster))
    acls = [
        Acl(
            resource,
            name,
            principal,
            _of(AclOperation, operation),
            AclPermission.DENY if deny else AclPermission.ALLOW,
            _pattern(prefixed),
            host or "*",
        )
        for operation in operations
    ]

    async def work(admin: Admin) -> None:
        await admin.acls.create(*acls)

    with_admin(bootstrap_server, config, timeout, work, changes=True)
    for acl in acls:
        typer.echo(f"added: {_sentence(acl)}")


@app.command()
def remove(
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Whose rules, such as User:alice.")],
    operations: Annotated[
        list[str] | None, typer.Argument(metavar="OPERATION…", help="Without any: all rules.")
    ] = None,
    topic: TopicOption = None,
    group: GroupOption = None,
    transactional_id: TransactionalOption = None,
    user: UserOption = None,
    on_cluster: ClusterOption = False,
    prefixed: PrefixedOption = False,
    host: HostOption = None,
    deny: DenyOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Remove a principal's access rules about a resource: all of them, or those for some operations.

    kohort acls remove User:alice read --topic orders- --prefixed
    """
    from kohort.client.admin import AclFilter, AclOperation, AclPermission

    resource, name = _needed(_about(topic, group, transactional_id, user, on_cluster))
    wanted = [
        AclFilter(
            resource,
            name,
            principal,
            operation,
            AclPermission.DENY if deny else AclPermission.ANY,
            _pattern(prefixed),
            host,
        )
        for operation in [_of(AclOperation, each) for each in operations or ()] or [AclOperation.ANY]
    ]
    confirm(f"Remove the rules of {principal} about {resource.name.lower()} {name}?", yes=yes)

    removed = with_admin(bootstrap_server, config, timeout, lambda admin: admin.acls.delete(*wanted))
    if not removed:
        fail("no rule matches", 1)
    for acl in removed:
        typer.echo(f"removed: {_sentence(acl)}")


def _about(
    topic: str | None, group: str | None, transactional_id: str | None, user: str | None, cluster: bool
) -> tuple[AclResource, str] | None:
    """The resource that is meant; None if no option says one."""
    from kohort.client.admin import AclResource

    given = [
        (kind, name)
        for kind, name in (
            (AclResource.TOPIC, topic),
            (AclResource.GROUP, group),
            (AclResource.TRANSACTIONAL_ID, transactional_id),
            (AclResource.USER, user),
            (AclResource.CLUSTER, "kafka-cluster" if cluster else None),
        )
        if name is not None
    ]
    if len(given) > 1:
        fail("a rule is about one resource: one of --topic, --group, --transactional-id, --user, --cluster")
    return given[0] if given else None


def _needed(about: tuple[AclResource, str] | None) -> tuple[AclResource, str]:
    if about is None:
        fail("what about? One of --topic, --group, --transactional-id, --user, --cluster is needed")
    return about


def _of(names: type[E], given: str) -> E:
    found = names.__members__.get(given.upper().replace("-", "_"))
    if found is None or found.name == "ANY":
        known = ", ".join(name.lower() for name in names.__members__ if name != "ANY")
        fail(f"{given}: there is no such operation, only {known}")
    return found


def _pattern(prefixed: bool) -> AclPattern:
    from kohort.client.admin import AclPattern

    return AclPattern.PREFIXED if prefixed else AclPattern.LITERAL


def _cells(acl: Acl) -> tuple[str, ...]:
    return (
        acl.principal,
        acl.permission.name.lower(),
        acl.operation.name.lower(),
        acl.resource.name.lower(),
        acl.pattern.name.lower(),
        acl.name,
        acl.host,
    )


def _plain(acl: Acl) -> dict[str, str]:
    keys = ("principal", "permission", "operation", "resource", "pattern", "name", "host")
    return dict(zip(keys, _cells(acl), strict=True))


def _sentence(acl: Acl) -> str:
    principal, permission, operation, resource, pattern, name, host = map(printable, _cells(acl))
    named = f"{resource}s that begin with {name}" if pattern == "prefixed" else f"{resource} {name}"
    where = "" if host == "*" else f", from {host}"
    return f"{permission} {principal} to {operation} {named}{where}"
