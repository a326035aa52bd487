"""`kohort doctor`, as a user calls it, and what it makes of what it sees."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509

from kohort.cli.client.load_program import load_program
from kohort.cli.diagnosis import machine
from kohort.cli.diagnosis.addresses import Answer, advertised_findings, ask, certificate_findings
from kohort.cli.diagnosis.cluster import clock_findings, topic_findings
from kohort.cli.diagnosis.finding import Finding, Level, as_lines
from kohort.cli.diagnosis.movements import movement_findings
from kohort.cli.diagnosis.program import compiled_findings, not_loaded, state_findings
from kohort.client.admin import Admin
from kohort.client.administration.cluster_info import Quorum, QuorumReplica
from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.client.config import ClientConfig
from kohort.client.types import Broker, PartitionInfo, TopicInfo, TopicPartition
from kohort.spark.errors import ProgramError
from kohort.spark.program.settings import AppSettings
from kohort.testing import broker as brokers
from tests.certificates import Certificates
from tests.cli.administering import Cluster, cluster
from tests.cli.support import invoke
from tests.cli.test_awaited_members import group, member


def levels(findings: Any) -> list[tuple[str, str]]:
    """The levels of findings, and the beginnings of what they say."""
    return [(each.level.value, each.what) for each in findings]


def worst(findings: Any) -> str:
    order = [*Level]
    return max((each.level for each in findings), key=order.index, default=Level.FINE).value


# The machine


class Usage(NamedTuple):
    free: int


def java(directory: Path, version: str) -> Path:
    """A JAVA_HOME whose java says that it is of this version."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return directory


def test_java_is_that_of_java_home_and_new_enough(tmp_path: Path) -> None:
    new, old = java(tmp_path / "new", "21.0.2"), java(tmp_path / "old", "1.8.0_402")
    (found,) = machine.java_findings({"JAVA_HOME": str(new)}, needed=True)
    assert (found.level, found.what) == (Level.FINE, f"Java 21: {new}/bin/java")
    (found,) = machine.java_findings({"JAVA_HOME": str(old)}, needed=True)
    assert found.level is Level.WRONG and found.what.endswith("is Java 8") and "17 or newer" in found.why
    (found,) = machine.java_findings({"JAVA_HOME": str(tmp_path)}, needed=True)
    assert found.level is Level.WRONG and found.what == f"JAVA_HOME={tmp_path} has no bin/java"
    (found,) = machine.java_findings({"PATH": str(tmp_path)}, needed=False)
    assert (found.level, found.what) == (Level.NOTE, "there is no Java")


@pytest.mark.parametrize(("free", "level"), [(10**12, "fine"), (10**9, "warning"), (10**6, "wrong")])
def test_little_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(free))
    monkeypatch.setattr("os.statvfs", lambda _: type("Files", (), {"f_files": 0, "f_favail": 0}))
    assert worst(machine.disk_findings(tmp_path / "not" / "yet", "stores")) == level


def out_of_sight(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Has nothing below a directory be looked at, as if it were another user's; root sees everything."""
    stat = os.stat

    def refuse(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if not isinstance(path, int) and directory in Path(os.fsdecode(path)).parents:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refuse)


def test_what_may_not_be_looked_at_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java(tmp_path / "theirs" / "java", "21.0.2")
    out_of_sight(monkeypatch, tmp_path / "theirs")
    (found,) = machine.java_findings({"JAVA_HOME": str(home)}, needed=True)
    assert found.what == f"JAVA_HOME={home} has no bin/java"
    assert machine.existing(home) == tmp_path / "theirs"
    assert [*state_findings(home, "app")]


def test_a_name_that_no_host_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "x" * 70)
    assert worst(machine.name_findings()) == "warning"
    answer = asyncio.run(ask(("a..b", 9092), ClientConfig(bootstrap_servers="a..b:9092")))
    assert answer.problem is not None and "can't be the name of a host" in answer.problem


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = [
        *machine.cache_findings({"XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "file" / "c")})
    ]
    assert [each.level for each in found] == [Level.FINE, Level.WARNING]
    assert "NUMBA_CACHE_DIR" in found[1].remedy


@pytest.mark.parametrize(
    ("soft", "hard", "level"), [(1024, 2048, "warning"), (1024, 2**20, "note"), (2**20, -1, "fine")]
)
def test_few_open_files_are_told(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, level: str) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (soft, hard))
    assert worst(machine.limit_findings()) == level


# The cluster


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


def about_the_cluster(at: Cluster, *options: str, code: int = 0) -> list[tuple[str, str]]:
    done = at.run("doctor", "--json", *options)
    assert done.exit_code == code, (done.stdout, done.stderr)
    return [(each["level"], each["what"]) for each in json.loads(done.stdout) if each["about"] == "cluster"]


@pytest.fixture(autouse=True)
def sound_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that runs the tests may lack what it likes."""
    monkeypatch.setattr(
        "kohort.cli.diagnosis.machine.machine_findings", lambda: iter([Finding("machine", Level.FINE, "x")])
    )


def test_a_cluster_that_is_well(at: Cluster) -> None:
    found = about_the_cluster(at)
    assert {level for level, _ in found} == {"fine"}
    assert any(f"can be reached at {at.servers}" in what for _, what in found)
    assert ("fine", "its clock and this machine's agree") in found
    assert "Nothing is wrong." in at.ok("doctor")


def test_what_is_switched_off_and_who_lags_without_members(tmp_path: Path) -> None:
    with cluster() as found:
        found.ok("features", "downgrade", "streams.version=0", "--yes")
        found.ok("topics", "create", "t")
        (tmp_path / "records").write_text("a\nb\n")
        found.ok("produce", "t", str(tmp_path / "records"), "--quiet")

        async def commit() -> None:
            async with Admin(found.servers) as admin:
                await admin.group_offsets.alter("left", {TopicPartition("t", 0): 0})

        asyncio.run(commit())
        said = about_the_cluster(found)
        assert ("warning", "streams groups are switched off (streams.version=0)") in said
        assert ("warning", "group left has no members, and 2 records to read") in said
        assert "kohort features upgrade streams.version=1" in found.ok("doctor")
        assert about_the_cluster(found, "--strict", code=1) == said


def test_an_address_that_leads_nowhere_or_elsewhere(at: Cluster) -> None:
    port = at.servers.rpartition(":")[2]
    for advertised, said in (
        ("127.0.0.1:1", "can't be reached there"),
        (f"127.0.0.1:{port}", "another cluster is there"),
    ):
        with brokers.Broker({"advertised.listeners": f"PLAINTEXT://{advertised}"}) as broker:
            found = about_the_cluster(Cluster(broker.bootstrap_servers), code=1)
            (what,) = [what for level, what in found if level == "wrong"]
            assert f"tells clients to come to {advertised}" in what and said in what


def test_localhost_is_told_to_be_whatever_machine_asks() -> None:
    nobody = {("localhost", 9092): Answer(problem="refused")}
    (found,) = advertised_findings("c", [Broker(1, "localhost", 9092)], nobody, [("kafka.example", 9092)])
    assert found.level is Level.WRONG and "localhost is whatever machine the client runs on" in found.remedy


def test_nobody_there_is_wrong_if_a_cluster_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.cli.client.options.DEFAULT_SERVERS", "127.0.0.1:1")
    monkeypatch.delenv("KOHORT_BOOTSTRAP_SERVERS", raising=False)
    done = invoke("doctor")
    assert (done.exit_code, "no cluster was named" in done.stdout) == (0, True), done.stdout
    done = invoke("doctor", servers="127.0.0.1:1")
    assert (done.exit_code, "1 thing wrong." in done.stdout) == (1, True), done.stdout


def topic(name: str, *partitions: PartitionInfo) -> TopicInfo:
    import uuid

    return TopicInfo(name, uuid.UUID(int=1), False, {each.partition: each for each in partitions})


def test_partitions_without_a_leader_and_with_few_replicas() -> None:
    fine, behind, offline = (
        PartitionInfo(0, 1, 0, (1, 2), (1, 2)),
        PartitionInfo(1, 1, 0, (1, 2), (1,)),
        PartitionInfo(2, None, 0, (2,), ()),
    )
    assert worst(topic_findings({"t": topic("t", fine)}, 2)) == "fine"
    found = levels(topic_findings({"t": topic("t", fine, behind, offline)}, 2))
    assert ("wrong", "1 partition without a leader: t-2") in found
    assert ("warning", "1 under-replicated partition: t-1") in found
    assert ("note", "1 topic with a single replica: t") in found


def test_a_group_that_does_not_move_is_stuck() -> None:
    def at(state: str, epoch: int) -> dict[str, GroupDescription]:
        return {"g": replace(group(GroupType.CONSUMER, state), epoch=epoch)}

    before = at("Reconciling", 3)
    assert worst(movement_findings([before, at("Reconciling", 3)], 3)) == "warning"
    assert worst(movement_findings([before, at("Reconciling", 4)], 3)) == "warning"
    assert worst(movement_findings([before, at("Stable", 3)], 3)) == "fine"


def test_who_is_only_to_get_something_is_not_to_be_looked_at() -> None:
    giving = replace(member("dan"), partitions=(TopicPartition("t", 0),), target=())
    coming = replace(member("eve"), partitions=(), target=(TopicPartition("t", 0),))
    looks = [{"g": replace(group(GroupType.CONSUMER, "Reconciling", (giving, coming)), epoch=3)}] * 2
    (stuck,) = movement_findings(looks, 6)
    assert "waiting for dan" in stuck.why and stuck.remedy.startswith("see what dan does now")


def test_of_a_streams_group_an_epoch_alone_is_a_note() -> None:
    """It rises with each task whose copy has caught up."""
    one, two = ({"g": replace(group(GroupType.STREAMS, "Stable"), epoch=epoch)} for epoch in (3, 4))
    assert worst(movement_findings([one, two], 6)) == "note"


@pytest.mark.parametrize(("seconds", "told"), [(6, True), (59.5, True), (60, False), (600, False)])
def test_who_has_watched_for_long_is_not_told_to_watch_for_longer(seconds: float, told: bool) -> None:
    one, two = ({"g": replace(group(GroupType.CONSUMER, "Stable"), epoch=epoch)} for epoch in (3, 4))
    (restless,) = movement_findings([one, two], seconds)
    (quiet,) = movement_findings([one, one], seconds)
    assert ("--watch-groups 60" in restless.remedy) == ("--watch-groups 60" in quiet.what) == told
    assert f"{seconds:g} s" in quiet.what
    assert "max.poll.interval.ms" in restless.remedy and "session timeout" in restless.remedy


def test_a_group_that_is_well_at_each_look_may_not_be() -> None:
    ann, bob, again = (
        replace(member(name), client_id=name[:3], host="/10.0.0.7") for name in ("ann-1", "bob-1", "bob-2")
    )

    def looks(*members: tuple[GroupMember, ...]) -> list[Finding]:
        described = (group(GroupType.CLASSIC, "Stable", some) for some in members)
        return [*movement_findings([{"g": replace(each, epoch=None)} if each.members else {} for each in described], 6)]

    assert {each.level for each in looks((ann, bob), (ann, bob))} == {"fine"}
    assert levels(looks((ann,), (ann, bob))) == [
        ("warning", "group g rebalances: its members or its epoch have changed within 6 s: bob at 10.0.0.7 came")
    ]
    flaps = "group g flaps: its members or its epoch have changed"
    both = "within 6 s: bob at 10.0.0.7 came and went"
    assert levels(looks((ann, bob), (ann, again))) == [("warning", f"{flaps} {both}")]
    assert levels(looks((bob,), (), (again,))) == [("warning", f"{flaps} 2 times {both}")]


@pytest.mark.parametrize(("apart", "level"), [(0, "fine"), (1_500, "fine"), (-60_000, "warning"), (60_000, "warning")])
def test_clocks_that_are_apart(apart: int, level: str) -> None:
    voter = QuorumReplica(1, 0, 10**12 + apart, 10**12 + apart)
    assert worst(clock_findings(Quorum(1, 0, 0, (voter,), ()), 10**12, 10**12)) == level


@pytest.mark.parametrize(("days", "level"), [(400, "fine"), (10, "warning"), (-1, "wrong")])
def test_certificates_that_end_soon(tmp_path: Path, days: int, level: str) -> None:
    certificates = Certificates(tmp_path)
    end = x509.load_pem_x509_certificate(certificates.cert.read_bytes()).not_valid_after_utc

    async def look() -> list[Finding]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificates.cert, certificates.key)
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        async with server:
            address = server.sockets[0].getsockname()
            config = ClientConfig(bootstrap_servers=[address], security_protocol="SSL", ssl_cafile=certificates.ca)
            return await certificate_findings([address], config, end - timedelta(days=days))

    assert [each.level.value for each in asyncio.run(look())] == [level]


# The program


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that a test loads are no modules of the next one."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    monkeypatch.setitem(sys.modules, "shop", sys)  # whatever is there afterwards goes
    monkeypatch.delitem(sys.modules, "shop")


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of who runs the tests may be full."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(10**12))
    monkeypatch.setattr("os.statvfs", lambda _: type("Files", (), {"f_files": 0, "f_favail": 0}))


def written(directory: Path, text: str) -> str:
    path = directory / "shop.py"
    path.write_text(f"from kohort.spark import StreamsApp\n{text}")
    return str(path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('app = StreamsApp("shop")', ""),
        ('StreamsApp("shop").run()\nraise SystemExit("too far")', ""),
        ('try:\n    StreamsApp("shop").run()\nexcept Exception:\n    pass\nraise SystemExit("too far")', ""),
        ('StreamsApp("shop").start()\nraise SystemExit("too far")', ""),
        ('import sys\nif len(sys.argv) == 1:\n    app = StreamsApp("shop")', ""),
        ('a, b = StreamsApp("other"), StreamsApp("shop")', ":b"),
        ('def make():\n    return StreamsApp("shop")', ":make"),
    ],
)
def test_a_program_is_loaded_but_not_run(tmp_path: Path, text: str, name: str) -> None:
    assert load_program(written(tmp_path, text) + name).settings.application_id == "shop"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no StreamsApp of its own"),
        ('a, b = StreamsApp("a"), StreamsApp("b")', "shop.py has several: a, b. Say which"),
    ],
)
def test_a_file_without_one_application_is_a_wrong_call(tmp_path: Path, text: str, said: str) -> None:
    done = invoke("doctor", written(tmp_path, text))
    assert done.exit_code == 2 and said in " ".join(done.stderr.split()), done.stderr


def test_a_program_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    done = invoke("doctor", written(tmp_path, "\n1 / 0\n"), "--json")
    assert done.exit_code == 1
    assert "ZeroDivisionError: division by zero, at" in done.stdout and "shop.py:3" in done.stdout
    assert not_loaded("x.py", ValueError("no")).what == "x.py can't be loaded: ValueError: no"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('import json\njson.loads("{")\n', ValueError, "shop.py:3"),
        ('app = StreamsApp("shop", no_such=1)\n', ProgramError, "shop.py:2"),
        ("\napp = (\n", SyntaxError, "SyntaxError: '(' was never closed, at {place}:3"),
    ],
)
def test_the_line_is_the_program_s_own(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    place = written(tmp_path, text)
    with pytest.raises(error) as raised:
        load_program(place)
    assert not_loaded(place, raised.value).what.endswith(said.format(place=place))


def test_what_a_program_prints_is_not_of_the_report(tmp_path: Path) -> None:
    done = invoke("doctor", written(tmp_path, 'print("hello")\n1 / 0\n'), "--json")
    assert json.loads(done.stdout) and "hello" in done.stderr


def test_a_program_says_its_cluster_itself(tmp_path: Path) -> None:
    for option in ("--cluster", "--bootstrap-server", "--config"):
        done = invoke("doctor", written(tmp_path, 'app = StreamsApp("shop")'), option, "x:1")
        assert done.exit_code == 2 and "leave out --bootstrap-server" in done.stderr


class Uncompilable:
    """An application of which compiling fails, in whatever way."""

    def __init__(self, error: Exception) -> None:
        self.settings = AppSettings.of("shop", "localhost:1")
        self._queues: list[object] = []
        self._error = error

    def compile(self, _: object) -> None:
        raise self._error


def test_what_compiling_fails_with_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    application: Any = Uncompilable(ZeroDivisionError("by zero\n  at a.b.C"))
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "java", "21.0.2")))
    (found,), whole = compiled_findings(application, "shop.py")
    assert (found.level, whole) == (Level.WRONG, None)
    assert found.what.startswith("shop can't be compiled: ZeroDivisionError: by zero, at ")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (found,), whole = compiled_findings(application, "shop.py")
    assert (found.what, found.level, whole) == ("shop can't be compiled here", Level.WRONG, None)


@pytest.mark.usefixtures("roomy")
def test_a_state_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert worst(state_findings(tmp_path / "file", "app")) == "wrong"
    assert worst(state_findings(tmp_path / "state", "app")) in ("fine", "note")


@pytest.mark.long
@pytest.mark.usefixtures("roomy")
def test_a_program_is_compared_with_its_cluster(at: Cluster, tmp_path: Path) -> None:
    """Spark compiles it: what is missing is told, and what fits."""
    text = (
        f'app = StreamsApp("shop", bootstrap_servers="{at.servers}", state_dir="{tmp_path}")\n'
        'app.stream("orders", schema="id STRING", key="id").to("copies")\napp.run()\n'
    )
    place = written(tmp_path, text)
    done = invoke("doctor", place)
    assert done.exit_code == 1 and "create orders copies" in " ".join(done.stdout.split()), (done.stdout, done.stderr)
    at.ok("topics", "create", "orders", "copies", "--partitions", "2")
    done = invoke("doctor", place)
    assert done.exit_code == 0 and "orders (2)" in done.stdout, (done.stdout, done.stderr)


def test_findings_are_sentences_under_a_heading() -> None:
    lines = as_lines([Finding("machine", Level.FINE, "a"), Finding("cluster", Level.WRONG, "b", "why", "do")])
    texts = ["".join(text for text, _ in line) for line in lines]
    assert texts == ["The machine", "fine     a", "", "The cluster", "wrong    b", "         why", "         -> do"]
