"""The tests that libraries in Go bring of themselves, as they were published, against `kohort serve`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from . import toolchains
from .secured import PASSWORD, USER, SecureKohort, add_user
from .topics import create_topic

pytestmark = [pytest.mark.long, pytest.mark.timeout(toolchains.BUILD_S)]

RUN_S: Final = 150
"""The limit of a program of tests."""

KAFKA_GO: Final = "github.com/segmentio/kafka-go"
KAFKA_GO_USERS: Final = {"adminscram256": "admin-secret-256", "adminscram512": "admin-secret-512"}
KAFKA_GO_LOGIN: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="adminplain" password="admin-secret" user_adminplain="admin-secret";'
)
KAFKA_GO_SETTINGS: Final = {
    "allow.everyone.if.no.acl.found": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "group.min.session.timeout.ms": "6000",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": KAFKA_GO_LOGIN,
    "message.max.bytes": "200000000",
}
KAFKA_GO_TESTS: Final = "ACL|Quota|Scram|SASL|^TestWriter$/SASL|^TestClient(Alter|Incremental|Describe)Config"
"""Those of security and configuration. Of the others, some wait for seconds for members of groups, or need port 9092;
one calls what it hasn't set; and two want a topic to stay away that their own old request for metadata creates, here at
once, in Kafka a moment later."""

KGO: Final = "github.com/twmb/franz-go/pkg/kgo"
KGO_TESTS: Final = {
    "TestClient_Produce", "TestConsumeRegex", "TestGroupETL", "TestGroupSimple", "TestPing", "TestShareGroup",
    "TestTxnEtl", "Test848RegexBrokerResolves",
}  # fmt: skip


def test_kafka_go(tmp_path: Path) -> None:
    server = SecureKohort(tmp_path / "server", KAFKA_GO_SETTINGS)
    server.start()
    for name, password in KAFKA_GO_USERS.items():
        add_user(server.bootstrap, name, password)
    create_topic(AdminClient({"bootstrap.servers": server.bootstrap}), "test-writer-0")
    ports = {"9092": server.port, "9093": server.ports["SASL_PLAINTEXT"]}
    environment = {"KAFKA_VERSION": "4.2.0", "KAFKA_SKIP_NETTEST": "1"}
    passed, failed = set[str](), set[str]()
    copy = tmp_path / "kafka-go"
    module_file = at_other_ports(copy, ports)
    for package in (KAFKA_GO, f"{KAFKA_GO}/sasl"):
        program = tmp_path / f"{package.rpartition('/')[2]}.test"
        toolchains.go("test", "-c", f"-modfile={module_file}", "-o", str(program), package)
        outcome = ran(program, copy, environment, f"-test.run={KAFKA_GO_TESTS}")
        passed |= outcome[0]
        failed |= outcome[1]
    server.stop()
    assert failed == set()
    assert passed >= {
        "TestSASL",
        "TestClientDeleteACLs",
        "TestClientAlterClientQuotas",
        "TestDescribeUserScramCredentials",
    }


def at_other_ports(copy: Path, ports: Mapping[str, int]) -> Path:
    """Makes a copy of kafka-go whose tests look for a broker at other ports; the `go.mod` that has Go take it."""
    shutil.copytree(toolchains.go_sources(KAFKA_GO), copy, copy_function=shutil.copyfile)
    for folder in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
        folder.chmod(0o755)  # the module cache is for reading
    for path in copy.rglob("*_test.go"):
        text = path.read_text().replace('TCP("localhost")', 'TCP("localhost:9092")')
        path.write_text(re.sub(r"\b909[23]\b", lambda found: str(ports[found[0]]), text))
    ours, module_file = toolchains.HERE / "go", copy.with_suffix(".mod")
    module_file.write_text(f"{(ours / 'go.mod').read_text()}\nreplace {KAFKA_GO} => {copy}\n")
    shutil.copyfile(ours / "go.sum", copy.with_suffix(".sum"))
    return module_file


def ran(program: Path, sources: Path, environment: Mapping[str, str], *options: str) -> tuple[set[str], set[str]]:
    """Which tests of a program passed, and which failed."""
    done = subprocess.run(
        [program, "-test.v", f"-test.timeout={RUN_S}s", *options],
        cwd=sources, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=RUN_S + 10, check=False,
    )  # fmt: skip
    said = done.stdout.decode(errors="replace")
    sys.stdout.write(said[-20_000:])  # pytest shows it with a failure
    assert "panic: " not in said
    results = re.findall(r"^ *--- (PASS|FAIL): (\S+)", said, re.MULTILINE)
    passed, failed = ({name for result, name in results if result == wanted} for wanted in ("PASS", "FAIL"))
    return passed, failed


@pytest.mark.parametrize("mechanism", ["256", "512"])
def test_scram_of_franz_go(secured: SecureKohort, mechanism: str) -> None:
    environment = {
        "KGO_TEST_SCRAM_SEEDS": f"localhost:{secured.ports['SASL_PLAINTEXT']}",
        "KGO_TEST_SCRAM": f"{USER}:{PASSWORD}:{mechanism}",
    }
    passed, failed = kgo(secured.bootstrap, environment, "-test.run=^TestSCRAM")
    assert (passed, failed) == ({"TestSCRAMAuth", "TestSCRAMAuthBadCredentials"}, set())


def test_franz_go_with_a_certificate(secured: SecureKohort) -> None:
    pem = secured.house.client_pem
    environment = {"KGO_TEST_TLS": f"ca:{secured.house.ca},cert:{pem},key:{pem}"}
    seeds = f"localhost:{secured.ports['SSL']}"
    passed, failed = kgo(seeds, environment, f"-test.run=^({'|'.join(KGO_TESTS)})$")
    assert failed == set()
    assert passed >= KGO_TESTS


def kgo(seeds: str, environment: Mapping[str, str], *options: str) -> tuple[set[str], set[str]]:
    """Which tests of franz-go's passed, and which failed."""
    small = {"KGO_LOG_LEVEL": "none", "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": "1000", "KGO_TEST_MAX_TOPIC_PARTS": "3"}
    settings = {"KGO_SEEDS": seeds, **small, **environment}
    return ran(toolchains.go_tests(KGO), toolchains.go_sources(KGO), settings, *options)
