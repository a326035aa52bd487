"""`kohort console`."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from kohort.cli.client.options import DEFAULT_TIMEOUT, BootstrapOption, ConfigOption, check_timeout, client_config
from kohort.cli.terminal import err, fail

DEFAULT_PORT: Final = 8090


def command(
    bootstrap_server: BootstrapOption = None,
    config: ConfigOption = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port of it; 0 takes a free one.")] = DEFAULT_PORT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which browsers come, beside localhost and addresses. Repeatable."),
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
    from kohort.console.record_reader import RecordReader
    from kohort.console.server import ConsoleServer
    from kohort.console.watcher import Watcher
    from kohort.http_access import is_loopback

    names = []
    for each in allow_host or ():
        name = name_of(each)
        if name is None:
            fail(f"--allow-host {each!r} isn't a name, such as console.example")
        names.append(name)
    settings = client_config(bootstrap_server, config, timeout)

    async def body() -> None:
        async with Admin(settings, default_api_timeout_ms=int(timeout * 1000)) as admin:
            reader = ClusterReader(admin)
            watcher = Watcher(reader, every=every)
            await watcher.look()
            server = ConsoleServer(
                watcher,
                reader,
                RecordReader(settings, admin),
                cluster=", ".join(f"{_bracketed(name)}:{number}" for name, number in settings.addresses),
                host=host,
                port=port,
                names=names,
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
                await watcher.run()
            finally:
                await server.close()

    run(body, loop_factory=uvloop.new_event_loop)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
