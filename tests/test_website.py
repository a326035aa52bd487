"""What `make docs` generates: a page for every message, stored record, setting and command, and links that hold."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.topic_keys import TOPIC_KEYS
from kohort.cli import COMMANDS
from kohort.client.config import ClientConfig
from kohort.protocol.describe import example_of
from kohort.protocol.message import Message
from kohort.protocol.messages import API_NAMES, api, apis
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.stored import RECORD_NAMES
from kohort.spark.program.settings import AppSettings
from tests.smoke import targets
from website import charts, commands, messages, pictures, python, reference, settings
from website.links import on_site
from website.page import Page, slug
from website.shared_lines import parted

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    made = reference.pages()
    assert not [path for path, count in Counter(page.path for page in made).items() if count > 1]
    return {page.path: page for page in made}


def test_every_api_and_every_stored_record_has_a_page(pages: dict[str, Page]) -> None:
    for name in API_NAMES.values():
        text = pages[f"reference/messages/{slug(name)}.md"].text
        assert f"## {name}Request\n" in text and f"## {name}Response\n" in text, name
    for names in RECORD_NAMES.values():
        for name in names.values():
            assert f"## {name}Value\n" in pages[f"reference/records/{slug(name)}.md"].text, name
    assert "reference/records/partition-record.md" in pages  # of __cluster_metadata
    assert "reference/messages/consumer-protocol-assignment.md" in pages


@pytest.mark.parametrize("message", [each for entry in apis() for each in (entry.request, entry.response)])
def test_an_example_is_what_goes_over_the_wire(message: type[Message]) -> None:
    """Each byte of the frame has one meaning, and what follows the header is the example."""
    frame, spans = messages.example_frame(message)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert [span.start for span in spans] == [0, *(span.end for span in spans)][:-1]
    assert spans[-1].end == len(frame)
    version = message.__message__.versions[-1]
    example = example_of(message, version)
    assert frame.endswith(example.encode(version))


def test_a_stored_record_has_diagrams_fields_versions_schemas_and_an_example(pages: dict[str, Page]) -> None:
    """Its key and its value, each."""
    for names in RECORD_NAMES.values():
        for name in names.values():
            text = pages[f"reference/records/{slug(name)}.md"].text
            assert all(f"### {part} of {name}Value\n" in text for part in ("Fields", "Versions", "Example")), name
            assert (text.count('<div class="wire"'), text.count("Schema of each version")) == (2, 2), name


def test_a_page_says_what_each_version_changed(pages: dict[str, Page]) -> None:
    text = pages["reference/messages/heartbeat.md"].text
    assert re.search(r"^\| 3 \| static members.* \| `GroupInstanceId` \|  \|$", text, re.MULTILINE)
    assert "| 4 | flexible |" in text
    assert "v0 to v2: {" in text and "v3 to v4: {" in text
    gone = [line for line in messages._versions(FetchRequest, {}) if not line.endswith("|  |")]
    assert any("`ReplicaId`" in line for line in gone)
    newest = list(messages._versions(MetadataResponse, {}))[-1]
    assert newest.startswith(f"| {MetadataResponse.__message__.versions[-1]} |")


def test_a_diagram_has_the_fields_of_structs_within_their_boxes() -> None:
    text = messages._api_page(api("Metadata")).text
    box = text[text.index('wire-struct"><b>Topics') :]
    assert "PartitionIndex" in box and "ErrorCode" in box
    assert "<b>GenerationId</b><span>int32</span><i>4 bytes</i>" in messages._api_page(api("Heartbeat")).text
    assert HeartbeatRequest.__name__ in messages._api_page(api("Heartbeat")).text


def test_every_setting_is_explained() -> None:
    broker, topics, clients, applications = (page.text for page in settings.pages())
    assert [name for name, key in BROKER_KEYS.items() if f"| `{name}` |" not in broker and not key.internal] == []
    assert [name for name, key in TOPIC_KEYS.items() if f"| `{name}` |" not in topics and not key.internal] == []
    for text, cls in ((clients, ClientConfig), (applications, AppSettings)):
        names = [name for several, _ in settings.explained(cls) for name in several]
        assert sorted(names) == sorted(field.name for field in dataclasses.fields(cls))
        assert all(f"| `{name}` |" in text for name in names)


def test_metrics_are_shown_with_what_they_say(pages: dict[str, Page]) -> None:
    text = pages["reference/metrics.md"].text
    assert "| `kohort_request_seconds` | histogram | Time from a request to its answer, waiting included. |" in text
    assert "| `kafka_streams_records_lag` | gauge | Records left to read. |" in text
    assert "_created`" not in text
    for name in re.findall(
        r"kohort_[a-z_]+", (ROOT / "docs" / "broker.md").read_text().partition("## Metrics")[2].partition("##")[0]
    ):
        assert f"| `{name}` |" in text, name


def test_every_command_is_shown_with_its_options() -> None:
    made = {page.path: page.text for page in commands.pages()}
    assert all(f"[kohort {name}]" in made["reference/commands.md"] for name in COMMANDS)
    groups = made["reference/commands/groups.md"]
    assert "## kohort groups describe\n" in groups
    assert "```sh\nkohort groups describe word-count --watch\n```" in groups
    assert "| `--timeout SECONDS` | `15.0` | For the whole command. |" in groups
    assert "--ephemeral" in made["reference/commands/serve.md"]
    assert not [path for path, text in made.items() if "--install-completion" in text]


def test_public_packages_are_shown_with_what_they_export() -> None:
    client, *_ = python.pages()
    assert "::: kohort.client\n" in client.text
    assert "          - ShareConsumer\n" in client.text


def test_names_that_share_a_line_of_a_docstring_have_one_each_in_that_section_alone() -> None:
    text = (
        "A.\n\nArgs:\n    a, b: of both\n        in c, d: so.\n    e: f, g: h.\n\nRaises:\n    KeyError, OSError: i.\n"
    )
    assert parted(text) == text.replace("    a, b: of", "    a:\n    b: of")
    assert parted("Attributes:\n    a, b_2, c: d") == "Attributes:\n    a:\n    b_2:\n    c: d"


EXAMPLE = """
class Range:
    '''Some.

    Attributes:
        start, end: offsets.
    '''

    start: int
    end: int | None

    def read(self, topic: str, limit: int = 7) -> None:
        '''Reads.

        Args:
            topic, limit: what, and how much.
        '''
"""


def test_names_that_share_a_line_of_a_docstring_share_one_on_the_page_with_type_and_default(tmp_path: Path) -> None:
    """And griffe, which finds these in the signature, has nothing to complain about."""
    (tmp_path / "example.py").write_text(EXAMPLE)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("::: example\n")
    folders = {"docs_dir": str(tmp_path / "docs"), "site_dir": str(tmp_path / "site")}
    config = load_config(str(ROOT / "mkdocs.yml"), nav=["index.md"], hooks=[], **folders)
    config.plugins["mkdocstrings"].config["handlers"]["python"]["paths"] = [str(tmp_path)]
    build(config)
    page = (tmp_path / "site" / "index.html").read_text()
    items = re.findall(r'<li class="doc-section-item.*?</li>', page, re.DOTALL)
    assert [" ".join(re.sub("<[^>]+>", "", item).split()) for item in items] == [
        "start (int), end (int | None) – offsets.",
        "topic (str), limit (int, default: 7) – what, and how much.",
    ]


def test_links_that_leave_the_site_become_names_of_files() -> None:
    text = "[a](cli.md#x) [b](../README.md) [c](../CONTRIBUTING.md#is-it) [e](https://a.b) [g](#h)"
    assert on_site(text, "guide.md", "docs/guide.md") == (
        "[a](cli.md#x) [b](index.md) [c](project/contributing.md#is-it) [e](https://a.b) [g](#h)"
    )
    assert on_site("[d](../src/kohort) [`f.py`](f.py)", "x.md", "docs/x.md") == "d (`src/kohort`) `f.py` (`docs/f.py`)"
    root = "[d](docs/cli.md) ![p](docs/images/show.svg)\n```\n[in](code.md)\n```\n[LICENSE](LICENSE)"
    assert on_site(root, "project/contributing.md", "CONTRIBUTING.md") == (
        "[d](../cli.md) ![p](docs/images/show.svg)\n```\n[in](code.md)\n```\nLICENSE"
    )


def test_the_site_fetches_nothing() -> None:
    """Neither fonts nor scripts of others; what search needs in files is ours."""
    config = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in config
    assert "strict: true" in config
    assert "polyfills: [assets/iframe-worker.js]" in config
    for file in (ROOT / "docs" / "assets").iterdir():
        assert not re.search(r"https?://(?!www\.w3\.org)", file.read_text()), file.name


@pytest.mark.parametrize("chart", charts.charts(), ids=lambda chart: chart.title)
def test_charts_have_the_figures_of_the_docs(chart: charts.Chart) -> None:
    """All are in one row of a table of the page that it names, each below its contender's name."""
    assert chart.command.removeprefix("make ") in targets()
    assert next(iter(chart.bars)) == "Kohort"
    file, _, anchor = chart.page.partition("#")
    section = f"## {anchor.title()}\n"
    page = (ROOT / "docs" / file).read_text().partition(section)[2]
    assert any(figures(head, row, chart.bars) == chart.bars for head, row in rows(page))


def test_figures_of_other_rows_or_contenders_are_none_of_a_chart() -> None:
    head = "| | Kohort | Kohort ÷ Kafka | Kafka |\n| --- | --- | --- | --- |\n"
    page = f"{head}| a | 1.50 s | 2 | 1,003 |\n| b | 4 | | |\n"
    bars = {"Kohort": 1.5, "Apache Kafka": 1003.0}
    assert [figures(head, row, bars) for head, row in rows(page)] == [bars, {"Kohort": 4}]


NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def rows(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """Those of a page's tables, each with its table's head."""
    for table in re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE):
        head, _, *others = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines())
        for row in others:
            yield head, row


def figures(head: list[str], row: list[str], names: Iterable[str]) -> dict[str, float]:
    """The first number of each contender's cell. Its column is the first that begins with its name."""
    found = {}
    for name in names:
        at = next((at for at, title in enumerate(head) if title.startswith(name.removeprefix("Apache "))), None)
        number = None if at is None else NUMBER.match(row[at])
        if number:
            found[name] = float(number[0].replace(",", ""))
    return found


def test_a_bar_is_as_long_as_its_figure() -> None:
    chart = charts.Chart("A & B", "ms", "less", "make bench-wire", "wire.md", {"Kohort": 50, "other": 200.5}, "Today.")
    text = charts.svg(chart)
    assert [int(width) for width in re.findall(r'<rect [^>]*width="(\d+)"', text)] == [100, 400]
    assert "<title>A &amp; B</title>" in text and "200.5 ms" in text


def test_drawings_have_the_colours_of_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "concepts"
    folder.mkdir(parents=True)
    (folder / "a.svg").write_text(
        '<svg role="img">\n  <style>.pic { color: red }</style>\n  <path d="M0 0"/>\n</svg>\n'
    )
    page = 'text\n\n![a "b"](images/concepts/a.svg)\n\n![c](images/c.svg)\n'
    assert pictures.inlined(page, tmp_path) == (
        'text\n\n<div class="picture" markdown="0"><svg role="img" aria-label="a &quot;b&quot;">'
        '<path d="M0 0"/></svg></div>'
        "\n\n![c](images/c.svg)\n"
    )


def test_all_drawings_can_be_read_in_the_dark() -> None:
    for file in (ROOT / "docs" / "images" / "concepts").glob("*.svg"):
        text = file.read_text()
        assert "prefers-color-scheme: dark" in text and "currentColor" in text and "<title>" in text, file.name
        assert len(text) < 10_000, file.name
