"""A process that runs an instance of the counting application, and kills or stops itself at a step."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from kohort.spark.monitoring.events import EpochDone, Listener, TasksNow
from kohort.spark.runtime.instance import Instance
from tests.spark.runtime.batch_sink import BatchSink
from tests.spark.runtime.counting import Counting, plan, settings


class Lines(Listener):
    """Writes what happens to a file, a line each."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def epoch(self, done: EpochDone) -> None:
        """An epoch."""
        self.note("epoch", subtopology=done.subtopology, records=done.records, ms=round(done.took_ms))

    def tasks(self, now: TasksNow) -> None:
        """Tasks."""
        self.note("tasks", active=now.active, standby=now.standby, restoring=now.restoring, closing=now.closing)

    def waiting(self, reason: str | None) -> None:
        """A reason."""
        self.note("waiting", reason=reason)

    def failed(self, text: str) -> None:
        """A failure."""
        self.note("failed", text=text)

    def note(self, what: str, **fields: Any) -> None:
        """A line."""
        self._file.write(json.dumps({"at": time.time(), "what": what, **fields}) + "\n")


def child(
    app: str, servers: str, state: str, log: str, step: str, nth: int, action: int, options: dict[str, Any]
) -> None:
    """Run until SIGTERM; at the `nth` time that a step is reached, the process sends itself the signal `action`."""
    import logging

    logging.basicConfig(filename=log + ".log", level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    lines = Lines(Path(log))
    left = nth
    sink_path = options.pop("sink", None)

    async def probe(reached: str) -> None:
        nonlocal left
        if step and reached == step:
            left -= 1
            if left == 0:
                await asyncio.sleep(0.05)  # what was sent is in the log by then
                lines.note("signal", step=step)
                os.kill(os.getpid(), action)

    async def main() -> None:
        jobs: list[Counting] = []

        def make(part: str) -> Counting:
            jobs.append(Counting(part, servers, lambda *asked: instance.lookup(*asked), sink))
            return jobs[-1]

        sink = None if sink_path is None else BatchSink(Path(sink_path))
        instance = Instance(
            plan(app, batches=sink is not None),
            settings(app, servers, Path(state), **options),
            make,
            listener=lines,
            probe=probe,
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, instance.stop)
        try:
            await instance.run()
        finally:
            for each in jobs:
                each.close()
        lines.note("ended")

    asyncio.run(main())
