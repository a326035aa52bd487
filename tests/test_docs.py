"""The Python of the README and the guides runs as it is written."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from benchmarks.nexmark import queries
from kohort.testing.broker import Broker
from tests.certificates import Certificates
from tests.pages import PAGES, Block, block, blocks, run_by_others
from tests.smoke import areas, targets

pytest_plugins = "pytester"

ROOT = Path(__file__).parents[1]
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
MY_TESTS = "def test_orders(kohort_broker):"
"""How the blocks begin that are tests: they run in a pytest of their own."""
SETUPS = {
    "docs/clusters.md": "from kohort.client import ClientConfig\nfrom kohort.spark import StreamsApp\n",
    "docs/connections.md": "class my_identity:\n    token = staticmethod(lambda: 'a token')\n",
    "docs/producer.md": """
import pyarrow as pa
from kohort.client import Consumer, OffsetAndMetadata, Producer, TopicPartition
consumer = Consumer("localhost:9092", group_id="copier")
await consumer.start()
consumer.subscribe("greetings")
producer = sending = Producer("localhost:9092")
await producer.start()
offsets = {TopicPartition("greetings", 0): OffsetAndMetadata(1)}
""",
    "docs/operations.md": """
class app:
    @staticmethod
    def run(session, listeners):
        print(listeners)
spark = None
""",
    "docs/queries.md": """
class app:
    @staticmethod
    def run(session, listeners):
        listeners[0].waiting("nothing to do")
spark, killed_at = None, 1385000004.0
""",
    "docs/streams-member.md": """
from kohort.client import Admin, OffsetAndMetadata, Producer, TopicPartition
from kohort.client.streams_member import *
async with Admin("localhost:9092") as admin:
    await admin.topics.create("lines", partitions=1)
""",
}
"""What a page's reader has said before, as Python."""
BEFORE = {
    "async with producer.transaction():": """
member = StreamsMember("localhost:9092", "app", topology)
await member.start()
event = await member.next_event()
producer = Producer("localhost:9092", transactional_id="app-1")
await producer.start()
task, offsets = TaskId("0", 0), {TopicPartition("lines", 0): OffsetAndMetadata(0)}
""",
}
"""What has come about before a block that begins so."""
AFTER = {
    "docs/producer.md": "await consumer.close()\nawait sending.close()",
    "docs/streams-member.md": "await producer.close()\nawait member.close()",
}


def python_blocks(page: str) -> list[Block]:
    """Those that run one after the other, in one scope."""
    elsewhere = {each for each, _ in run_by_others()}
    return [
        each
        for each in blocks(page)
        if each.language == "python" and not each.first.startswith(MY_TESTS) and each not in elsewhere
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)])
def test_examples_run(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its reader would run them, who has said before what the page takes for granted."""
    monkeypatch.chdir(tmp_path)
    prepare(page, tmp_path, monkeypatch)
    scope: dict[str, Any] = {"__name__": "example"}
    examples = python_blocks(page)
    with Broker() as broker, asyncio.Runner() as runner:

        def run(place: str, code: str) -> None:
            code = code.replace('b"..."', 'b""').replace("localhost:9092", broker.bootstrap_servers)
            code = code.replace("/run/secrets", str(tmp_path)).replace("/etc/kafka", str(tmp_path))
            compiled = compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if compiled.co_flags & inspect.CO_COROUTINE:
                runner.run(eval(compiled, scope))
            else:
                exec(compiled, scope)

        run(page, SETUPS.get(page, ""))
        for each in examples:
            run(each.place, BEFORE.get(each.first, ""))
            run(
                each.place,
                each.text.replace(
                    "    async for event in member:\n        ...", "    print(await member.next_event())"
                ),
            )
        run(page, AFTER.get(page, ""))
    if "print(" in "".join(each.text for each in examples):
        assert capsys.readouterr().out


def prepare(page: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files, the variables and the packages that a page's reader has."""
    (directory / "kafka").write_text("secret\n")
    (directory / "token").write_text("a token\n")
    Certificates(directory)
    for each in blocks("docs/connections.md"):
        if each.language == "properties":
            (directory / "client.properties").write_text(each.text.replace("/etc/kafka", str(directory)))
    (directory / "journals").mkdir()
    shortened = block("docs/queries.md", '{"event":"started"').text
    rest = dict.fromkeys(("bytes", "out_records", "late", "lag", "job_ms", "commit_ms"), 0) | {"tasks": ["0_0"]}
    lines = shortened.replace('"0_1"],…}', '"0_1"]}').replace(",…}", "," + json.dumps(rest)[1:])
    (directory / "journals" / "one.jsonl").write_text(lines)
    if page == "docs/operations.md":
        chart = {"BOOTSTRAP_SERVERS": "kafka:9092", "GROUP_INSTANCE_ID": "flights-0", "SESSION_TIMEOUT_MS": "45000"}
        for name, value in {**chart, "APPLICATION_SERVER": "flights-0:8080", "STATE_DIR": str(directory)}.items():
            monkeypatch.setenv(name, value)
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        exporters = {
            "metric_exporter.OTLPMetricExporter": ConsoleMetricExporter,
            "trace_exporter.OTLPSpanExporter": ConsoleSpanExporter,
        }
        for path, exporter in exporters.items():  # nobody collects what is sent from here
            module, name = path.split(".")
            stand_in = types.ModuleType(module)
            setattr(stand_in, name, exporter)
            monkeypatch.setitem(sys.modules, f"opentelemetry.exporter.otlp.proto.http.{module}", stand_in)
        monkeypatch.setattr(trace, "set_tracer_provider", lambda provider: provider.shutdown())
        monkeypatch.setattr(metrics, "set_meter_provider", lambda provider: provider.shutdown())


def test_the_tests_of_readme_and_broker_page_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p kohort.testing.plugin -p no:cacheprovider --strict-markers -W error")
    imports = "from datetime import timedelta\n\nimport pytest\nfrom confluent_kafka import Producer\n\n"
    shown = {page: block(page, MY_TESTS).text for page in ("README.md", "docs/broker.md")}
    pytester.makepyfile(**{f"test_{Path(page).stem.lower()}": imports + text for page, text in shown.items()})
    tests = "".join(shown.values()).count("def test_")
    assert tests == 7
    pytester.runpytest_subprocess().assert_outcomes(passed=tests)


def test_nexmark_shows_the_programs_that_run() -> None:
    """Each is a file, after its imports."""
    programs = re.findall(
        r"^## (q\d+): .*?```python\n(.*?)```", (ROOT / "docs/nexmark.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert [name for name, _ in programs] == list(queries.NAMES)
    for name, program in programs:
        assert (ROOT / "benchmarks" / "nexmark" / "queries" / f"{name}.py").read_text().endswith(f"\n{program}"), name


def test_what_is_to_be_run_can_be() -> None:
    """Targets are the Makefile's; and Kohort isn't installed from an index, where it isn't. Its extras can be added."""
    known = targets() | {f"test-{area}" for area in areas()}
    for page in TEXTS:
        text = page.read_text()
        for target in re.findall(r"(?:`|^    )make ([a-z-]+)(?=[`\s])", text, re.MULTILINE):
            assert target in known, f"{page.name}: make {target}"
        assert not re.search(r"pip install '?kohort\b(?![\[-])", text), page.name
    for source in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"pip install '?kohort\b(?!\[)", source.read_text()), source.name


def test_the_readme_is_short() -> None:
    """Whoever wonders what this is has half a minute."""
    assert len((ROOT / "README.md").read_text().split()) < 700


def test_links_lead_somewhere() -> None:
    """In the repository; of the site, where pages of the reference are generated, `make docs` checks them.

    Nobody else's site is asked.
    """
    for page in TEXTS:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith(("reference/", "https://")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
