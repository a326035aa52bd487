"""JVMs that run one scenario or tool after the other, so that their start is paid once."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import build

FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
"""What makes a JVM start soon and stay small."""


@dataclass(frozen=True)
class Finished:
    """What a main class printed, and the exit code it asked for."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines printed, without empty ones."""
        return [line for line in self.out.splitlines() if line.strip()]


class Jvm:
    """A program that answers lines of JSON with lines of JSON. One that doesn't answer in time is killed."""

    def __init__(self, project: str, *program: str, flags: Sequence[str] = ()) -> None:
        self._project = project
        self._program = program
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: Lines | None = None

    def ask(self, question: object, seconds: float) -> Any:
        """The answer to a question. TimeoutError after so many seconds; the next question starts a new process."""
        if self._process is None:
            self._process = start(self._project, *self._program, flags=self._flags)
            self._lines = Lines(self._process)
        assert self._process.stdin is not None and self._lines is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        try:
            return json.loads(self._lines.next(time.monotonic() + seconds))
        except TimeoutError:
            self.close()
            raise TimeoutError(f"no answer in {seconds} s to {question}") from None
        except RuntimeError:
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            stop(self._process)
            self._process = None


class Scenarios(Jvm):
    """Our scenarios of Kafka's Java clients."""

    def __init__(self) -> None:
        super().__init__("clients", "kohort.interop.Interop", "serve")

    def run(self, name: str, bootstrap: str, seconds: float = 60, **options: object) -> Any:
        """What a scenario found; AssertionError, with its stack trace, if it was surprised."""
        answer = self.ask(scenario_arguments(name, bootstrap, options), seconds)
        assert "surprise" not in answer, f"scenario {name}:\n{answer['surprise']}"
        return answer["found"]


class Tools(Jvm):
    """Apache Kafka's command line tools, by main class.

    Args:
        flags: the JVM's, beside the usual ones.
    """

    def __init__(self, flags: Sequence[str] = ()) -> None:
        super().__init__("kafka", "kohort.interop.Tools", flags=flags)

    def run(self, main: str, *args: str, stdin: str = "", seconds: float = 60) -> Finished:
        """What a tool printed, and its exit code."""
        answer = self.ask({"main": main, "args": args, "stdin": stdin}, seconds)
        return Finished(answer["code"], answer["out"], answer["err"])

    def succeed(self, bootstrap: str, main: str, *args: str, stdin: str = "") -> Finished:
        """What a tool printed about the server there; AssertionError if its exit code isn't 0."""
        done = self.run(main, "--bootstrap-server", bootstrap, *args, stdin=stdin)
        assert done.code == 0, f"{main} {' '.join(args)}: exit code {done.code}\n{done.out}{done.err}"
        return done


@contextlib.contextmanager
def scenario_process(name: str, bootstrap: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """A scenario in a process of its own, which may be killed."""
    process = start("clients", "kohort.interop.Interop", *scenario_arguments(name, bootstrap, options))
    try:
        yield process
    finally:
        stop(process)


def scenario_arguments(name: str, bootstrap: str, options: dict[str, object]) -> list[str]:
    """The command line of a scenario; `enable__idempotence=False` is the client's own key enable.idempotence."""
    arguments = [name, "--bootstrap.servers", bootstrap]
    for key, value in options.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        arguments += [f"--{key.replace('__', '.')}", text]
    return arguments


def start(project: str, *program: str, flags: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """A JVM with pipes, running a main class with its arguments."""
    return subprocess.Popen(
        command(project, *program, flags=flags), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def command(project: str, *program: str, flags: Sequence[str] = ()) -> list[str]:
    """The command line that runs a main class with its arguments."""
    return ["java", *FLAGS, *flags, "-cp", build.classpath(project), *program]


class Lines:
    """The lines a process prints, read as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._descriptor = process.stdout.fileno()
        self._unread = b""

    def next(self, deadline: float) -> str:
        """The next line. TimeoutError at the deadline (monotonic, s), RuntimeError if the process ends before."""
        while b"\n" not in self._unread:
            with selectors.DefaultSelector() as selector:
                selector.register(self._descriptor, selectors.EVENT_READ)
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
            more = os.read(self._descriptor, 1 << 16)
            if not more:
                assert self._process.stderr is not None
                code, errors = self._process.wait(), self._process.stderr.read().decode()
                raise RuntimeError(f"the JVM ended with code {code}:\n{errors}")
            self._unread += more
        line, self._unread = self._unread.split(b"\n", 1)
        return line.decode()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
