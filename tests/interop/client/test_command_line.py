"""The commands as users type them. With Kohort's broker alone tests/cli has each of them, too."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kohort.client import ClientConfig, StreamsMember
from kohort.client.streams_member import Assigned, InternalTopic, Subtopology, Topology

from ...marks import long
from ...waiting import eventually, run
from ..secured import PASSWORD, USER, SecureServer
from ..servers import Server
from .records import numbered, write

NewName = Callable[[], str]
KAFKA = long("kafka")
"""For what a command does with Apache Kafka as with Kohort, where tests/cli has it: many starts of `kohort`."""


@pytest.fixture
def kohort(tmp_path: Path) -> Callable[..., str]:
    """Runs a command of a shell in which `kohort` is ours and KOHORT_BOOTSTRAP_SERVERS is set; gives what it prints."""

    def command(line: str, bootstrap: str, fails: bool = False) -> str:
        tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=os.environ | tools | {"KOHORT_BOOTSTRAP_SERVERS": bootstrap},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode != 0) == fails, f"{line}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stderr if fails else done.stdout

    return command


def test_a_topic_written_read_and_looked_at(
    kohort: Callable[..., str], broker: Server, new_name: NewName, tmp_path: Path
) -> None:
    topic, group, bootstrap = new_name(), new_name(), broker.bootstrap
    lines = [f"line {n}, größe" for n in range(1000)]
    (tmp_path / "FILE").write_text("".join(f"{line}\n" for line in lines))
    kohort(f"kohort topics create {topic} --partitions 4", bootstrap)
    assert topic in kohort("kohort topics list", bootstrap)
    kohort(f"kohort produce {topic} < FILE", bootstrap)
    read = kohort(f"kohort consume {topic} --from-beginning --exit --group {group}", bootstrap)
    assert sorted(read.splitlines()) == sorted(lines)
    assert kohort(f"kohort consume {topic} --from-beginning --exit --group {group}", bootstrap) == ""


@pytest.mark.parametrize("broker", KAFKA, indirect=True)
def test_a_group_looked_at_and_reset(
    kohort: Callable[..., str], broker: Server, new_topic: Callable[..., str], new_name: NewName, tmp_path: Path
) -> None:
    topic, group, bootstrap = new_topic(2), new_name(), broker.bootstrap
    write(bootstrap, topic, numbered(2, 500))
    kohort(f"kohort consume {topic} --exit --group {group} --group-protocol consumer", bootstrap)
    assert group in kohort("kohort groups list", bootstrap)
    described = json.loads(kohort(f"kohort groups describe {group} --json", bootstrap))
    assert group in json.dumps(described)
    kohort(f"kohort groups reset-offsets {group} --topic {topic} --to-earliest --execute", bootstrap)
    again = kohort(f"kohort consume {topic} --exit --group {group} --format json", bootstrap)
    assert len({(place["partition"], place["offset"]) for place in map(json.loads, again.splitlines())}) == 1000
    kohort(f"kohort consume {topic} --from-beginning --exit --format parquet --output out.parquet", bootstrap)
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1000
    kohort(f"kohort groups delete {group} --yes", bootstrap)
    kohort(f"kohort topics delete {topic} --yes", bootstrap)
    assert topic not in kohort("kohort topics list", bootstrap)


@pytest.mark.parametrize("broker", KAFKA, indirect=True)
def test_a_share_group_hands_out_each_record_once(
    kohort: Callable[..., str], broker: Server, new_topic: Callable[..., str], new_name: NewName
) -> None:
    """What is released comes again, what is accepted doesn't; then the group is looked at, reset and deleted."""
    topic, group, bootstrap = new_topic(2), new_name(), broker.bootstrap
    write(bootstrap, topic, numbered(2, 50))
    kohort(f"kohort configs alter group {group} --set share.auto.offset.reset=earliest", bootstrap)
    consume = f"kohort consume {topic} --share-group {group} --format json"
    assert len(kohort(f"{consume} -n 3 --acknowledge release", bootstrap).splitlines()) == 3
    places = [
        (each["partition"], each["offset"])
        for each in map(json.loads, kohort(f"{consume} --exit", bootstrap).splitlines())
    ]
    assert sorted(places) == [(partition, offset) for partition in range(2) for offset in range(50)]
    assert kohort(f"{consume} --exit", bootstrap) == ""
    (described,) = json.loads(kohort(f"kohort groups describe {group} --json", bootstrap))
    assert (described["type"], described["state"]) == ("share", "Empty")
    assert [each["lag"] for each in described["offsets"]] == [0, 0]
    kohort(f"kohort groups reset-offsets {group} --topic {topic} --to-earliest --execute", bootstrap)
    assert len(kohort(f"{consume} --exit", bootstrap).splitlines()) == 100
    kohort(f"kohort groups delete {group} --yes", bootstrap)
    assert group not in kohort("kohort groups list", bootstrap)


def test_options_of_other_ways_to_read_are_refused(kohort: Callable[..., str]) -> None:
    said = kohort("kohort consume t --share-group g --group h --from-beginning", "localhost:1", fails=True)
    assert "--share-group excludes --group, --from-beginning" in said and "share.auto.offset.reset" in said


def test_what_went_wrong_is_said(kohort: Callable[..., str], broker: Server, new_name: NewName) -> None:
    assert "there is no topic" in kohort(
        f"kohort topics describe {new_name()} --timeout 3", broker.bootstrap, fails=True
    )
    said = kohort("kohort topics list --timeout 1", "localhost:1", fails=True)
    assert "localhost:1" in said and "Traceback" not in said


def secured(
    server: SecureServer, directory: Path, user: str = USER, password: str = PASSWORD, file: str = "client.properties"
) -> tuple[str, str]:
    """Where the listener with TLS and SASL is, and the option that lets a user in."""
    (directory / file).write_text(
        f"""
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={server.house.ca}
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="{user}" password="{password}";
"""
    )
    return f"localhost:{server.ports['SASL_SSL']}", f"--config {file}"


@pytest.mark.parametrize("secure_server", ["kohort", *KAFKA], indirect=True)
def test_security_settings_come_from_a_file(
    kohort: Callable[..., str], secure_server: SecureServer, tmp_path: Path
) -> None:
    bootstrap, config = secured(secure_server, tmp_path)
    kohort(f"kohort topics create by-command --partitions 1 {config}", bootstrap)
    kohort(f"echo hello | kohort produce by-command {config}", bootstrap)
    assert kohort(f"kohort consume by-command --from-beginning --exit {config}", bootstrap) == "hello\n"


@pytest.mark.parametrize("secure_server", KAFKA, indirect=True)
def test_users_and_what_they_may_do(kohort: Callable[..., str], secure_server: SecureServer, tmp_path: Path) -> None:
    """A reader is made, given rules, held to them, and taken away again."""
    bootstrap, config = secured(secure_server, tmp_path)
    _, as_reader = secured(secure_server, tmp_path, "reader", "a-password", "reader.properties")
    kohort(f"echo a-password | kohort users set reader --password-file - {config}", bootstrap)
    assert "reader" in {each["name"] for each in json.loads(kohort(f"kohort users list --json {config}", bootstrap))}
    kohort(f"kohort topics create ruled-1 --partitions 1 {config}", bootstrap)
    kohort(f"echo hello | kohort produce ruled-1 {config}", bootstrap)
    added = kohort(f"kohort acls add User:reader read describe --topic ruled- --prefixed {config}", bootstrap)
    assert "added: allow User:reader to read topics that begin with ruled-" in added
    kohort(f"kohort acls add User:reader write --topic ruled-1 --deny {config}", bootstrap)

    def rules(options: str = "") -> list[tuple[str, str, str]]:
        found = json.loads(kohort(f"kohort acls list --json {options} {config}", bootstrap))
        return sorted((rule["permission"], rule["operation"], rule["pattern"]) for rule in found)

    wanted = [("allow", "describe", "prefixed"), ("allow", "read", "prefixed"), ("deny", "write", "literal")]
    covering = "--topic ruled-1 --covering --principal User:reader"
    eventually(lambda: rules(covering) == wanted, what="the rules are listed")
    assert rules("--topic ruled-1") == [("deny", "write", "literal")]
    assert kohort(f"kohort consume ruled-1 --from-beginning --exit {as_reader}", bootstrap) == "hello\n"
    denied = kohort(f"echo no | kohort produce ruled-1 --timeout 10 {as_reader}", bootstrap, fails=True)
    assert "TOPIC_AUTHORIZATION_FAILED" in denied
    kohort(f"kohort acls remove User:reader --topic ruled-1 --yes {config}", bootstrap)
    removed = kohort(f"kohort acls remove User:reader read --topic ruled- --prefixed --yes {config}", bootstrap)
    assert removed == "removed: allow User:reader to read topics that begin with ruled-\n"
    eventually(lambda: rules() == [("allow", "describe", "prefixed")], what="one rule is left")
    kohort(f"kohort acls remove User:reader --topic ruled- --prefixed --yes {config}", bootstrap)
    kohort(f"kohort users delete reader --yes {config}", bootstrap)
    described = f"kohort users list --json {config}"
    eventually(lambda: "reader" not in kohort(described, bootstrap), what="the reader is gone")
    assert "uthentication" in kohort(f"kohort topics list --timeout 5 {as_reader}", bootstrap, fails=True)


@pytest.mark.parametrize("broker", KAFKA, indirect=True)
def test_quotas(kohort: Callable[..., str], broker: Server) -> None:
    bootstrap = broker.bootstrap
    kohort("kohort quotas set --user alice producer_byte_rate=1048576 request_percentage=12.5", bootstrap)
    kohort("kohort quotas set --user alice --default-client-id consumer_byte_rate=2000", bootstrap)
    kohort("kohort quotas set --default-client-id controller_mutation_rate=5000", bootstrap)
    kohort("kohort quotas set --ip 10.0.0.7 connection_creation_rate=20", bootstrap)

    def listed(options: str = "") -> list[object]:
        return list(json.loads(kohort(f"kohort quotas list --json {options}", bootstrap)))

    of_alice = {"user": "alice", "quotas": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}}
    of_her_clients = {"user": "alice", "client_id": None, "quotas": {"consumer_byte_rate": 2000.0}}
    of_clients = {"client_id": None, "quotas": {"controller_mutation_rate": 5000.0}}
    of_address = {"ip": "10.0.0.7", "quotas": {"connection_creation_rate": 20.0}}
    eventually(lambda: listed() == [of_her_clients, of_alice, of_clients, of_address], what="all quotas are listed")
    assert listed("--user alice") == [of_her_clients, of_alice]
    assert listed("--default-client-id") == [of_her_clients, of_clients]
    kohort("kohort quotas remove --user alice request_percentage --yes", bootstrap)
    for entity in ("--user alice", "--user alice --default-client-id", "--default-client-id", "--ip 10.0.0.7"):
        kohort(f"kohort quotas remove {entity} --yes", bootstrap)
    eventually(lambda: listed() == [], what="no quotas are listed")
    assert "producer_bite_rate" in kohort("kohort quotas set --user alice producer_bite_rate=1", bootstrap, fails=True)


async def assigned(member: StreamsMember) -> None:
    """Waits until a member has its tasks."""
    async for event in member:
        if isinstance(event, Assigned):
            return


@pytest.mark.parametrize("broker", ["kohort", *KAFKA], indirect=True)
def test_a_streams_application_is_reset(
    kohort: Callable[..., str], broker: Server, new_topic: Callable[..., str], new_name: NewName
) -> None:
    """Refused while it has a member; then its changelog and its group go, and its source stays."""
    topic, app, bootstrap = new_topic(2), new_name(), broker.bootstrap
    topology = Topology(
        {"0": Subtopology(source_topics=[topic], changelogs=[InternalTopic(f"{app}-counts-changelog")])}
    )
    reset = f"kohort apps reset {app} --yes"

    async def refused() -> str:
        async with StreamsMember(bootstrap, app, topology, held_heartbeats=True) as member:
            await assigned(member)
            return await asyncio.to_thread(kohort, reset, bootstrap, True)

    assert f"{app} has 1 member: stop all instances first" in run(refused())
    eventually(lambda: '"Empty"' in kohort(f"kohort groups describe {app} --json", bootstrap), what="it has left")
    planned = json.loads(kohort(f"{reset} --dry-run --json", bootstrap))
    assert (planned["topics"], planned["topics_by_name"]) == ([f"{app}-counts-changelog"], [])
    kohort(reset, bootstrap)
    topics = kohort("kohort topics list", bootstrap)
    assert f"{app}-counts-changelog" not in topics
    assert topic in topics
    assert app not in kohort("kohort groups list", bootstrap)


@pytest.mark.parametrize("secure_server", ["kohort", *KAFKA], indirect=True)
def test_a_streams_group_behind_tls_and_sasl_is_placed(
    kohort: Callable[..., str], secure_server: SecureServer, tmp_path: Path
) -> None:
    bootstrap, config = secured(secure_server, tmp_path)
    kohort(f"kohort topics create to-place --partitions 3 {config}", bootstrap)
    topology = Topology({"0": Subtopology(source_topics=["to-place"])})
    settings = ClientConfig.from_file(tmp_path / "client.properties", bootstrap_servers=bootstrap)[0]

    async def placed() -> str:
        async with StreamsMember(settings, "placed", topology) as member:
            await assigned(member)
            command = f"kohort place --from-group placed --what-if add=2 --json {config}"
            return await asyncio.to_thread(kohort, command, bootstrap)

    found = json.loads(run(placed()))
    assert [len(member["active"].get("0", ())) for member in found["now"]["members"].values()] == [3]
    assert sorted(len(each["active"]["0"]) for each in found["assignors"]["optimal"]["members"].values()) == [1, 1, 1]


@pytest.mark.parametrize("broker", ["kohort", *KAFKA], indirect=True)
def test_what_takes_room_what_is_wrong_and_how_fast_it_is(
    kohort: Callable[..., str], broker: Server, new_topic: Callable[..., str]
) -> None:
    topic, bootstrap = new_topic(2), broker.bootstrap
    measured = json.loads(kohort(f"kohort perf produce {topic} --records 2000 --size 50 --json", bootstrap))
    assert (measured["records"], measured["lost"]) == (2000, 0)
    assert json.loads(kohort(f"kohort perf consume {topic} --json", bootstrap))["records"] == 2000
    assert json.loads(kohort(f"kohort perf e2e {topic} --records 20 --json", bootstrap))["records"] == 20
    directories = json.loads(kohort(f"kohort logdirs {topic} --json", bootstrap))
    sizes = [each["size_bytes"] for directory in directories for each in directory["partitions"]]
    assert len(sizes) == 2 and sum(sizes) > 2000 * 50
    looked = json.loads(kohort("kohort doctor --json || true", bootstrap))  # the machine may lack something
    found = [(each["level"], each["what"]) for each in looked if each["about"] == "cluster"]
    assert any(f"can be reached at {bootstrap}" in what for _, what in found), found
    assert ("fine", "its clock and this machine's agree") in found
    assert not any("can't be looked at" in what for _, what in found), found
