"""`kohort serve` without typer, which takes longer to load than the server.

Plain arguments, as in scripts and tests, are read here; all others, with `--help` and mistakes, are left to typer
(`kohort.cli.serve`).
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from kohort.broker.config import Settings
    from kohort.broker.config.listeners import Endpoint
    from kohort.broker.server import Server

DEFAULT_LISTEN: Final = "127.0.0.1:9092"
FAILED: Final = 1
WRONG_CALL: Final = 2


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
    metrics: str | None = None
    ephemeral: bool = False
    durable: bool = False
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

    It exits with 0 after SIGTERM, SIGINT or SIGHUP, with 1 if it can't run (the port or the data directory is taken,
    the disk is broken), with 2 for wrong options or settings, and with 128 + the signal after a second one.
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
        settings, listen, metrics = _settings(options)
        directory, temporary = _data_dir(options, settings)
    except (ConfigError, ValueError) as error:
        _fail(str(error), WRONG_CALL)
    except OSError as error:
        _fail(_explained(error), FAILED)
    settings = settings.with_overrides({"log.dirs": directory}, "--data-dir")
    try:
        _run(options, settings, directory, listen, metrics, temporary)
    finally:
        if temporary:
            _remove(directory)
    sys.exit(0)


def _settings(options: ServeOptions) -> tuple[Settings, Endpoint, Endpoint | None]:
    """The configuration, the endpoint to listen on, and that of metrics."""
    from kohort.broker.config import Settings
    from kohort.broker.config.listeners import (
        advertised_endpoint,
        check_protocols,
        listening_endpoint,
        split_endpoint,
    )

    settings = Settings.load(Path(options.config) if options.config else None, os.environ, options.set)
    check_protocols(settings)  # a listener that can't be had isn't replaced by one in plain text
    if options.listen is not None or settings.configured("listeners") is None:
        endpoint = split_endpoint(options.listen or DEFAULT_LISTEN)
        where = "--listen" if options.listen else "kohort serve's default"
        settings = settings.with_overrides({"listeners": f"PLAINTEXT://{endpoint}"}, where)
    if options.advertise is not None:
        endpoint = split_endpoint(options.advertise if ":" in options.advertise else f"{options.advertise}:0")
        listener = f"PLAINTEXT://{endpoint}"
        settings = settings.with_overrides({"advertised.listeners": listener}, "--advertise")
    listen = listening_endpoint(settings)
    advertised_endpoint(settings, listen)  # raises now rather than later
    return settings, listen, split_endpoint(options.metrics) if options.metrics is not None else None


def _data_dir(options: ServeOptions, settings: Settings) -> tuple[Path, bool]:
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
    if not given:
        raise ValueError("where shall data be kept? Give --data-dir DIR, or --ephemeral to throw it away in the end")
    return Path(given[0]).absolute(), False


def _run(
    options: ServeOptions,
    settings: Settings,
    directory: Path,
    listen: Endpoint,
    metrics: Endpoint | None,
    temporary: bool,
) -> None:
    """Starts a server, announces it, and stops it on a signal."""
    import asyncio
    import logging

    import uvloop

    from kohort.broker.config import ConfigError
    from kohort.broker.config.listeners import Endpoint, advertised_endpoint
    from kohort.broker.garbage_collection import ShortPauses
    from kohort.broker.heap import keep_freed_memory
    from kohort.broker.server import Server

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
        server = Server(
            settings,
            data_dir=directory,
            host=listen.host,
            port=listen.port,
            advertised=_advertised(settings, listen),
            metrics=metrics,
            durable=options.durable,
        )
        await server.start()
        ShortPauses()
        gc.enable()
        try:
            _announce(Endpoint(listen.host or "0.0.0.0", server.port), server, log)
            await stop.wait()
        finally:
            await server.stop()

    def _advertised(settings: Settings, listen: Endpoint) -> tuple[str, int] | None:
        return advertised_endpoint(settings, listen) if settings.names("advertised.listeners") else None

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())
    except ConfigError as error:
        _fail(str(error), WRONG_CALL)
    except BrokenPipeError:
        raise
    except OSError as error:
        _fail(_explained(error, listen, metrics), FAILED)


def _announce(endpoint: Endpoint, server: Server, log: Any) -> None:
    """Prints that connections are accepted: the only line on standard output, which programs may wait for."""
    if server.metrics_port is not None:
        log.info("metrics port=%d path=/metrics", server.metrics_port)
    sys.stdout.write(f"kohort ready on {endpoint}\n")
    sys.stdout.flush()


def _raise_file_limit() -> None:
    """Allows as many open connections and segments as the system does."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _remove(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def _explained(error: OSError, listen: Endpoint | None = None, metrics: Endpoint | None = None) -> str:
    import socket

    where = f"{error.filename}: " if error.filename else ""
    what = error.strerror or str(error)
    addresses = " or ".join(str(endpoint) for endpoint in (listen, metrics) if endpoint is not None)
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
