"""All code on the pages is run by a test, or stands in a list that says why not."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from kohort.client import ClientConfig
from kohort.testing import Broker, Filling
from tests.pages import OTHERS, PAGES, ROOT, Block, block, blocks, parse, run_by_others
from tests.tutorials import matches

SHELL: Final = re.compile(
    r"^(\$ )?(kohort|echo|pip|make|python3?|helm|curl|openssl|spark-submit|kafka-[a-z]+\.sh) ", re.MULTILINE
)
"""What indented blocks have that are for a terminal."""

FOREIGN: Final = {
    ("docs/coming-from-structured-streaming.md", "text"): "parts of queries of Structured Streaming, with … in them",
}
SHOWN: Final = {
    # what is drawn, or printed by what a test can't look at as it is shown
    ("docs/broker.md", "kohort_request_seconds{api=…}"): "a list of metrics: tests/deploy/test_dashboards.py reads it",
    ("docs/broker.md", "kohort.broker       server"): "a drawing",
    ("docs/changing-a-program.md", "        name "): "what is printed of a program that isn't there",
    ("docs/connections.md", "bootstrap servers ──►"): "a drawing",
    ("docs/consumer.md", "                          ┌"): "a drawing",
    ("docs/how-it-works.md", "kohort.spark"): "a drawing",
    ("docs/install.md", "error: kohort consume"): "an error: tests/test_extras.py has the sentence",
    ("docs/queries.md", "/stores/delays?from="): "paths beside what they mean",
    ("docs/queries.md", "flight-delays running"): "a live line: tests/spark/monitoring/ has it",
    ("docs/queues.md", "2026-01-01T12:00:00Z thumbnails"): "a line of a log",
    ("docs/security.md", "logger=kohort.authorizer"): "a line of a log: tests/interop/test_security_page.py",
    ("docs/streams-member.md", "StreamsMember  "): "a drawing",
    ("docs/tutorials/debugging-a-rebalance.md", "time="): "a line of a log",
    ("docs/tutorials/debugging-a-rebalance.md", "… event="): "lines of a log",
    ("docs/streams.md", 'event="epoch bumped"'): "lines of a log",
    ("docs/streams.md", "heartbeat ─→"): "a drawing",
    # what needs more than a test has
    ("README.md", "make demo"): "all of it: tests/fresh/ runs both on empty machines",
    ("docs/clusters.md", "spark-submit --master"): "needs a cluster of Spark: make cluster",
    ("docs/clusters.md", "spark.authenticate=true"): "settings of Spark beside what they mean",
    ("docs/clusters.md", "kafka-features.sh"): "needs Apache Kafka",
    ("docs/nexmark.md", "make bench-nexmark"): "a benchmark: make smoke runs it in small",
    ("docs/performance.md", "make bench-broker"): "a benchmark: make smoke runs it in small",
    ("docs/operations.md", "python3 -m venv /opt/kohort"): "changes the machine: tests/deploy/test_units.py has them",
    ("docs/operations.md", "helm install flights"): "needs Kubernetes: tests/deploy/ renders the chart",
    ("docs/pipeline.md", "python flight_delays.py"): "needs minutes: make demo runs the program twice, too",
    ("docs/queries.md", "app = StreamsApp("): "a setting among others, and a request: tests/pipeline/test_queries.py",
    ("docs/queries.md", "openssl rand -hex 32"): "settings among others, and a request: tests/pipeline/test_queries.py",
    ("docs/queries.md", "$ curl localhost:8080"): "needs an application: tests/pipeline/test_queries.py",
    ("docs/streams.md", "kohort serve --ephemeral\n\nprops"): "half of it is Java",
    ("docs/security.md", "pip install '.[security]'"): "installs; tests/test_wheel.py does",
}  # fmt: skip
"""Blocks that no test runs, by how they begin, and why."""
WITHOUT: Final = {
    "pip install": "installs: tests/test_wheel.py does",
    "kohort demo": "minutes: make demo",
    "kohort console": "tests/console/ opens it",
    "kohort place --from-group": "needs members: tests/cli/test_place_live.py",
    "kohort apps plan": "needs a program: tests/pipeline/test_upgrades.py",
    "kohort apps reset": "needs an application: tests/cli/test_apps.py",
    "python docs/examples/streams_member.py": "goes on until it is stopped: tests/client/streams/ has members",
}
"""Commands that no test runs as they stand, and why."""


def _is_shown(block: Block) -> str | None:
    if (block.page, block.language) in FOREIGN:
        return FOREIGN[block.page, block.language]
    return next(
        (why for (page, first), why in SHOWN.items() if page == block.page and block.text.startswith(first)), None
    )


def is_shell(block: Block) -> bool:
    """Whether it is for a terminal."""
    return block.language == "sh" or (not block.language and SHELL.match(block.text) is not None)


def is_data(block: Block) -> bool:
    """Whether it is a file, or JSON."""
    if block.language in ("toml", "properties", "json"):
        return True
    return not block.language and (
        block.text.startswith("{") or "standbys: 1\n" in block.text or block.text.startswith("lags:\n")
    )


def shells() -> dict[str, list[Block]]:
    """The blocks that are run here, by page."""
    elsewhere = {each for each, _ in run_by_others()}
    found: dict[str, list[Block]] = {}
    for page in PAGES:
        for each in blocks(page):
            if is_shell(each) and each not in elsewhere and _is_shown(each) is None:
                found.setdefault(page, []).append(each)
    return found


def test_every_block_is_run_or_it_is_said_why_not() -> None:
    """Python is run by test_docs.py, whatever the page, unless another test says that it does."""
    elsewhere = {each for each, _ in run_by_others()}
    every = [each for page in PAGES for each in blocks(page)]
    assert len(every) > 250
    nobody = [
        f"{each.place}: {each.first}"
        for each in every
        if each not in elsewhere
        and each.language != "python"
        and _is_shown(each) is None
        and not is_shell(each)
        and not is_data(each)
    ]
    assert nobody == []


def test_what_is_said_of_blocks_holds() -> None:
    """No reason outlives its block, and the tests that are named are there and read that page."""
    every = [each for page in PAGES for each in blocks(page)]
    for page, first in SHOWN:
        assert sum(each.page == page and each.text.startswith(first) for each in every) == 1, f"{page}: {first}"
    for page, language in (*FOREIGN, *OTHERS):
        if not page.startswith("docs/tutorials/"):
            assert any((each.page, each.language) == (page, language) for each in every), f"{page}: {language}"
    for (page, _), test in OTHERS.items():
        source = (ROOT / test).read_text()
        names = (Path(page).name, Path(page).stem.removeprefix("coming-from-"), "GUIDE", "README")
        assert any(name in source for name in names), f"{test} doesn't read {page}"
    for reason in (*SHOWN.values(), *FOREIGN.values(), *WITHOUT.values()):
        for path in re.findall(r"\b(?:tests|benchmarks)/[\w/.]*\w[/\w]?", reason):
            assert (ROOT / path).exists(), reason
    commands = [line for each in every if is_shell(each) for line in each.text.splitlines()]
    for beginning in WITHOUT:
        assert any(line.startswith(beginning) for line in commands), beginning


def test_blocks_are_found_wherever_they_stand() -> None:
    text = (
        "Text\n    no code\n\n    indented\n\n    more\n\n```sh\nfenced\n```\n\n"
        "- a list\n\n    its text\n\n        its code\n\n1. another\n\n    ```toml\n    a = 1\n    ```\n\n"
        "!!! note\n\n    text\n\n        code in it\n\nEnd\n\n    last\n"
    )
    assert [(each.line, each.language, each.text) for each in parse("page.md", text)] == [
        (4, "", "indented\n\nmore\n"), (9, "sh", "fenced\n"), (16, "", "its code\n"), (21, "toml", "a = 1\n"),
        (28, "", "code in it\n"), (32, "", "last\n"),
    ]  # fmt: skip


class Terminal:
    """A shell in a directory, beside a broker, in which servers are started on ports of their own."""

    def __init__(self, directory: Path, servers: str) -> None:
        self._directory = directory
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("KOHORT_")} | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200", "TERM": "dumb",
            "KOHORT_BOOTSTRAP_SERVERS": servers, "XDG_CONFIG_HOME": str(directory),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip

    def run(self, command: str) -> str:
        """What a command prints, which has to end well.

        Raises:
            AssertionError: it didn't.
        """
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=self._directory, env=self._environment,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        expected = 1 if command.endswith("docs/examples/captured.jsonl") else 0  # of which one line is wrong
        assert done.returncode == expected, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def serve(self, command: str) -> None:
        """Starts a server, and stops it once it is there."""
        words = [word for word in shlex.split(command, comments=True) if word not in ("&", ":9092")]
        words = ["0" if word == "9090" else word for word in words if word != "--listen"]
        process = subprocess.Popen(
            [*words, "--listen", "127.0.0.1:0"], cwd=self._directory, env=self._environment,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], 60)[0], f"{command} says nothing"
            assert (said := process.stdout.readline()).startswith("kohort ready on "), f"{command} said {said}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Its commands, each with what the page says that it prints."""
    text = block.text.replace("\\\n", " ")
    if not text.startswith("$ "):
        yield from ((line, "") for line in text.splitlines() if line.strip() and not line.startswith("#"))
        return
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


@pytest.mark.parametrize("page", shells())
def test_commands_run(page: str, tmp_path: Path) -> None:
    """As they stand, beside a broker that has what the page speaks of."""
    with Broker(AUTHORIZING if "kohort acls" in "".join(each.text for each in shells()[page]) else {}) as broker:
        filling = Filling(broker, "page")
        prepare(filling, tmp_path, "".join(each.text for each in shells()[page]))
        terminal = Terminal(tmp_path, broker.bootstrap_servers)
        for shell in shells()[page]:
            for command, shown in commands(shell):
                if any(command.startswith(each) for each in WITHOUT):
                    continue
                if command.startswith("kohort serve"):
                    terminal.serve(command)
                    continue
                printed = terminal.run(as_run(command))
                assert not shown or matches(shown, printed), f"{shell.place}: {command} printed\n{printed}"


AUTHORIZING = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


DESCRIBED = "00000000" + "01" + "00"
"""A response of ShareGroupDescribe that describes nothing."""


def as_run(command: str) -> str:
    """A command that ends, and takes a moment."""
    command = re.sub(r"(?<=--records )1000000", "1000", command)
    command = re.sub(r"perf consume test$", "perf consume test --records 1000", command)
    command = re.sub(r"perf e2e test --rate 200", "perf e2e test --rate 200 --records 100", command)
    command = re.sub(r"consume delays-by-hour --from-beginning$", r"\g<0> --exit", command)
    command = re.sub(r"consume orders --share-group billing$", r"\g<0> --exit", command)
    command = re.sub(r"/var/lib/kohort\b(?!-)", "data", command)
    return command.replace("FILE", "00000000000000000000.log" if "wire batch" in command else "described.hex")


def prepare(filling: Filling, directory: Path, page_text: str) -> None:
    """Topics, groups and files that the pages speak of."""
    words = filling.topic([str(each) for each in range(9)], name="words", partitions=2)
    filling.group(words, name="word-count", behind=2)
    filling.topic(["a"], name="orders")
    if "flights:3" in page_text:
        filling.group(filling.topic(name="flights", partitions=4), name="flight-delays")
    (directory / "docs").symlink_to(ROOT / "docs")
    (directory / "flights.txt").write_text("UA 12\nAA 3\n")
    (directory / "server.properties").write_text("log.dirs=of-a-file\n")
    (directory / "group.yaml").write_text(block("docs/placement.md", "# Two instances").text)
    (directory / "heartbeat.json").write_text("{}")
    (directory / "data").mkdir()
    (directory / "data" / "meta.properties").write_text("version=1\ncluster.id=page\nnode.id=1\n")
    examples = ROOT / "docs" / "examples"
    body = bytes.fromhex("076f726465727300000007026d0000")
    header = struct.pack(">hhihb", 12, 4, 1, -1, 0)  # Heartbeat, version 4, the first request, of nobody
    (directory / "request.bin").write_bytes(struct.pack(">i", len(header + body)) + header + body)
    (directory / "described.hex").write_text(DESCRIBED)
    captured = (examples / "captured.jsonl").read_text().splitlines()
    (directory / "captured.jsonl").write_text(captured[0] + "\n")
    (directory / "00000000000000000000.log").write_text((examples / "batch-zstd.hex").read_text())


def test_the_files_on_the_pages_are_what_they_should_be(tmp_path: Path) -> None:
    """Kohort reads those that are its own; JSON that is whole is JSON."""
    seen = 0
    for data in (each for page in PAGES for each in blocks(page) if is_data(each)):
        seen += 1
        if data.language == "properties" and data.page != "docs/security.md":
            (tmp_path / "client.properties").write_text(data.text.replace("/etc/kafka/ca.pem", __file__))
            ClientConfig.from_file(tmp_path / "client.properties")
        elif data.language == "toml":
            assert set(tomllib.loads(data.text)) == {"default", "dev", "prod"}
        elif data.text.startswith("{"):
            whole = data.text.replace("…}", '"":0}').replace(",…", "").replace(" → ", "\n").replace("{…}", "{}")
            decoder, at = json.JSONDecoder(), 0
            while whole[at:].strip():
                _, at = decoder.raw_decode(whole, at + len(whole[at:]) - len(whole[at:].lstrip()))
        elif not data.language:
            assert isinstance(yaml.safe_load(data.text), dict)
    assert seen > 15
