"""`kohort console`."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, check_timeout, client_config
from kohort.cli.terminal import err, fail

if TYPE_CHECKING:
    from kohort.schema_registry.client import RegistryClient

DEFAULT_PORT: Final = 8090

REGISTRY_S: Final = 3.0
"""Time for a schema registry to answer: a page waits for it."""


def command(
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port of it; 0 takes a free one.")] = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which browsers come, beside localhost and addresses. Repeatable."),
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
        float, typer.Option(metavar="SECONDS", min=0.1, max=3_600, help="From one look at the groups to the next.")
    ] = 2.0,
    stores: Annotated[
        bool,
        typer.Option("--stores", help="Show stores of streams groups: asks the addresses that members tell, by HTTP."),
    ] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", callback=check_timeout, help="To find the cluster, and for its answers.")
    ] = DEFAULT_TIMEOUT,
) -> None:
    """Show a cluster in a browser: groups of every type with members and lag, topics and their records.

    kohort console --bootstrap-server kafka.example:9092

    It shows, and changes nothing. Pages of groups stay up to date while they are open, and the lag's history is kept
    while the console runs, not longer. It works with Apache Kafka, too.

    Whoever reaches the port sees what the console's user may read, so it listens on this machine alone by default. For
    others, put a proxy in front that asks who they are, and name it by --allow-host.
    """
    import uvloop

    from kohort.cli.client.run import run
    from kohort.extras import CONSOLE, require

    require("console", "kohort console", CONSOLE)
    from kohort.client.admin import Admin
    from kohort.console.cluster_reader import ClusterReader
    from kohort.console.hosts import name_of
    from kohort.console.record_decoding import RecordDecoder
    from kohort.console.record_reader import RecordReader
    from kohort.console.server import ConsoleServer
    from kohort.console.topic_watcher import TopicWatcher
    from kohort.console.watcher import Watcher
    from kohort.http_access import is_loopback

    names = []
    for each in allow_host or ():
        name = name_of(each)
        if name is None:
            fail(f"--allow-host {each!r} isn't a name, such as console.example")
        names.append(name)
    schemas = _registry(schema_registry, schema_registry_auth, schema_registry_ca)
    decoder = RecordDecoder(schemas, clock=time.monotonic)
    settings = client_config(bootstrap_server, config, timeout)

    async def body() -> None:
        async with Admin(settings, default_api_timeout_ms=int(timeout * 1000)) as admin:
            reader = ClusterReader(admin)
            watcher = Watcher(reader, every=every)
            growth = TopicWatcher(reader, every=every)
            await watcher.look()
            server = ConsoleServer(
                watcher,
                reader,
                RecordReader(settings, admin, decoder),
                cluster=", ".join(f"{_bracketed(name)}:{number}" for name, number in settings.addresses),
                host=host,
                port=port,
                names=names,
                growth=growth,
                stores=stores,
            )
            try:
                try:
                    await server.start()
                except OSError as error:
                    fail(f"can't listen on {host}, port {port}: {error.strerror or error}", 1)
                typer.echo(f"http://{_bracketed(host)}:{server.port}/")
                if not is_loopback(host):
                    warning = "others than this machine may reach it, and read what this user may"
                    err.print(warning, markup=False, soft_wrap=True)
                await asyncio.gather(watcher.run(), growth.run())
            finally:
                await server.close()

    run(body, loop_factory=uvloop.new_event_loop)


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
