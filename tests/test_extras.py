"""The base works without what the extras bring, and what needs an extra says in a sentence which."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from kohort import extras
from kohort.extras import MissingExtraError, require

OF_EXTRAS = ("aiohttp", "cryptography", "fastavro", "jinja2", "jwt", "matplotlib", "numba", "numpy",
             "opentelemetry", "ortools", "pandas", "pyarrow", "pyspark", "pyspark_kohort", "rocksdict",
             "yaml")  # fmt: skip
ARROW = "numba, numpy and pyarrow: pip install 'kohort[arrow]'"
SPARK = (
    "kohort-spark, numba, numpy, pyarrow, cryptography, PyJWT, aiohttp, fastavro, pandas, pyspark and rocksdict: "
    "pip install 'kohort[spark]'"
)

NEED_ARROW = {
    *(f"kohort.cli.data.{name}" for name in (
        "column_block", "column_path", "columns", "json_columns", "parquet_writer", "read_csv", "read_lines",
        "read_parquet", "render_json", "render_template",
    )),
    *(f"kohort.protocol.records.{name}" for name in (
        "arrow", "check_kernel", "columns", "jit", "kernels", "partitioner",
    )),
    "kohort.client.producing.tables",
}  # fmt: skip
NEED_MORE = (
    "kohort.spark", "kohort.cli.demo", "kohort.cli.placing.yaml_document", "kohort.cli.client.app_report",
    "kohort.cli.client.store_reset", "kohort.console.pages", "kohort.console.placement_pages",
    "kohort.console.server", "kohort.console.store_pages", "kohort.console.change_pages", "kohort.console.login_pages",
    *(f"kohort.console.{name}_routes" for name in ("record", "topic", "wire")), "kohort.cli.console_access",
    "kohort.console.forms",
)  # fmt: skip
"""Modules and packages that commands and methods import once they have asked for the extra."""

IMPORTS = """
import kohort, pkgutil, importlib
def walk(path, prefix):
    for module in pkgutil.iter_modules(path, prefix):
        if module.name not in skipped:
            found = importlib.import_module(module.name)
            if module.ispkg:
                walk(found.__path__, module.name + ".")
walk(kohort.__path__, "kohort.")
loaded = [name for name in OF_EXTRAS if sys.modules.get(name)]
assert not loaded, loaded
"""


def blocking(missing: Iterable[str]) -> str:
    """The begin of a program that can't import these packages."""
    return f"import sys\nsys.modules.update(dict.fromkeys({tuple(missing)!r}))\n"


def without(missing: Iterable[str], program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a Python without these packages."""
    return subprocess.run(
        [sys.executable, "-c", blocking(missing) + program], capture_output=True, text=True, check=False
    )


def test_no_module_of_the_base_imports_what_extras_bring() -> None:
    skipped = {*NEED_ARROW, *NEED_MORE, "kohort.cli.__main__"}
    ran = without(OF_EXTRAS, f"OF_EXTRAS = {OF_EXTRAS}\nskipped = {skipped}\n{IMPORTS}")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["produce", "t", "--format", "csv"], f"kohort produce --format csv needs {ARROW}"),
        (["produce", "t", "--format", "parquet"], f"kohort produce --format parquet needs {ARROW}"),
        (["consume", "t", "--format", "parquet", "--output", "x"], f"kohort consume --format parquet needs {ARROW}"),
        (["place", "group.yaml"], "reading a group in YAML needs PyYAML: pip install 'kohort[placement]'"),
        (["console"], "kohort console needs aiohttp and Jinja2: pip install 'kohort[console]'"),
        (["serve", "--ephemeral", "--console"], "--console needs aiohttp and Jinja2: pip install 'kohort[console]'"),
        (["apps", "list"], f"kohort apps list needs {SPARK}"),
        (["apps", "reset", "a", "--state-dir", "d"], f"kohort apps reset --state-dir needs {SPARK}"),
        (
            ["demo"],
            "kohort demo needs kohort-spark, numba, numpy, pyarrow, cryptography, PyJWT, aiohttp, fastavro, pandas, "
            "pyspark, rocksdict and matplotlib: pip install 'kohort[spark]'",
        ),
    ],
    ids=lambda value: "-".join(value[:1] + value[3:4]) if isinstance(value, list) else "",
)
def test_commands_say_what_they_need(
    command: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("group.yaml").write_text("members: {}")
    ran = without(OF_EXTRAS, f"sys.argv = {['kohort', *command]}\nfrom kohort.cli import main\nmain()")
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"error: {said}\n")


def test_the_page_on_extras_shows_an_error_that_there_is() -> None:
    page = (Path(__file__).parents[1] / "docs" / "install.md").read_text()
    assert f"error: kohort consume --format parquet needs {ARROW}\n" in page


def test_a_group_is_not_written_as_yaml_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from kohort.cli.placing.group_text import group_as_json, group_as_yaml
    from kohort.coordinator.placement import Group

    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(
        MissingExtraError, match=r"writing a group in YAML needs PyYAML: pip install 'kohort\[placement"
    ):
        group_as_yaml(Group((), ()))
    assert group_as_json(Group((), ()))


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (
            "kohort.spark",
            "kohort.spark needs kohort-spark, numba, numpy, pyarrow and pyspark: pip install 'kohort[spark]'",
        ),
        ("kohort.protocol.records.arrow", f"reading records as Arrow columns needs {ARROW}"),
        ("kohort.protocol.records.columns", f"reading records as Arrow columns needs {ARROW}"),
        ("kohort.protocol.records.partitioner", f"kohort.protocol.records.partitioner needs {ARROW}"),
    ],
)
def test_modules_say_what_they_need(module: str, what: str) -> None:
    ran = without(OF_EXTRAS, f"import {module}")
    assert ran.stderr.splitlines()[-1] == f"kohort.extras.MissingExtraError: {what}"


@pytest.mark.parametrize("module", ["kohort.spark", "kohort.spark.testing", "kohort.spark.app"])
def test_the_pipeline_says_that_its_distribution_is_missing(module: str) -> None:
    """Though all that it needs of others is there."""
    ran = without(["pyspark_kohort"], f"import {module}")
    said = "kohort.spark needs kohort-spark: pip install 'kohort[spark]'"
    assert ran.stderr.splitlines()[-1] == f"kohort.extras.MissingExtraError: {said}"


def test_spark_finds_its_other_data_sources_without_the_extra() -> None:
    ran = without(["numba"], "import pyspark_kohort\nassert not hasattr(pyspark_kohort, 'DefaultSource')")
    assert ran.returncode == 0, ran.stderr


CLIENT = """
import asyncio
from kohort.client import Consumer, Producer
from kohort.client.column_codec import columns_if_loaded
from kohort.extras import MissingExtraError
from kohort.testing import Broker

def refused(call):
    try:
        call()
    except MissingExtraError as error:
        print(error)

async def main(servers):
    async with Producer(servers, compression_type="lz4") as producer:
        deliveries = [await producer.send("t", b"value %d" % n, key=b"a key that is longer than a few bytes")
                      for n in range(2000)]
        await producer.flush()
        try:
            await producer.send_table("t", None)
        except MissingExtraError as error:
            print(error)
    async with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        found = []
        while len(found) < 2000:
            found += await consumer.poll(5000)
        assert [record.value for record in found] == [b"value %d" % n for n in range(2000)]
        refused(consumer.batches)
        try:
            await consumer.poll_batch()
        except MissingExtraError as error:
            print(error)

with Broker() as broker:
    asyncio.run(main(broker.bootstrap_servers))
assert columns_if_loaded() is None
"""


def test_the_client_reads_and_writes_records_and_says_what_arrow_needs() -> None:
    ran = without(OF_EXTRAS, CLIENT)
    assert ran.returncode == 0, ran.stderr
    consuming = f"consuming Arrow batches needs {ARROW}"
    assert ran.stdout.splitlines() == [f"sending Arrow tables needs {ARROW}", consuming, consuming]


COMMANDS = """
import json, subprocess
from kohort.testing import Broker

def kohort(*command, given=None):
    program = [sys.executable, "-c", BLOCK + "from kohort.cli import main; main()", *command, "-b", servers, "-q"]
    return subprocess.run(program, input=given, stdout=subprocess.PIPE, check=True).stdout

with Broker() as broker:
    servers = broker.bootstrap_servers
    kohort("produce", "t", "--key-separator", ":", "--null", "none", given=b"a:1\\n\\xff:none\\n")
    saved = kohort("consume", "t", "--from-beginning", "--exit", "--format", "json")
    kohort("produce", "copy", "--format", "records", given=saved)
    read = kohort("consume", "copy", "--from-beginning", "--exit", "--key", "--timestamp", "--group", "g")
assert [line.split(b"\\t")[1:] for line in read.splitlines()] == [[b"a", b"1"], [b"\\xff", b"null"]], read
"""


def test_commands_produce_and_consume_lines_and_json() -> None:
    ran = without(OF_EXTRAS, f"BLOCK = {blocking(OF_EXTRAS)!r}\n{COMMANDS}")
    assert ran.returncode == 0, ran.stderr


def test_an_application_says_what_running_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from kohort.spark import StreamsApp

    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(
        MissingExtraError, match=r"a streams application needs rocksdict: pip install 'kohort\[spark\]'"
    ):
        StreamsApp("a", bootstrap_servers="localhost:1").run()


def test_telemetry_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from kohort.spark.monitoring.telemetry import OpenTelemetry

    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(
        MissingExtraError, match=r"^telemetry needs opentelemetry-api: pip install 'kohort\[opentelemetry\]'$"
    ):
        OpenTelemetry("a")


def test_one_package_that_is_missing_is_named_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    require("arrow", "this", extras.ARROW)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r"^this needs numba: pip install 'kohort\[arrow\]'$"):
        require("arrow", "this", extras.ARROW)
