"""One library doing one piece of work, in a process of its own; what it took is printed as JSON.

python -m benchmarks.client.worker confluent consume 127.0.0.1:9092 '{"topic": "t", "number": 1000, …}'
"""

from __future__ import annotations

import json
import os
import random
import sys
from importlib import import_module
from typing import Any

from benchmarks.client.clients.face import Clock
from benchmarks.client.figures import WORKS


def values(number: int, size: int) -> list[bytes]:
    """Random bytes: each value another object, as in a program that makes them."""
    block = random.Random(size).randbytes(size + number)
    return [block[start : start + size] for start in range(number)]


def work(library: str, what: str, bootstrap: str, told: dict[str, Any]) -> Clock:
    """Do it; the loads once before in small, so that all is loaded and compiled when the clock runs."""
    client = import_module(f"benchmarks.client.clients.{library}")
    do = getattr(client, what)
    clock = Clock()
    if what in WORKS:
        client.load()
    if what.startswith("produce"):
        do(bootstrap, told["warm_up"], values(told["warm_up_number"], told["size"]), clock)
        do(bootstrap, told["topic"], values(told["number"], told["size"]), clock)
    elif what.startswith("consume"):
        do(bootstrap, told["warm_up"], told["warm_up_number"], clock)
        do(bootstrap, told["topic"], told["number"], clock)
    elif what == "first_record":
        do(bootstrap, told["topic"], told["group"], clock)
    else:
        do(bootstrap, told["topic"], told["group"], told["members"], told["seconds"], clock)
    return clock


if __name__ == "__main__":
    _, library, what, bootstrap, told = sys.argv
    clock = work(library, what, bootstrap, json.loads(told))
    print(json.dumps({"seconds": clock.seconds, "cpu": clock.cpu}), flush=True)
    os._exit(0)  # whatever still runs
