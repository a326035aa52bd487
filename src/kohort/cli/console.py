"""`kohort console`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.client.options import (
    DEFAULT_TIMEOUT,
    BootstrapOption,
    ConfigOption,
    check_timeout,
    client_config,
    within,
)
from kohort.cli.console_child import PORT_TAKEN, TOKEN_VARIABLE
from kohort.cli.terminal import err, fail

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kohort.cli.console_access import ConsoleAccess
    from kohort.client.config import ClientConfig
    from kohort.console.record_decoding import RecordDecoder
    from kohort.http_access import HttpAccess
    from kohort.schema_registry.client import RegistryClient

DEFAULT_PORT: Final = 8090

REGISTRY_S: Final = 3.0
"""Time for a schema registry to answer: a page waits for it."""


def command(
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", callback=within(0, 65_535), help="The port of it; 0 takes a free one.")
    ] = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which browsers come, beside localhost and addresses. Repeatable."),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help=f"Ask for the token in this file, or in ${TOKEN_VARIABLE}, before all else."),
    ] = None,
    login: Annotated[
        str | None,
        typer.Option(metavar="scram", help="Ask for a name and password of the cluster, and do all as that user."),
    ] = None,
    no_login: Annotated[
        bool, typer.Option("--no-login", help="Let in whoever reaches the port, on any address.")
    ] = False,
    certfile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Serve it over TLS: a PEM certificate with those that signed it.")
    ] = None,
    keyfile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Its key in PEM, where that isn't in the same file.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Let changes be made: offsets, groups, topics, settings, records.")
    ] = False,
    audit_log: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Append a line for each change and refusal here, not to standard error."),
    ] = None,
    schema_registry: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A schema registry with Confluent's API, by which records are shown."),
    ] = None,
    schema_registry_auth: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with the registry's user:password, or a token.", dir_okay=False),
    ] = None,
    schema_registry_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The registry's authorities, PEM.", dir_okay=False)
    ] = None,
    every: Annotated[
        float,
        typer.Option(metavar="SECONDS", callback=within(0.1, 3_600), help="From one look at the groups to the next."),
    ] = 2.0,
    stores: Annotated[
        bool,
        typer.Option("--stores", help="Show stores of streams groups: asks the addresses that members tell."),
    ] = False,
    stores_token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="The token that instances want, in this file.")
    ] = None,
    stores_cafile: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Ask instances by HTTPS: their authorities, PEM. Without, by HTTP."),
    ] = None,
    stores_certfile: Annotated[
        str | None, typer.Option(metavar="FILE", help="The certificate that instances want to see, PEM.")
    ] = None,
    stores_keyfile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Its key in PEM, where that isn't in the same file.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", callback=check_timeout, help="To find the cluster, and for its answers.")
    ] = DEFAULT_TIMEOUT,
    ends_with_stdin: Annotated[bool, typer.Option("--ends-with-stdin", hidden=True)] = False,
) -> None:
    """Show a cluster in a browser: groups of every type with members and lag, topics and their records.

    kohort console --bootstrap-server kafka.example:9092

    Pages of groups stay up to date while they are open, and the lag's history is kept while the console runs, not
    longer. It works with Apache Kafka, too. With --write, it also changes things: it shows first what will happen, and
    writes down what has.

    It listens on this machine alone by default. Elsewhere it asks who comes: for a token, or for a user of the cluster:

    kohort console --host 0.0.0.0 --login scram --config client.properties --certfile console.pem
    """
    import uvloop

    from kohort.cli.client.run import run
    from kohort.extras import CONSOLE, require

    require("console", "kohort console", CONSOLE)
    from kohort.cli.console_access import console_access, stores_access
    from kohort.console.hosts import name_of
    from kohort.console.record_decoding import RecordDecoder

    names = []
    for each in allow_host or ():
        name = name_of(each)
        if name is None:
            fail(f"--allow-host {each!r} isn't a name, such as console.example")
        names.append(name)
    schemas = _registry(schema_registry, schema_registry_auth, schema_registry_ca)
    decoder = RecordDecoder(schemas, clock=time.monotonic)
    settings = client_config(bootstrap_server, config, timeout)
    access = console_access(
        host=host,
        token_file=token_file,
        token=os.environ.get(TOKEN_VARIABLE),
        login=login,
        no_login=no_login,
        certfile=certfile,
        keyfile=keyfile,
        write=write,
        audit_log=audit_log,
        uses_sasl=settings.uses_sasl,
    )

    asking = stores_access(stores, stores_token_file, stores_cafile, stores_certfile, stores_keyfile)

    async def body() -> None:
        taken = PORT_TAKEN if ends_with_stdin else 1
        serving = _serve(settings, access, host, port, names, every, timeout, decoder, asking, taken)
        if ends_with_stdin:
            await _until_stdin_ends(serving)
        else:
            await serving

    run(body, loop_factory=uvloop.new_event_loop)


async def _serve(
    settings: ClientConfig,
    access: ConsoleAccess,
    host: str,
    port: int,
    names: list[str],
    every: float,
    timeout: float,
    decoder: RecordDecoder,
    stores: HttpAccess | None,
    taken: int,
) -> None:
    """Runs the console; exits with `taken` if it can't listen."""
    import asyncio

    from kohort.client.admin import Admin
    from kohort.console.desk import desk_of
    from kohort.console.server import ConsoleServer

    async with Admin(settings, default_api_timeout_ms=int(timeout * 1000)) as admin:
        desk = desk_of(admin, settings, every, decoder)
        if not access.by_user:
            await desk.watcher.look()
        server = ConsoleServer(
            desk.watcher,
            desk.reader,
            desk.records,
            growth=desk.growth,
            stores=stores,
            access=desk.access,
            cluster=", ".join(f"{_bracketed(name)}:{number}" for name, number in settings.addresses),
            host=host,
            port=port,
            names=names,
            policy=access.policy(settings, desk, every=every, timeout_ms=int(timeout * 1000)),
        )
        try:
            try:
                await server.start()
            except OSError as error:
                fail(f"can't listen on {host}, port {port}: {error.strerror or error}", taken)
            typer.echo(f"{access.scheme}://{_bracketed(host)}:{server.port}/")
            if warning := access.warning(host):
                err.print(warning, markup=False, soft_wrap=True)
            # With a login by users, everybody has a desk of their own, and nobody sees this one.
            await (asyncio.Event().wait() if access.by_user else desk.run())
        finally:
            await server.close()


async def _until_stdin_ends(serving: Coroutine[Any, Any, None]) -> None:
    """Serves until standard input ends, as it does with the process that has the other end."""
    import asyncio

    from kohort.cli.standard_input import when_stdin_ends

    work = asyncio.create_task(serving)

    when_stdin_ends(work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        if not work.cancelled():
            raise


def _registry(url: str | None, auth: Path | None, ca: Path | None) -> RegistryClient | None:
    """Who is asked for schemas: once, and not for long, since somebody waits for a page."""
    if url is None:
        if auth is not None or ca is not None:
            fail("--schema-registry-auth and --schema-registry-ca want --schema-registry")
        return None
    from kohort.schema_registry.client import RegistryClient
    from kohort.schema_registry.registry import SchemaRegistry

    try:
        said = None if auth is None else auth.read_text().strip()
        user, colon, password = (said or "").partition(":")
        registry = SchemaRegistry(
            url,
            auth=(user, password) if colon else said,
            ca_file=None if ca is None else str(ca),
            timeout_s=REGISTRY_S,
            retry_s=0,
        )
        return RegistryClient(registry)
    except OSError as error:
        fail(f"{error.filename or ca}: {error.strerror or error}")
    except ValueError as error:
        fail(str(error))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
