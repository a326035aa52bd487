"""What users install: the base alone and with each extra, in empty environments, through the first steps of each."""

from __future__ import annotations

import email
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from tests.environments import EXTRAS, FIRST_TEST, ROOT, Environment, Wheels
from tests.test_extras import SPARK
from tests.tools import JAVA

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # a gigabyte comes from the package index

LARGEST = {"": 60, "arrow": 600, "console": 85, "placement": 420, "security": 90, "spark": 1800}
"""Megabytes on disk."""

LICENCES = """
import json
from importlib.metadata import distributions
print(json.dumps({
    found.name: [found.metadata.get("License-Expression") or found.metadata.get("License") or "",
                 *(each for each in found.metadata.get_all("Classifier", []) if each.startswith("License"))]
    for found in distributions()
}))
"""

CLIENT = """
import asyncio
from kohort.client import Consumer, Producer
from kohort.testing import BrokerProcess

async def main(servers):
    async with Producer(servers) as producer:
        await (await producer.send("orders", b"two teapots", key=b"alice"))
    async with Consumer(servers, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe("orders")
        async for record in consumer:
            print(record.key, record.value)
            break

with BrokerProcess() as broker:  # kohort serve
    asyncio.run(main(broker.bootstrap_servers))
"""

TABLES = """
import asyncio
import pyarrow as pa
from kohort.client import Consumer, Producer
from kohort.client.column_codec import columns_loaded
from kohort.testing import BrokerProcess

async def main(servers):
    await columns_loaded()  # compiled
    async with Producer(servers) as producer:
        await (await producer.send_table("orders", pa.table({"value": ["tea", "milk"] * 5000})))
    async with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([("orders", 0)])
        rows = 0
        async for batch in consumer.batches():
            rows += batch.num_rows
            if rows == 10_000:
                break

with BrokerProcess() as broker:
    asyncio.run(main(broker.bootstrap_servers))
"""

COMMANDS = """
import subprocess, sys
from pathlib import Path
from kohort.testing import BrokerProcess

command = Path(sys.executable).with_name("kohort")
with BrokerProcess() as broker:
    at = ["--bootstrap-server", broker.bootstrap_servers, "--quiet"]
    subprocess.run([command, "produce", "words", *at], input=b"to be\\n", check=True)
    subprocess.run([command, "consume", "words", *at, "--from-beginning", "--exit"], check=True)
"""

CONSOLE = """
import re, subprocess, sys
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen
from kohort.testing import BrokerProcess

def fetched(path):
    with urlopen(urljoin(address, path), timeout=60) as answer:
        print(answer.status, path)
        return answer.read().decode()

kohort = Path(sys.executable).with_name("kohort")
with BrokerProcess() as broker:
    at = ["--bootstrap-server", broker.bootstrap_servers]
    subprocess.run([kohort, "produce", "words", *at, "--quiet"], input=b"to be\\n", check=True)
    with subprocess.Popen([kohort, "console", "--port", "0", *at], stdout=subprocess.PIPE, text=True) as console:
        try:
            address = console.stdout.readline().strip()
            for path in sorted(set(re.findall('"(/static/[^"]*)"', fetched("/groups")))):
                assert fetched(path)
            assert "to be" in fetched("/records?topic=words")
            fetched("/wire")
        finally:
            console.terminate()
"""

GROUP = '{subtopologies: {"0": {partitions: 6, state_stores: 2}}, members: {m1: {active: {"0": 0-5}}, m2: {}}}'
GROUP_AS_JSON = json.dumps(
    {"subtopologies": {"0": {"partitions": 6, "state_stores": 2}}, "members": {"m": {}, "n": {}}}
)

APPLICATION = """
from pyspark.sql import SparkSession
from pyspark_kohort import DefaultSource  # as Spark finds it
from kohort.spark import StreamsApp, count
app = StreamsApp("words", bootstrap_servers="localhost:9092")
words = app.stream("words", schema="word STRING", key="word")
words.group_by("word").aggregate("counts", n=count()).to("counts")
print(app.describe(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()))
"""


SECURED = """
import datetime, socket, ssl, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12
from kohort.testing import BrokerProcess

key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
name, end = x509.Name.from_rfc4514_string("CN=localhost"), now + datetime.timedelta(days=1)
builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
builder = builder.not_valid_before(now).not_valid_after(end)
builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
certificate = builder.sign(key, hashes.SHA256())
with open("server.p12", "wb") as store:
    encryption = BestAvailableEncryption(b"secret")
    store.write(pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encryption))
keys = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": "server.p12", "ssl.keystore.password": "secret"}
with BrokerProcess(keys) as broker:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    context = ssl.create_default_context(cadata=certificate.public_bytes(Encoding.DER))
    with context.wrap_socket(socket.create_connection((host, int(port))), server_hostname="localhost") as tls:
        print(tls.version())
"""


TEST_OF_THE_PIPELINE = """
def test_driver(kohort_test_driver):
    pass
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def installed(wheels: Wheels, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Environment]:
    """An environment with the extra that the test is for, not larger than it may be; removed in the end."""
    environment = Environment(tmp_path / "venv", wheels)
    environment.install_kohort()
    if request.param:
        environment.install(f"kohort[{request.param}]")  # as the sentences say that name it
    assert environment.megabytes() <= LARGEST[request.param]
    yield environment
    environment.remove()


@pytest.mark.parametrize("installed", [""], indirect=True, ids=["base"])
def test_the_base_serves_reads_and_writes_and_has_a_fixture(installed: Environment, tmp_path: Path) -> None:
    licences = json.loads(installed.run("python", "-c", LICENCES))
    assert {"kohort", "cramjam", "uvloop"} <= licences.keys()
    unclear = {name for name, said in licences.items() if not any(said)}
    copyleft = {name: said for name, said in licences.items() if re.search(r"GPL|GNU|Affero", " ".join(said))}
    assert (unclear, copyleft) == (set(), {})

    assert installed.run("kohort", "--version") == f"kohort {kohort.__version__}\n"
    assert installed.run("python", "-c", CLIENT) == "b'alice' b'two teapots'\n"
    assert installed.run("python", "-c", COMMANDS) == "to be\n"

    (installed.directory / "group.json").write_text(GROUP_AS_JSON)
    assert "Placed by optimal" in installed.run("kohort", "place", "group.json")  # a small one, without OR-Tools

    installed.install("pytest")
    (tmp_path / "test_orders.py").write_text(FIRST_TEST)
    assert "1 passed" in installed.run("pytest", "-q", "test_orders.py", directory=tmp_path)


@pytest.mark.parametrize("installed", [""], indirect=True, ids=["base"])
def test_the_base_says_what_the_pipeline_needs(installed: Environment) -> None:
    commands = {
        "apps list": ["apps", "list"],
        "apps describe": ["apps", "describe", "a"],
        "apps plan": ["apps", "plan", "m:a"],
        "apps reset --state-dir": ["apps", "reset", "a", "--state-dir", "d"],
        "apps reset --store": ["apps", "reset", "a", "--store", "s"],
    }
    for name, command in commands.items():
        assert installed.failing("kohort", *command) == f"error: kohort {name} needs {SPARK}\n"
    assert installed.failing("kohort", "demo").startswith("error: kohort demo needs kohort-spark, ")

    imported = "kohort.extras.MissingExtraError: kohort.spark needs kohort-spark, "
    for module in ("kohort.spark", "kohort.spark.testing"):
        assert imported in installed.failing("python", "-c", f"import {module}")

    installed.install("pytest")
    (installed.directory / "test_driver.py").write_text(TEST_OF_THE_PIPELINE)
    assert imported in installed.failing("pytest", "-q", "test_driver.py")


@pytest.mark.parametrize("installed", ["arrow"], indirect=True)
def test_arrow_reads_and_writes_tables(installed: Environment) -> None:
    assert installed.run("python", "-c", TABLES) == ""
    assert installed.run("python", "-c", COMMANDS) == "to be\n"


@pytest.mark.parametrize("installed", ["console"], indirect=True)
def test_console_has_its_pages_and_what_they_load(installed: Environment) -> None:
    static = ("console.css", "console.js", "icon.svg")
    paths = ("/groups", *(f"/static/{name}" for name in static), "/records?topic=words", "/wire")
    assert installed.run("python", "-c", CONSOLE) == "".join(f"200 {path}\n" for path in paths)


@pytest.mark.parametrize("installed", ["placement"], indirect=True)
def test_placement_places(installed: Environment) -> None:
    (installed.directory / "group.yaml").write_text(GROUP)
    assert "Placed by optimal" in installed.run("kohort", "place", "group.yaml")


@pytest.mark.parametrize("installed", ["security"], indirect=True)
def test_security_serves_with_a_keystore(installed: Environment) -> None:
    assert installed.run("python", "-c", SECURED) == "TLSv1.3\n"


@pytest.mark.parametrize("installed", ["spark"], indirect=True)
def test_spark_describes_an_application(installed: Environment) -> None:
    JAVA.require()
    assert "Sub-topology: 0" in installed.run("python", "-c", APPLICATION)


def test_each_file_is_in_one_wheel(wheels: Wheels) -> None:
    base, pipeline = (
        {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
        for wheel in (wheels.kohort, wheels.kohort_spark)
    )
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*.*") if "__pycache__" not in path.parts}
    assert base & pipeline == set()
    assert base | pipeline == files | {"kohort/cli/demo/flight_delays.py"}
    assert {name for name in base if re.match(r"kohort/spark/|pyspark_kohort/", name)} == {"kohort/spark/__init__.py"}
    assert all(re.match(r"kohort/spark/|pyspark_kohort/", name) for name in pipeline)


def test_all_is_every_other_extra(wheels: Wheels) -> None:
    found = needed(wheels.kohort)
    pinned = f"=={kohort.__version__}"
    assert found.keys() == {*EXTRAS, "dev"}
    assert found["spark"] == {f"kohort-spark{pinned}"}
    assert found["spark"] < found["protobuf"]
    assert found["spark"] < found["opentelemetry"]
    others = ("arrow", "console", "opentelemetry", "placement", "protobuf", "security")
    assert found["all"] == set().union(*(found[extra] for extra in others))
    assert found["all"] < found["dev"]
    assert f"kohort[arrow,security]{pinned}" in needed(wheels.kohort_spark)[""]


def needed(wheel: Path) -> dict[str, set[str]]:
    """What a wheel depends on, by extra; by "" what it always does."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    found: dict[str, set[str]] = defaultdict(set)
    for each in metadata.get_all("Requires-Dist", []):
        package, _, extra = each.partition("; extra == ")
        found[extra.strip("'\"")].add(package)
    return found
