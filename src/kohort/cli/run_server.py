"""`kohort serve` without typer, which takes longer to load than the server.

Plain arguments, as in scripts and tests, are read here; all others, with `--help` and mistakes, are left to typer
(`kohort.cli.serve`).
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import stat
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    import asyncio

    from kohort.broker.broker import Broker
    from kohort.broker.config import Settings
    from kohort.broker.config.listeners import Endpoint
    from kohort.broker.metrics import MetricsPort
    from kohort.broker.secured.secured import Secured
    from kohort.broker.server import Server
    from kohort.cli.console_beside import ConsoleBeside

DEFAULT_LISTEN: Final = "127.0.0.1:9092"
FAILED: Final = 1
WRONG_CALL: Final = 2
RENEWAL_SECONDS: Final = 24 * 3600
"""How often a secured server looks whether its certificate is about to expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of `kohort serve`, with underscores for dashes; None for those that weren't given.

    Attributes:
        set: "key=value" each, of Kafka's keys.
    """

    listen: str | None = None
    data_dir: str | None = None
    config: str | None = None
    set: tuple[str, ...] = ()
    advertise: str | None = None
    secure: str | None = None
    metrics: str | None = None
    metrics_token_file: str | None = None
    metrics_certfile: str | None = None
    metrics_keyfile: str | None = None
    metrics_cafile: str | None = None
    ephemeral: bool = False
    durable: bool = False
    console: bool = False
    console_port: str | None = None
    console_write: bool = False
    ends_with_stdin: bool = False
    log_level: str = "info"
    log_format: str = "text"


def read_plain(arguments: list[str]) -> ServeOptions | None:
    """The options in plain arguments; None unless every one is `--name value`, `--name=value` or a flag's `--name`."""
    kinds = {"--" + field.name.replace("_", "-"): field for field in fields(ServeOptions)}
    values: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        field = kinds.get(name)
        if field is None:
            return None
        if field.default is False:
            if equals:
                return None
            values[field.name] = True
            continue
        if not equals:
            value = next(rest, "--")
            if value.startswith("-"):
                return None
        values[field.name] = (*values.get(field.name, ()), value) if field.name == "set" else value
    return ServeOptions(**values)


def run_plain(arguments: list[str]) -> bool:
    """Serves, and exits, if the arguments are plain; otherwise returns False at once."""
    options = read_plain(arguments)
    if options is None:
        return False
    serve(options)


def serve(options: ServeOptions) -> NoReturn:
    """Runs a server until a signal stops it, and exits.

    It exits with 0 after SIGTERM, SIGINT or SIGHUP, or the end of standard input if that is asked for, with 1 if it
    can't run (the port or the data directory is taken, the disk is broken), with 2 for wrong options or settings, and
    with 128 + the signal after a second one.
    """
    gc.disable()  # objects that are made until the server is ready stay; collecting in between only takes time
    from kohort.broker.config import ConfigError
    from kohort.broker.logging import FORMATS, LEVELS, set_up_logging

    if options.log_level not in LEVELS:
        _fail(f"--log-level {options.log_level}: one of {', '.join(LEVELS)} is needed", WRONG_CALL)
    if options.log_format not in FORMATS:
        _fail(f"--log-format {options.log_format}: one of {', '.join(FORMATS)} is needed", WRONG_CALL)
    set_up_logging(options.log_level, options.log_format)
    try:
        _check_console(options)
        _check_stdin(options)
        secured = _secured(options)
        settings, metrics = _settings(options, secured)
        directory, temporary = _data_dir(options, settings, secured)
    except (ConfigError, ValueError) as error:
        _fail(str(error), WRONG_CALL)
    except OSError as error:
        _fail(_explained(error), FAILED)
    settings = settings.with_overrides({"log.dirs": directory}, "--data-dir")
    try:
        _run(options, settings, directory, metrics, secured, temporary)
    finally:
        if temporary:
            _remove(directory)
    sys.exit(0)


def _check_console(options: ServeOptions) -> None:
    """Checks the options of the console before anything is made.

    Raises:
        ValueError: they make no sense.
        MissingExtraError: what it needs isn't installed.
    """
    port = options.console_port
    if not options.console:
        if port is not None or options.console_write:
            raise ValueError("--console-port and --console-write need --console")
        return
    if port is not None and not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise ValueError(f"--console-port {port}: a port is wanted, from 0 to 65535; it listens on this machine alone")
    from kohort.extras import CONSOLE, require

    require("console", "--console", CONSOLE)


def _check_stdin(options: ServeOptions) -> None:
    """Checks that the end of standard input can be told.

    A file has no end to wait for. A terminal would be made non-blocking, for those, too, who write to it.

    Raises:
        ValueError: it can't.
    """
    if options.ends_with_stdin:
        mode = 0 if sys.stdin is None else os.fstat(0).st_mode
        if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
            raise ValueError(
                "--ends-with-stdin: standard input is no pipe; the program that starts this keeps one open"
            )


def _secured(options: ServeOptions) -> Secured | None:
    """What secures the server by --secure."""
    if options.secure is None:
        return None
    if not options.secure:
        raise ValueError("--secure: the directory's name is empty")
    from kohort.broker.secured.secured import Secured

    return Secured(Path(options.secure))


def _settings(options: ServeOptions, secured: Secured | None) -> tuple[Settings, MetricsPort | None]:
    """The configuration, and where metrics are served."""
    from kohort.broker.config import Settings
    from kohort.broker.config.listeners import configured_listeners

    settings = Settings.load(Path(options.config) if options.config else None, os.environ, options.set)
    protocol = "PLAINTEXT" if secured is None else "SASL_SSL"
    if settings.configured("listeners") is None:
        settings = settings.with_overrides({"listeners": f"{protocol}://{DEFAULT_LISTEN}"}, "kohort serve's default")
    if options.listen is not None:
        settings = _listening_at(settings, options.listen)
    if options.advertise is not None:
        settings = _advertised_at(settings, options.advertise)
    configured_listeners(settings)  # raises now rather than later
    if secured is not None:
        settings = secured.settings(settings)
        secured.make(settings)
    return settings, _metrics_port(options)


def _listening_at(settings: Settings, listen: str) -> Settings:
    """The settings with --listen: another address of the one listener there is, or other listeners."""
    from kohort.broker.config import ConfigError
    from kohort.broker.config.listeners import configured_listeners, split_endpoint

    if "://" not in listen:
        names = [listener.name for listener in configured_listeners(settings)]
        if len(names) > 1:
            raise ConfigError(
                f"--listen {listen}: listeners ({settings.source_of('listeners')}) has {', '.join(names)}; "
                f"say which, as {names[0]}://{listen}, with commas between several"
            )
        listen = f"{names[0]}://{split_endpoint(listen)}"
    return settings.with_overrides({"listeners": listen}, "--listen")


def _advertised_at(settings: Settings, advertise: str) -> Settings:
    """The settings with --advertise: a host for all listeners, or a host and port for each."""
    from kohort.broker.config import ConfigError
    from kohort.broker.config.listeners import configured_listeners, split_endpoint

    if "://" not in advertise:
        names = [listener.name for listener in configured_listeners(settings)]
        endpoint = split_endpoint(advertise if ":" in advertise else f"{advertise}:0")
        if endpoint.port and len(names) > 1:
            raise ConfigError(
                f"--advertise {advertise}: {', '.join(names)} can't have the same port; leave it out, or say "
                f"{names[0]}://{advertise}, with commas between several"
            )
        advertise = ",".join(f"{name}://{endpoint}" for name in names)
    return settings.with_overrides({"advertised.listeners": advertise}, "--advertise")


def _metrics_port(options: ServeOptions) -> MetricsPort | None:
    """Where metrics are served, and who may ask; None if they aren't served."""
    from kohort.broker.config.listeners import split_endpoint
    from kohort.broker.metrics import MetricsPort
    from kohort.http_access import OPEN, HttpAccess

    access = HttpAccess.load(
        "--metrics-",
        token_file=options.metrics_token_file,
        certfile=options.metrics_certfile,
        keyfile=options.metrics_keyfile,
        cafile=options.metrics_cafile,
    )
    if options.metrics is None:
        if access != OPEN:
            raise ValueError("--metrics-token-file and --metrics-certfile need --metrics, the port that they protect")
        return None
    given = f":{options.metrics}" if options.metrics.isdigit() else options.metrics
    return MetricsPort(*split_endpoint(given), access)


def _data_dir(options: ServeOptions, settings: Settings, secured: Secured | None) -> tuple[Path, bool]:
    """The data directory, and whether it is removed at the end."""
    if options.ephemeral:
        if options.data_dir is not None:
            raise ValueError("--ephemeral and --data-dir exclude each other: data is either thrown away or kept")
        import tempfile

        return Path(tempfile.mkdtemp(prefix="kohort-")), True
    if options.data_dir is not None:
        return Path(options.data_dir).absolute(), False
    given = settings.names("log.dirs") or (settings.names("log.dir") if settings.configured("log.dir") else ())
    if len(given) > 1:
        raise ValueError(f"log.dirs ({settings.source_of('log.dirs')}): one directory is possible, not {len(given)}")
    if not given and secured is not None:
        return secured.data, False
    if not given:
        raise ValueError("where shall data be kept? Give --data-dir DIR, or --ephemeral to throw it away in the end")
    return Path(given[0]).absolute(), False


def _run(
    options: ServeOptions,
    settings: Settings,
    directory: Path,
    metrics: MetricsPort | None,
    secured: Secured | None,
    temporary: bool,
) -> None:
    """Starts a server, announces it, and stops it on a signal."""
    import asyncio
    import logging

    import uvloop

    from kohort.broker.config import ConfigError
    from kohort.broker.config.listeners import Endpoint, configured_listeners
    from kohort.broker.garbage_collection import ShortPauses
    from kohort.broker.heap import keep_freed_memory
    from kohort.broker.server import Server
    from kohort.cli.standard_input import when_stdin_ends
    from kohort.http_access import LOOPBACK

    log = logging.getLogger("kohort.serve")
    for note in settings.notes:
        log.info("setting without effect note=%s", note)
    _raise_file_limit()
    keep_freed_memory()

    async def main() -> None:
        stop = asyncio.Event()

        def signalled(number: signal.Signals) -> None:
            if stop.is_set():  # the second signal ends it at once
                if temporary:
                    _remove(directory)
                os._exit(128 + number)
            log.info("stopping signal=%s", number.name)
            stop.set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, signalled, number)

        def stdin_ended() -> None:
            if not stop.is_set():
                log.info("stopping: standard input has ended")
                stop.set()

        if options.ends_with_stdin:
            when_stdin_ends(stdin_ended)

        def prepare(broker: Broker) -> None:
            if secured is not None:
                secured.let_in(broker.scram_users)

        server = Server(settings, data_dir=directory, metrics=metrics, durable=options.durable, prepare=prepare)
        await server.start()
        ShortPauses()
        gc.enable()
        renewals = None if secured is None else asyncio.create_task(_renew(secured, settings, log))
        console: ConsoleBeside | None = None
        try:
            if secured is not None:
                _tell_settings(secured, server, log, options)
            if options.console:
                console = _console(options, server, secured)
                await _start(console, stop, log)
            if not stop.is_set():
                _announce(server, log)
                await stop.wait()
        finally:
            if console is not None:
                await console.stop()
            if renewals is not None:
                renewals.cancel()
            await server.stop()

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())
    except ConfigError as error:
        _fail(str(error), WRONG_CALL)
    except RuntimeError as error:
        if not options.console or not _is_the_consoles(error):
            raise
        _fail(str(error), FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        taken = [listener.endpoint for listener in configured_listeners(settings)]
        if metrics is not None:
            taken.append(Endpoint(metrics.host or LOOPBACK, metrics.port))
        _fail(_explained(error, *taken), FAILED)


def _console(options: ServeOptions, server: Server, secured: Secured | None) -> ConsoleBeside:
    """The console beside the broker, which listens on this machine alone."""
    from kohort.cli.console_beside import ConsoleBeside, console_options

    wanted = console_options(server.listeners, None if secured is None else secured.java)
    if options.console_port is not None:
        wanted += ["--port", options.console_port]
    if options.console_write:
        wanted.append("--write")
    return ConsoleBeside(wanted, by_user=secured is not None)


async def _start(console: ConsoleBeside, stop: asyncio.Event, log: Any) -> None:
    """Starts the console, unless the broker is stopped meanwhile."""
    import asyncio

    starting, stopping = asyncio.create_task(console.start()), asyncio.create_task(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait((starting,))
    elif (address := starting.result()) is not None:
        log.info("console address=%s", address)


def _is_the_consoles(error: RuntimeError) -> bool:
    from kohort.cli.console_beside import ConsoleFailedError

    return isinstance(error, ConsoleFailedError)


def _announce(server: Server, log: Any) -> None:
    """Prints that connections are accepted: the only line on standard output, which programs may wait for."""
    addresses = [listener.endpoint._replace(host=listener.host or "0.0.0.0") for listener in server.listeners]
    if server.metrics_port is not None:
        log.info("metrics port=%d path=/metrics", server.metrics_port)
    sys.stdout.write(f"kohort ready on {' '.join(map(str, addresses))}\n")
    sys.stdout.flush()


def _tell_settings(secured: Secured, server: Server, log: Any, options: ServeOptions) -> None:
    """Writes the settings of clients to files, and shows them on standard error; its password in a terminal alone."""
    servers = str(server.listeners[0].advertised)
    secured.write_client_settings(servers)
    log.info(
        "client settings are in java=%s librdkafka=%s ca=%s", secured.java, secured.librdkafka, secured.certificates.ca
    )
    if options.log_format == "text":
        sys.stderr.write(secured.shown(servers, with_password=sys.stderr.isatty()))
        sys.stderr.flush()


async def _renew(secured: Secured, settings: Settings, log: Any) -> None:
    """Makes the certificate anew before it expires; the server takes it up as any that changes."""
    import asyncio

    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        try:
            await asyncio.to_thread(secured.make, settings)
        except (OSError, ValueError) as error:
            log.warning("the certificate can't be looked after: %s", error)


def _raise_file_limit() -> None:
    """Allows as many open connections and segments as the system does."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _remove(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def _explained(error: OSError, *endpoints: Endpoint) -> str:
    import socket

    where = f"{error.filename}: " if error.filename else ""
    what = error.strerror or str(error)
    addresses = " or ".join(map(str, endpoints))
    if isinstance(error, socket.gaierror):
        return f"{addresses}: there is no such host ({what})"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{addresses} is in use: stop what listens there, or choose another port (0 takes a free one)"
        case errno.EADDRNOTAVAIL:
            return f"{addresses} is no address of this machine"
        case errno.EACCES | errno.EPERM if not error.filename and addresses:
            return f"{addresses}: {what}; ports below 1024 are the system's"
    return f"{where}{what}"


def _fail(message: str, code: int) -> NoReturn:
    from kohort.cli.terminal import complain

    complain(message)
    sys.exit(code)
