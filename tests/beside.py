"""Runs commands of a shell beside each other, and shows what each said, whole, when it has ended.

    python -m tests.beside --at-once 2 "make test-long" "make chaos" "make cluster"

As soon as one ends, the next begins. Each runs whether or not those before it failed; 1 if any did. With --live the
first command's words come as it says them, and those of the others when it has ended.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

PATIENCE: Final = 60
"""Seconds to clean up in, for commands that are interrupted."""


def main() -> int:
    """Run what is asked for; 1 if something failed, 130 after Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m tests.beside", description=__doc__.partition("\n")[0])
    parser.add_argument("commands", nargs="+", metavar="COMMAND")
    parser.add_argument("--at-once", type=int, default=2, metavar="NUMBER", help="how many run beside each other")
    parser.add_argument("--live", action="store_true", help="show at once what the first command says")
    options = parser.parse_args()
    try:
        failed = asyncio.run(run_all(options.commands, options.at_once, live=options.live))
    except asyncio.CancelledError:
        return 130
    if failed:
        sys.stderr.write("failed:\n" + "".join(f"  {each}\n" for each in failed))
    return 1 if failed else 0


async def run_all(commands: Sequence[str], at_once: int, *, live: bool = False) -> list[str]:
    """Run the commands, so many beside each other; those that failed, with their exit codes.

    Args:
        live: whether what the first says is shown as it comes.

    Raises:
        CancelledError: after Ctrl+C, or SIGTERM.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        # An exception from Python's own handler could come after a command's start, and before we know of it.
        loop.add_signal_handler(number, task.cancel)
    places, quiet = asyncio.Semaphore(at_once), asyncio.Event()

    if not live:
        quiet.set()

    async def in_its_turn(command: str, first: bool) -> int:
        if not live or not first:
            return await run_and_show(command, places, quiet)
        try:
            async with places:
                return await run_live(command)
        finally:
            quiet.set()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(in_its_turn(each, number == 0)) for number, each in enumerate(commands)]
    return [
        f"{command} (exit code {task.result()})" for command, task in zip(commands, tasks, strict=True) if task.result()
    ]


async def run_live(command: str) -> int:
    """Run a command that says itself what it has to say; its exit code."""
    began = time.monotonic()
    code = await run(command)
    sys.stdout.write(f"{time.monotonic() - began:.0f} s: {command}\n")
    sys.stdout.flush()
    return code


async def run_and_show(command: str, places: asyncio.Semaphore, quiet: asyncio.Event) -> int:
    """Run a command in one of the places; once it's `quiet`, show what it said and how long it took; its exit code."""
    await places.acquire()
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        sys.stdout.write(f"began: {command}\n")
        sys.stdout.flush()
        took = None
        try:
            try:
                code = await run(command, said)
                took = time.monotonic() - began
            finally:
                places.release()
            await quiet.wait()
        finally:
            # Without waiting in between: the lines of two commands aren't mixed.
            sys.stdout.buffer.write(f"{took or time.monotonic() - began:.0f} s: {command}\n".encode())
            said.seek(0)
            shutil.copyfileobj(said, sys.stdout.buffer)
            sys.stdout.flush()
    return code


async def run(command: str, said: IO[bytes] | None = None) -> int:
    """Run a command with what it says in a file, or shown; its exit code. It ends with whoever waits for it."""
    process = subprocess.Popen(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
    )
    try:
        return await asyncio.to_thread(process.wait)
    finally:
        await end(process)


async def end(process: subprocess.Popen[bytes]) -> None:
    """End a command that still runs, with all that it started."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        await asyncio.to_thread(process.wait, PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
