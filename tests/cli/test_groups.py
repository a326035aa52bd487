"""`kohort groups`, as a user calls it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.cli.diagnosis.cluster import cluster_findings
from kohort.cli.diagnosis.finding import Finding, Level
from kohort.client.admin import Admin
from kohort.client.config import ClientConfig
from kohort.client.consumer import Consumer
from kohort.client.producer import Producer
from kohort.client.share_consumer import ShareConsumer
from kohort.client.types import ShareRecord, TopicPartition
from kohort.short_names import short_names
from tests.cli.administering import Cluster, cluster, rows
from tests.client.administration.members import join_classic, join_streams, write_at

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MINUTE = 60_000


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        found.ok("topics", "create", "t", "--partitions", "2")
        asyncio.run(write_at(found.servers, T0, [MINUTE, 2 * MINUTE, 3 * MINUTE]))
        yield found


@pytest.fixture(autouse=True)
def clean(at: Cluster) -> Iterator[None]:
    yield
    for group in at.json("groups", "list"):
        at.ok("groups", "remove-members", group["group_id"], "--all")
        at.ok("groups", "delete", group["group_id"])


def commit(at: Cluster, group: str, offsets: dict[TopicPartition, int]) -> None:
    async def whole() -> None:
        async with Admin(at.servers) as admin:
            await admin.group_offsets.alter(group, offsets)

    asyncio.run(whole())


def committed(at: Cluster, group: str) -> dict[int, int]:
    (described,) = at.json("groups", "describe", group)
    return {each["partition"]: each["committed"] for each in described["offsets"]}


def test_a_classic_group(at: Cluster) -> None:
    member = asyncio.run(join_classic(at.servers, "g", T0))
    assert rows(at.ok("groups", "list"))[1] == ["g", "classic", "Stable", "consumer", "1"]
    shown = at.ok("groups", "describe", "g")
    assert "g: classic group, Stable, 1 member\n" in shown
    assert [member, "kohort", "127.0.0.1", "t: 0"] in rows(shown)
    assert ["t", "0", "-", "3", "-", "3", f"{member[:12]}…"] in rows(shown)
    assert f"did you mean {member!r}?" in at.fails("groups", "remove-members", "g", "--member", member[:9])
    assert at.ok("groups", "remove-members", "g", "--member", member) == f"removed {member}\n"
    asyncio.run(join_classic(at.servers, "g", T0))
    assert "no such client: 'kohor'; did you mean 'kohort'?" in at.fails(
        "groups", "remove-members", "g", "--client", "kohor"
    )
    assert "removed kohort-" in at.ok("groups", "remove-members", "g", "--client", "kohort")
    assert at.ok("groups", "list", "--type", "streams") == ""
    assert [group["group_id"] for group in at.json("groups", "list", "--state", "empty")] == ["g"]


def test_the_lag_of_a_streams_group_ends_at_open_transactions(at: Cluster) -> None:
    """As the application's own does, which reads what is committed. Other groups are counted as Kafka's tools do."""

    async def ends() -> list[int]:
        async with Producer(at.servers, transactional_id="open") as producer:
            await producer.begin_transaction()
            await (await producer.send("u", b"x", partition=0))
            found = []
            for group in ("app", "g"):
                (described,) = await asyncio.to_thread(at.json, "groups", "describe", group)
                found += [each["end"] for each in described["offsets"] if each["partition"] == 0]
            await producer.abort_transaction()
            return found

    at.ok("topics", "create", "u", "--partitions", "2")
    asyncio.run(join_streams(at.servers, "app", "u"))
    asyncio.run(join_classic(at.servers, "g", TopicPartition("u", 0)))
    assert asyncio.run(ends()) == [0, 1]


def test_a_streams_group_shows_tasks_by_role(at: Cluster) -> None:
    member = asyncio.run(join_streams(at.servers, "app", "t"))
    shown = at.ok("groups", "describe", "app")
    assert "app: streams group, Stable, 1 member\n" in shown
    assert "topology epoch 0" in shown
    (line,) = [row for row in rows(shown) if row[0] == member]
    assert line[-2:] == ["process", "0: 0-1"]
    (described,) = at.json("groups", "describe", "app")
    assert described["members"][0]["streams"]["tasks"] == {"active": {"0": [0, 1]}, "standby": {}, "warmup": {}}
    assert described["topology"][0]["changelog_topics"] == ["app-store-changelog"]
    assert [each["members"] for each in described["offsets"]] == [[member], [member]]
    assert described["epoch"] == described["assignment_epoch"]


def test_offsets_and_lag_add_up(at: Cluster) -> None:
    commit(at, "g", {T0: 1, T1: 0})
    shown = rows(at.ok("groups", "describe", "g"))
    assert ["t", "0", "1", "3", "2", "-"] in shown
    assert ["in all", "2"] in shown


def test_what_nothing_is_committed_for_is_shown_beside_the_lag(at: Cluster) -> None:
    """Whether it will be read is up to where the group's members begin."""
    asyncio.run(join_classic(at.servers, "g", T0))
    at.ok("groups", "remove-members", "g", "--all")
    commit(at, "g", {T1: 0})  # of a group of consumers, which read whole topics
    shown = at.ok("groups", "describe", "g")
    assert rows(shown)[2:] == [
        ["Topic", "Partition", "Committed", "End", "Lag", "Without a commit", "Member"],
        ["t", "0", "-", "3", "-", "3", "-"],
        ["t", "1", "0", "0", "0", "-", "-"],
        ["in all", "0", "3"],
        [
            "1 partition without a commit has 3 records: members with auto.offset.reset=earliest read them, "
            "others begin at the end"
        ],
    ]
    (described,) = at.json("groups", "describe", "g")
    assert [(each["lag"], each["uncommitted"]) for each in described["offsets"]] == [(None, 3), (0, None)]


def test_what_a_streams_group_lacks_is_the_same_without_members(at: Cluster) -> None:
    """A rebalance takes tasks away and gives them; what is unread stays."""

    def lacking() -> list[tuple[str, int]]:
        (described,) = at.json("groups", "describe", "app")
        return [(f"{each['topic']}-{each['partition']}", each["uncommitted"]) for each in described["offsets"]]

    asyncio.run(join_streams(at.servers, "app", "t"))
    with_members = lacking()
    at.ok("groups", "remove-members", "app", "--all", "--yes")
    assert with_members == lacking() == [("t-0", 3), ("t-1", 0)]
    assert "has 3 records: a streams application reads them" in at.ok("groups", "offsets", "app")
    (app,) = at.json("apps", "list")
    assert (app["lag"], app["inputs"][0]["uncommitted"]) == (3, 3)


def test_a_reset_is_shown_and_only_done_when_told(at: Cluster, tmp_path: Path) -> None:
    commit(at, "g", {T0: 1, T1: 0})
    shown = at.run("groups", "reset-offsets", "g", "--to-latest")
    assert ["t", "0", "1", "3", "skips 2"] in rows(shown.stdout)
    assert rows(shown.stdout)[-1] == ["in all", "skips 2"]
    assert "--execute does it" in shown.stderr and "there is no group" not in shown.stderr
    assert "refused" not in shown.stderr
    assert committed(at, "g") == {0: 1, 1: 0}
    at.ok("groups", "reset-offsets", "g", "--to-latest", "--execute")
    assert committed(at, "g") == {0: 3, 1: 0}
    at.ok("groups", "reset-offsets", "g", "--shift-by", "-1", "--topic", "t:0", "--execute")
    assert committed(at, "g") == {0: 2, 1: 0}
    file = tmp_path / "offsets.csv"
    exported = at.run("groups", "reset-offsets", "g", "--to-current", "--export", str(file))
    assert f"the new offsets are in {file}" in exported.stderr.replace("\n", "")
    assert file.read_text() == "t,0,2\nt,1,0\n"
    when = at.json("groups", "reset-offsets", "g", "--to-datetime", "1970-01-01T00:01:30", "--topic", "t")
    assert when["executed"] is False
    assert [each["after"] for each in when["offsets"]] == [1, 0]
    long_ago = at.json("groups", "reset-offsets", "g", "--by-duration", "P99999D", "--topic", "t:0")
    assert long_ago["offsets"][0]["after"] == 0
    at.ok("groups", "reset-offsets", "g", "--to-earliest", "--execute")
    assert committed(at, "g") == {0: 0, 1: 0}
    at.ok("groups", "reset-offsets", "g", "--from-file", str(file), "--execute")
    assert committed(at, "g") == {0: 2, 1: 0}
    assert "reads 1 again" in at.ok("groups", "reset-offsets", "g", "--shift-by", "-1", "--topic", "t:0")
    mistyped = at.run("groups", "reset-offsets", "gg", "--to-latest", "--topic", "t:0")
    assert "there is no group 'gg' yet: this makes it; did you mean 'g'?" in mistyped.stderr
    assert at.json("groups", "reset-offsets", "new", "--to-offset", "9", "--topic", "t:0", "--execute")["offsets"] == [
        {"topic": "t", "partition": 0, "before": None, "after": 3, "note": "9 is after the end", "skipped": 0}
    ]


def test_a_reset_that_moves_nothing_or_one_partition_has_no_total(at: Cluster) -> None:
    commit(at, "g", {T0: 1, T1: 0})
    assert not [row for row in rows(at.ok("groups", "reset-offsets", "g", "--to-current")) if row[0] == "in all"]
    assert "in all" not in at.ok("groups", "reset-offsets", "g", "--to-latest", "--topic", "t:0")


def test_records_that_are_deleted_are_not_skipped(at: Cluster) -> None:
    short = TopicPartition("short", 0)
    at.ok("topics", "create", "short")
    try:
        asyncio.run(write_at(at.servers, short, [MINUTE, 2 * MINUTE, 3 * MINUTE]))
        at.ok("topics", "delete-records", "short", "--before", "2", "--yes")
        commit(at, "g", {short: 0})
        assert ["short", "0", "0", "3", "skips 1"] in rows(at.ok("groups", "reset-offsets", "g", "--to-latest"))
        assert ["short", "0", "0", "2", "skips 0"] in rows(at.ok("groups", "reset-offsets", "g", "--to-earliest"))
        assert at.json("groups", "reset-offsets", "g", "--to-latest")["offsets"][0]["skipped"] == 1
    finally:
        at.ok("topics", "delete", "short", "--yes")


def test_a_reset_that_cannot_be_worked_out_changes_nothing(at: Cluster) -> None:
    commit(at, "g", {T0: 1})
    done = at.run("groups", "reset-offsets", "g", "--to-latest", "--topic", "t:0,7", "--execute")
    assert done.exit_code == 1
    assert "t-7: t has 2 partitions" in done.stderr
    assert "done" not in done.stderr
    assert committed(at, "g") == {0: 1}


def test_members_have_short_names_that_tell_them_apart() -> None:
    assert short_names(["rdkafka-0001-aaaaaa", "rdkafka-0001-abbbbb", "me"]) == {
        "rdkafka-0001-aaaaaa": "rdkafka-0001-aa…",
        "rdkafka-0001-abbbbb": "rdkafka-0001-ab…",
        "me": "me",
    }
    assert short_names(["0123456789abc", "0123456789abcd"[:13]]) == {"0123456789abc": "0123456789abc"}


def test_offsets_are_forgotten(at: Cluster) -> None:
    commit(at, "g", {T0: 1, T1: 0})
    assert at.ok("groups", "delete-offsets", "g", "--topic", "t:1") == "deleted the offsets of g in t-1\n"
    assert committed(at, "g") == {0: 1}
    assert "no such offsets" in at.fails("groups", "delete-offsets", "g", "--topic", "t:1")


def test_a_group_that_is_active_is_left_alone(at: Cluster) -> None:
    asyncio.run(join_classic(at.servers, "words", T0))
    reset = ["groups", "reset-offsets", "words", "--to-latest", "--topic", "t:0"]
    assert at.json(*reset)["offsets"][0]["after"] == 3  # to look at, it need not be stopped
    told = " ".join(at.run(*reset).stderr.split())
    assert "now --execute would be refused: group words is Stable, and has 1 member: kohort at 127.0.0.1" in told
    has = "is Stable, and has 1 member: kohort at 127.0.0.1; stop them first"
    for call in ([*reset, "--execute"], ["groups", "delete", "words"]):
        said = at.fails(*call)
        assert f"group words {has}" in said and "remove-members words --all (NON_EMPTY_GROUP)" in said
    commit(at, "other", {T0: 1})
    assert f"error: words: it {has}" in at.fails("groups", "delete", "words", "other")
    assert "has no such member: 'nobody' (see" in at.fails("groups", "remove-members", "words", "--instance", "nobody")
    assert "did you mean 'words'?" in at.fails("groups", "describe", "WRODS")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reset-offsets", "g"], "where to? One of --to-earliest"),
        (["reset-offsets", "g", "--to-latest", "--to-offset", "3"], "not --to-latest and --to-offset"),
        (["reset-offsets", "g", "--to-datetime", "noon"], "a time such as"),
        (["reset-offsets", "g", "--by-duration", "soon"], "a duration is wanted"),
        (["reset-offsets", "g", "--from-file", "/none"], "can't read /none"),
        (["reset-offsets", "g", "--to-offset", "abc"], "--to-offset abc: an offset is wanted, a whole number"),
        (["reset-offsets", "g", "--to-offset", "-1"], "--to-offset -1: an offset is wanted, a whole number"),
        (["reset-offsets", "g", "--shift-by", "1.5"], "--shift-by 1.5: a number of records is wanted"),
        (["lag"], "there is no command 'lag'; kohort groups offsets GROUP shows it"),
        (["delete-offsets", "g"], "Give --topic"),
        (["remove-members", "g"], "which members?"),
        (["list", "--type", "odd"], "one of classic, consumer, streams, share is wanted"),
        (["list", "--state", "Rebalancing"], "one of Stable, Empty, Assigning, Reconciling, PreparingRebalance"),
        (["billing"], "there is no command 'billing'; to see a group: kohort groups describe billing"),
        (["descrive"], "Did you mean 'describe'?"),
    ],
)
def test_wrong_calls(at: Cluster, arguments: list[str], said: str) -> None:
    assert said in at.fails("groups", *arguments, code=2)


def test_a_file_of_offsets_is_checked(at: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    for text, said in (("t,0,1\nt;1\n", "line 2: topic,partition,offset is wanted"), ("", "holds no offsets")):
        file.write_text(text)
        assert said in at.fails("groups", "reset-offsets", "g", "--from-file", str(file), code=2)
    file.write_text("t,0,1\n")
    assert "leave out --topic" in at.fails(
        "groups", "reset-offsets", "g", "--from-file", str(file), "--topic", "t", code=2
    )


def test_watching_goes_on_until_it_is_interrupted(at: Cluster) -> None:
    commit(at, "g", {T0: 1})
    watching = subprocess.Popen(
        [sys.executable, "-m", "kohort.cli", "groups", "describe", "g", "--json", "--watch", "0.1"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"KOHORT_BOOTSTRAP_SERVERS": at.servers},
    )
    with watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        commit(at, "g", {T0: 2})
        while json.loads(watching.stdout.readline())[0]["offsets"][0]["committed"] != 2:
            pass
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 0
    assert first[0]["offsets"][0]["committed"] == 1


def test_in_a_pipe_each_picture_has_its_time(at: Cluster) -> None:
    commit(at, "g", {T0: 1})
    watching = subprocess.Popen(
        [sys.executable, "-m", "kohort.cli", "groups", "describe", "g", "--watch", "0.1"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"KOHORT_BOOTSTRAP_SERVERS": at.servers},
    )
    with watching:
        assert watching.stdout is not None
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", watching.stdout.readline())
        assert watching.stdout.readline().startswith("g: classic group, Empty")
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait(10) == 0


def test_a_subscription_to_what_is_not_there() -> None:
    """The group is Stable, and reads nothing: describe and doctor say which topic may have been meant."""

    async def look(at: Cluster) -> tuple[str, Any, list[Finding]]:
        config = ClientConfig(bootstrap_servers=at.servers, client_id="kay")
        async with Consumer(config, group_id="misled", group_protocol="consumer") as consumer, Admin(config) as admin:
            consumer.subscribe("ordrs")
            while not await admin.groups.list(types=["consumer"], states=["Stable"]):
                await asyncio.sleep(0.05)
            shown = await asyncio.to_thread(at.ok, "groups", "describe", "misled")
            (described,) = await asyncio.to_thread(at.json, "groups", "describe", "misled")
            return shown, described, await cluster_findings(config, named=True, timeout=10, watch_s=0)

    with cluster({"auto.create.topics.enable": "false"}) as at:
        at.ok("topics", "create", "orders")
        shown, described, findings = asyncio.run(look(at))
    said = "subscribes to 'ordrs', which isn't there; did you mean 'orders'?"
    assert f"kay ({described['members'][0]['member_id'][:12]}" in shown
    assert said in shown
    assert (described["missing_topics"], described["waiting_for"]) == (["ordrs"], [])
    assert [each.level for each in findings if said in each.what] == [Level.WARNING]


def test_members_and_offsets_alone(at: Cluster) -> None:
    commit(at, "lonely", {T0: 2})
    (report,) = at.json("groups", "offsets", "lonely")
    assert [(each["partition"], each["committed"], each["lag"]) for each in report["offsets"]] == [(0, 2, 1)]
    assert ["t", "0", "2", "3", "1", "-"] in rows(at.ok("groups", "offsets", "lonely"))
    commit(at, "lonely", {T1: 0})
    (report,) = at.json("groups", "offsets", "lonely", "--topic", "t:1")
    assert [each["partition"] for each in report["offsets"]] == [1]
    assert "lonely has no offsets of t-9" in at.fails("groups", "offsets", "lonely", "--topic", "t:9")
    assert "of topic 'tt'; did you mean 't'?" in at.fails("groups", "offsets", "lonely", "--topic", "tt")
    assert at.json("groups", "members", "lonely") == [{"group_id": "lonely", "type": "classic", "members": []}]
    assert "lonely: classic group, Empty, 0 members" in at.ok("groups", "members", "lonely")


def test_a_share_group_is_read_looked_at_reset_and_deleted(at: Cluster, tmp_path: Path) -> None:
    at.ok("configs", "alter", "group", "workers", "--set", "share.auto.offset.reset=earliest")

    def consumed(count: int) -> list[int]:
        file = tmp_path / "records"
        options = ["--share-group", "workers", "-n", str(count), "--template", "%o", "--output", str(file), "--quiet"]
        at.ok("consume", "t", *options)
        return [int(line) for line in file.read_text().splitlines()]

    assert consumed(2) == [0, 1]
    (report,) = at.json("groups", "describe", "workers")
    assert (report["type"], report["state"], report["assignor"]) == ("share", "Empty", "simple")
    assert {each["partition"]: (each["committed"], each["end"], each["lag"]) for each in report["offsets"]}[0] == (
        2,
        3,
        1,
    )
    assert ["t", "0", "2", "3", "1", "-"] in rows(at.ok("groups", "describe", "workers"))
    at.ok("groups", "reset-offsets", "workers", "--topic", "t:0", "--to-earliest", "--execute")
    assert consumed(3) == [0, 1, 2]
    at.ok("groups", "delete-offsets", "workers", "--topic", "t", "--yes")
    at.ok("groups", "delete", "workers", "--yes")
    assert "workers" not in at.ok("groups", "list")


def test_what_a_share_group_has_in_flight(at: Cluster) -> None:
    """Which records, how often they were handed out, to whom, and until when they're locked."""
    at.ok("configs", "alter", "group", "busy", "--set", "share.auto.offset.reset=earliest")

    async def whole() -> None:
        async with ShareConsumer(at.servers, group_id="busy", share_acknowledgement_mode="explicit") as consumer:
            consumer.subscribe("t")
            one, two, three = await take(consumer, 3)
            consumer.acknowledge(two)
            await consumer.commit()
            (report,) = await asyncio.to_thread(at.json, "groups", "offsets", "busy")
            (offsets,) = [each for each in report["offsets"] if each["partition"] == 0]
            held = [each for each in offsets["in_flight"] if each["state"] == "acquired"]
            assert [(each["first_offset"], each["last_offset"]) for each in held] == [(0, 0), (2, 2)]
            assert {(each["member_id"], each["delivery_count"]) for each in held} == {(consumer.member_id, 1)}
            assert all(each["locked_until_ms"] / 1000 > time.time() for each in held)
            shown = await asyncio.to_thread(at.ok, "groups", "describe", "busy")
            (row,) = [row for row in rows(shown) if row[:4] == ["t", "0", "2", "acquired"]]
            assert row[5].rstrip("…") in consumer.member_id and row[6].endswith("UTC")
            consumer.acknowledge([one, three])

    asyncio.run(whole())


async def take(consumer: ShareConsumer, count: int) -> list[ShareRecord]:
    found: list[ShareRecord] = []
    while len(found) < count:
        found += await consumer.poll(timeout_ms=1000)
    return found
