"""What tests build of other languages' programs, once: kept in `.cache`, shared by all test processes."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache"


def built_once(folder: Path, name: str, inputs: Iterable[bytes], build: Callable[[Path], None]) -> Path:
    """A folder `name-…` in this folder, which the first process that asks builds; others wait for it.

    Args:
        inputs: what it is made of; what was made of others is removed.
        build: makes it, in a folder that doesn't exist yet.
    """
    digest = hashlib.sha256(b"".join(inputs)).hexdigest()[:12]
    target = folder / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            for old in folder.glob(f"{name}-*"):
                shutil.rmtree(old)
            building = folder / f"{name}-building"
            build(building)
            building.rename(target)
    return target
