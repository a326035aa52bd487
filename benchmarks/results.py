"""What a benchmark found, as a file that charts can be made of: the figures, with machine, day and command.

    {"command": "python -m benchmarks.broker", "date": "2026-11-29", "machine": {…},
     "figures": {"ready": {"Kohort": 0.3}}}

A chart's figures may come out of such a file. One that a chart names is kept in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).with_name("results")
"""Where files are that charts name, if there are any."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--json FILE`."""
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the figures to this file, too, with machine and command",
    )


def save(path: Path | None, found: Mapping[str, Any]) -> None:
    """Writes what was found.

    Args:
        path: the file, which is replaced; None if nobody asked for one.
        found: as JSON has it; objects by their attributes. Figures by measure and contender are `figures`.
    """
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"command": command(), "date": datetime.now(UTC).date().isoformat(), "machine": machine()}
    path.write_text(json.dumps({**about, **found}, default=vars, indent=2, ensure_ascii=False) + "\n")


def command() -> str:
    """How this benchmark was called, but for the file it writes."""
    module = getattr(sys.modules["__main__"].__spec__, "name", None) or Path(sys.argv[0]).stem
    words = re.sub(r" --json[ =]\S+", "", " ".join(["", *sys.argv[1:]]))
    return f"python -m {module.removesuffix('.__main__')}{words}"


def machine() -> dict[str, Any]:
    """What it ran on: cores that it may use, memory in MiB, and versions."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.*)$", info.read_text(), re.MULTILINE) if info.exists() else None
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "system": platform.system(),
        "python": platform.python_version(),
    }
