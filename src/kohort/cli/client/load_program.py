"""Finding the application of a program, without running it: a file, or `MODULE:APP`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from kohort.cli.client.load_application import load_application
from kohort.cli.terminal import fail

if TYPE_CHECKING:
    from kohort.spark.app import StreamsApp


class _WouldRunError(BaseException):
    """A program calls `run` or `start`: its application is as it is to be. No Exception, which a program may catch."""

    def __init__(self, application: StreamsApp) -> None:
        super().__init__()
        self.application = application


def load_program(place: str) -> StreamsApp:
    """The application of a program. It isn't run: where the program would, loading it ends.

    The program sees arguments as if it were called without any, and what it prints goes to standard error.

    Args:
        place: a file of Python; with `:NAME`, what the application is called there, or a function that makes it. Or
            MODULE:NAME.

    What isn't there ends the command. What the program itself raises is raised.
    """
    path, _, name = place.partition(":")
    with _run_intercepted(), _as_if_called(path), redirect_stdout(sys.stderr):
        try:
            if not path.endswith(".py"):
                return load_application(place)
            return _from_file(Path(path), name)
        except _WouldRunError as reached:
            return reached.application


def _from_file(path: Path, name: str) -> StreamsApp:
    from kohort.spark.app import StreamsApp

    if not path.is_file():
        fail(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if (beside := str(path.absolute().parent)) not in sys.path:
        sys.path.insert(0, beside)  # as Python itself does
    sys.modules[path.stem] = module  # classes and functions that are sent to workers name it
    spec.loader.exec_module(module)
    there = {each: value for each, value in vars(module).items() if isinstance(value, StreamsApp)}
    if name:
        found: Any = getattr(module, name, None)
        if callable(found) and not isinstance(found, StreamsApp):
            found = found()
        return found if isinstance(found, StreamsApp) else _none(path, name, there)
    if len(there) != 1:
        _none(path, name, there)
    return next(iter(there.values()))


def _none(path: Path, name: str, there: dict[str, StreamsApp]) -> NoReturn:
    if there:
        named = f"no StreamsApp {name!r}; it has" if name else "several:"
        fail(f"{path} has {named} {', '.join(there)}. Say which: {path}:{next(iter(there))}")
    what = f"StreamsApp {name!r}" if name else "StreamsApp of its own"
    fail(f"{path} has no {what}, and runs none when it is loaded; or name a function that makes one: {path}:NAME")


@contextmanager
def _run_intercepted() -> Iterator[None]:
    from kohort.spark.app import StreamsApp

    def run(self: StreamsApp, *_: object, **__: object) -> NoReturn:
        raise _WouldRunError(self)

    before = StreamsApp.run, StreamsApp.start
    StreamsApp.run = StreamsApp.start = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        StreamsApp.run, StreamsApp.start = before  # type: ignore[method-assign]


@contextmanager
def _as_if_called(place: str) -> Iterator[None]:
    """A program that reads its arguments isn't to take those of `kohort` for its own."""
    before = sys.argv
    sys.argv = [place]
    try:
        yield
    finally:
        sys.argv = before
