"""Keeps Kohort's modules as they are in pytest, which rewrites assertions of all that is installed with a plugin."""

from __future__ import annotations

import sys

_PACKAGE = __name__.partition(".")[0]


def leave_package_alone() -> None:
    """Has pytest import the package's modules as Python does.

    Rewriting takes seconds wherever no bytecode is written, and parses modules that a broker's thread imports at the
    same time as others, which CPython before 3.12 may fail at. pytest has no public way to ask for less.
    """
    for finder in sys.meta_path:
        marked, known = getattr(finder, "_must_rewrite", None), getattr(finder, "_marked_for_rewrite_cache", None)
        if isinstance(marked, set) and isinstance(known, dict):
            marked.discard(_PACKAGE)
            known.clear()
