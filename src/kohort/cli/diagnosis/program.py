"""A streams application: whether it can run as it is written, here and on its cluster. It joins nothing."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kohort import extras
from kohort.cli.client.errors import explain
from kohort.cli.diagnosis.finding import Finding, Level
from kohort.cli.diagnosis.machine import disk_findings, existing, java_findings, may_write
from kohort.client.admin import Admin
from kohort.client.errors import ClientError
from kohort.plurals import several
from kohort.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kohort.client.config import ClientConfig
    from kohort.client.types import TopicInfo
    from kohort.schema_registry.registry import SchemaRegistry
    from kohort.spark.app import StreamsApp
    from kohort.spark.program.compiled import Program
    from kohort.spark.program.settings import AppSettings
    from kohort.spark.queues.compiling import CompiledQueue

_Program = partial(Finding, "program")


def not_loaded(place: str, error: BaseException) -> Finding:
    """A program that raises while it is loaded: what, and in which line of whose file."""
    what = f"{place} can't be loaded: {_said(place, error)}"
    return _Program(Level.WRONG, what, "It would end in the same way when it is started.", "mend that line")


def _said(place: str, error: BaseException) -> str:
    """An error in a line, with the line of the program that it is of: not that of a package which the program calls."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename and os.path.isfile(error.filename):  # noqa: PTH113
        return f"{kind}: {error.msg}, at {error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = _own_directory(place)
    at = next((each for each in reversed(frames) if _is_own(each.filename, own)), frames[-1] if frames else None)
    text = next(iter(str(error).strip().splitlines()), "")
    return f"{kind}: {text}" + ("" if at is None else f", at {at.filename}:{at.lineno}")


def _own_directory(place: str) -> Path:
    path = place.partition(":")[0]
    return Path(path).absolute().parent if path.endswith(".py") else Path.cwd()


def _is_own(filename: str, directory: Path) -> bool:
    """Whether a file is of a program in that directory, and not of a package that is installed, maybe below it."""
    path, kohort = Path(filename), Path(extras.__file__).parent
    return path.is_relative_to(directory) and not path.is_relative_to(kohort) and "site-packages" not in path.parts


def compiled_findings(
    application: StreamsApp, place: str
) -> tuple[list[Finding], Program | tuple[CompiledQueue, ...] | None]:
    """Compiles an application, which starts Spark; what came of it, and the program if it can be one."""
    from kohort.spark.app import compiled
    from kohort.spark.errors import ProgramError
    from kohort.spark.program.notes import Unbounded

    name = application.settings.application_id
    if any(each.level is Level.WRONG for each in java_findings(os.environ, needed=True)):
        why = "Spark compiles it, and doesn't start without Java."
        return [_Program(Level.WRONG, f"{name} can't be compiled here", why, "see what is wrong with Java")], None
    try:
        with redirect_stdout(sys.stderr):  # whatever the program prints, too
            program = compiled(application)
    except ProgramError as error:
        return [_Program(Level.WRONG, str(error), "The program can't run as it is written.")], None
    except Exception as error:  # of Spark, or of functions of the program
        what = f"{name} can't be compiled: {_said(place, error)}"
        return [_Program(Level.WRONG, what, "It would end in the same way when it is started.")], None
    if isinstance(program, tuple):
        return [_Program(Level.FINE, f"{name}: {several(len(program), 'queue')}")], program
    found = [_Program(Level.FINE, f"{name} compiles; its sub-topologies: {len(program.subtopologies)}")]
    for each in program.notes:
        if isinstance(each, Unbounded):
            if not each.meant:
                found.append(
                    _Program(
                        Level.WARNING,
                        f"{each.at}: store {each.store} keeps {each.keeps}",
                        "Nothing bounds it: it grows until the disk is full.",
                        each.advice,
                    )
                )
        else:
            found.append(_Program(Level.NOTE, f"{each.at}: {each.why}", f"They go through topic {each.topic}."))
    return found, program


async def fitting_findings(
    program: Program | tuple[CompiledQueue, ...], settings: AppSettings, timeout: float
) -> list[Finding]:
    """Compares a program with its cluster: topics, their numbers of partitions, the group, what it goes on with."""
    from kohort.spark.errors import ProgramError
    from kohort.spark.program.cluster_checks import check_against
    from kohort.spark.program.source_topics import matched_topics, with_topics

    config = replace(settings.client, bootstrap_timeout_ms=max(1, int(timeout * 1000)))
    try:
        async with Admin(config, default_api_timeout_ms=max(1, int(timeout * 1000))) as admin:
            topics = await admin.topics.list(internal=True)
            if isinstance(program, tuple):
                return [*_queue_findings(program, topics, settings.client)]
            own = [name for name, each in topics.items() if not each.internal]
            matched = with_topics(program, matched_topics(program, own))
            await check_against(admin, matched, settings.group_protocol, settings.client)
            features = await admin.cluster.features()
            found = []
            if settings.group_protocol == "streams" and not features.finalized.get("streams.version"):
                found.append(_Program(
                    Level.WRONG, "it runs in a streams group, and the cluster has none (streams.version)",
                    "No instance can join its group.",
                    'kohort features upgrade streams.version=1; or in the program group_protocol="classic"',
                ))  # fmt: skip
            return [*found, *_fitting(matched, topics)]
    except ProgramError as error:
        return [_Program(Level.WRONG, str(error), "No instance starts.")]
    except (ClientError, KafkaError) as error:
        return [_Program(Level.WRONG, f"its cluster can't be asked: {explain(error)}")]


def _fitting(program: Program, topics: dict[str, TopicInfo]) -> Iterator[Finding]:
    read = [f"{each.topic} ({len(topics[each.topic].partitions)})" for each in program.sources]
    yield _Program(Level.FINE, f"its topics are there, with numbers of partitions that fit: {', '.join(read)}")
    for each in program.sources:
        if len(topics[each.topic].partitions) == 1 and len(program.sources) == 1:
            yield _Program(
                Level.NOTE,
                f"{each.topic} has a single partition",
                "So there is a single task: more instances do nothing.",
            )


def _queue_findings(
    queues: tuple[CompiledQueue, ...], topics: dict[str, TopicInfo], client: ClientConfig
) -> Iterator[Finding]:
    from kohort.spark.program.topics_there import create_command

    wanted = [*(each.topic for each in queues), *(output.topic for each in queues for output in each.outputs)]
    missing = [name for name in dict.fromkeys(wanted) if name not in topics]
    for name in missing:
        create = create_command([name], client)
        yield _Program(Level.WRONG, f"there is no topic {name}", "No worker starts.", create)
    if not missing:
        yield _Program(Level.FINE, f"its topics are there: {', '.join(dict.fromkeys(wanted))}")


def registry_findings(program: object) -> Iterator[Finding]:
    """Whether the schema registries that a program names answer, and have the subjects that it only looks up."""
    from kohort.schema_registry.client import RegistryClient
    from kohort.schema_registry.registry import RegistryError, UnknownSchemaError
    from kohort.spark.formats.registry_encoder import RegistryWriting

    asked: dict[SchemaRegistry, RegistryClient] = {}
    for each in dict.fromkeys(_registered(program)):
        client = asked.setdefault(each.registry, RegistryClient(replace(each.registry, retry_s=0.0)))
        try:
            if isinstance(each, RegistryWriting) and not each.register:
                client.id_of(each.subject, each.kind, each.text, register=False)
                yield _Program(Level.FINE, f"the schema of subject {each.subject} is registered")
            else:
                client.by_id(1)
                yield _Program(Level.FINE, f"schema registry {each.registry.url} answers")
        except UnknownSchemaError as error:
            if isinstance(each, RegistryWriting) and not each.register:
                yield _Program(
                    Level.WRONG, str(error), "The program doesn't register it, and can't write without.", "register it"
                )
            else:
                yield _Program(Level.FINE, f"schema registry {each.registry.url} answers")
        except RegistryError as error:
            yield _Program(
                Level.WRONG,
                str(error),
                "Records that have ids of schemas can't be read or written without it.",
                "is it running, and is its address right?",
            )


def _registered(thing: object) -> Iterator[Any]:
    """What names a registry, anywhere in a compiled program."""
    from dataclasses import fields, is_dataclass

    from kohort.spark.formats.registry_encoder import RegistryWriting
    from kohort.spark.formats.registry_formats import RegistryReading

    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, RegistryReading | RegistryWriting):
            yield one
        elif is_dataclass(one) and type(one).__module__.startswith("kohort.spark"):
            waiting += [getattr(one, each.name) for each in fields(one)]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        elif isinstance(one, dict):
            waiting += one.values()


def state_findings(directory: Path, application_id: str) -> Iterator[Finding]:
    """The directory of stores: whether it can be written, has room, and outlives a restart of the machine."""
    own = directory / application_id
    if not may_write(own):
        yield _Program(
            Level.WRONG, f"state_dir {directory} can't be written", f"Stores are kept there. There is {existing(own)}.",
            "let the user who runs the program own it, or name another with state_dir",
        )  # fmt: skip
        return
    yield from disk_findings(directory, "the application's stores", "program")
    if directory.is_relative_to(tempfile.gettempdir()):
        yield _Program(
            Level.NOTE, f"state_dir is {directory}",
            "After a restart of the machine stores are restored from their changelogs, which takes time.",
            "name a directory that stays, with state_dir, where that is too long",
        )  # fmt: skip


def in_order(parts: Iterable[Iterable[Finding]]) -> list[Finding]:
    return [each for part in parts for each in part]
