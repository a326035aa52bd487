"""Loads a streams application by where it is: `MODULE:NAME`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kohort.cli.terminal import fail

if TYPE_CHECKING:
    from kohort.spark.app import StreamsApp


def load_application(place: str) -> StreamsApp:
    """The application of a module, or what a function there makes; modules of the working directory are found, too.

    What isn't there ends the command. What the module itself raises is raised.
    """
    from kohort.spark.app import StreamsApp

    name, _, variable = place.partition(":")
    if not name or not variable:
        fail(f"{place!r}: say the module and what the application is called there, as shop.orders:app")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        fail(f"there is no module {name!r} in this directory, or installed")
    application = getattr(module, variable, None)
    if callable(application) and not isinstance(application, StreamsApp):
        application = application()
    if not isinstance(application, StreamsApp):
        there = [each for each, value in vars(module).items() if isinstance(value, StreamsApp)]
        known = f"; it has {', '.join(there)}" if there else ", or any"
        fail(f"module {name!r} has no StreamsApp {variable!r}{known}")
    return application
