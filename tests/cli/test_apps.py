"""`kohort apps`, as a user calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from kohort.cli.client.app_report import app_report, app_tables, apps_table
from kohort.cli.client.app_reset import belongings
from kohort.cli.client.group_report import GroupReport
from kohort.client.admin import Admin
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupDescription, GroupType
from kohort.client.types import Broker, TopicPartition
from kohort.spark.state import StateDirectory
from kohort.streams.topology import InternalTopic, Subtopology, Topology
from tests.cli.administering import Cluster, cluster
from tests.client.administration.members import join_classic, join_streams

T0 = TopicPartition("t", 0)


@pytest.fixture
def at() -> Iterator[Cluster]:
    with cluster() as found:
        found.ok("topics", "create", "t", "app-eu-changelog", "app-totals")
        yield found


def stopped(at: Cluster, app: str) -> None:
    """A streams group with a changelog, of which no member is left."""
    asyncio.run(join_streams(at.servers, app, "t"))
    at.ok("groups", "remove-members", app, "--all", "--yes")


def topics(at: Cluster) -> set[str]:
    return {topic["name"] for topic in at.json("topics", "list")}


def described(
    topology: Topology | None, kind: GroupType = GroupType.STREAMS, protocol_type: str = ""
) -> GroupDescription:
    return GroupDescription(
        group_id="app",
        type=kind,
        state="Empty",
        coordinator=Broker(1, "here", 9092, None),
        assignor="",
        protocol_type=protocol_type,
        epoch=None,
        assignment_epoch=None,
        members=(),
        topology=topology,
    )


def test_a_lag_that_is_not_known_is_not_none() -> None:
    lag = {
        T0: PartitionLag(2, 5, 3),
        TopicPartition("t", 1): PartitionLag(None, 7, None, first=3),
        TopicPartition("u", 0): PartitionLag(4, None, None),
        TopicPartition("v", 0): PartitionLag(None, 7, None),
    }
    report = app_report(GroupReport(described(None), lag), {}, {})
    assert [(each.topic, each.lag, each.uncommitted) for each in report.inputs] == [
        ("t", 7, 4), ("u", None, 0), ("v", None, None),
    ]  # fmt: skip
    assert report.lag is None
    for shown in (apps_table([report]), app_tables(report)[-1]):
        assert "unknown" in text_of(shown)
    known = app_report(GroupReport(described(None), {T0: lag[T0]}), {}, {})
    assert known.lag == 3
    assert "unknown" not in text_of(apps_table([known]))


def text_of(shown: RenderableType) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def test_only_what_the_topology_names_is_its_own() -> None:
    part = Subtopology(
        source_topics=["app-input-changelog"],
        repartition_sources=[InternalTopic("app-by-user-repartition")],
        changelogs=[InternalTopic("app-counts-changelog"), InternalTopic("app-input-changelog")],
    )
    there = {
        "app-input-changelog", "app-by-user-repartition", "app-counts-changelog", "app-old-changelog", "app-out",
        "app-eu-x-changelog", "application-x-changelog", "x-changelog",
    }  # fmt: skip
    found = belongings(
        "app", described(Topology({"0": part})), topics=there, groups={"app", "app-eu", "x"}, read={"app-old-changelog"}
    )
    assert found.topics == ("app-by-user-repartition", "app-counts-changelog")
    assert found.by_name == ("app-old-changelog",)
    assert not found.unsure


def test_without_a_topology_names_tell_but_for_topics_that_it_reads() -> None:
    there = {"app-counts-changelog", "app-by-user-repartition", "app-cdc-changelog", "app-out"}
    read = {"app-cdc-changelog", "app-by-user-repartition"}
    found = belongings("app", described(None, GroupType.CLASSIC), topics=there, groups={"app"}, read=read)
    assert found.topics == ()
    assert found.by_name == ("app-by-user-repartition", "app-counts-changelog")
    assert found.unsure


@pytest.mark.parametrize(("protocol_type", "another"), [("", False), ("consumer", False), ("connect", True)])
def test_a_classic_group_may_be_anybodys(protocol_type: str, another: bool) -> None:
    """Of a group of consumers only its user can say whether it is an application's, or a state directory."""
    group = described(None, GroupType.CLASSIC, protocol_type)
    found = belongings("app", group, topics=(), groups={"app"}, read={"t"})
    assert (found.is_another, found.unsure) == (another, True)
    assert not belongings("app", group, topics=(), groups={"app"}, read={"t"}, state=Path("here")).unsure


def test_what_was_not_shown_stays() -> None:
    """Meanwhile a topic has become a source, and others have come."""
    before = belongings("app", None, topics={"app-a-changelog", "app-b-changelog"}, groups=(), read=())
    after = belongings(
        "app", described(None, GroupType.CLASSIC), topics={"app-a-changelog", "app-b-changelog", "app-c-changelog"},
        groups=(), read={"app-b-changelog"},
    )  # fmt: skip
    assert before.still(after) == ((), ("app-a-changelog",))


def test_a_stopped_application_is_shown_and_reset(at: Cluster, tmp_path: Path) -> None:
    stopped(at, "app")
    with StateDirectory(tmp_path, "app") as directory:
        home = directory.path
        said = at.fails("apps", "reset", "app", "--state-dir", str(tmp_path), "--yes")
        assert "is used by another process" in said
        assert said.endswith("nothing was done")
    shown = at.ok("apps", "reset", "app", "--state-dir", str(tmp_path), "--dry-run")
    assert [line.split() for line in shown.splitlines()] == [
        ["state", "directory", str(home)],
        ["topic", "app-store-changelog"],
        ["topic", "app-eu-changelog", "is", "left"],
        ["group", "app", "streams"],
    ]
    assert topics(at) == {"t", "app-store-changelog", "app-eu-changelog", "app-totals"}
    assert home.is_dir()
    done = at.json("apps", "reset", "app", "--state-dir", str(tmp_path))
    assert done == {
        "application_id": "app",
        "group": {"type": "streams", "state": "Empty"},
        "topics": ["app-store-changelog"],
        "topics_by_name": [],
        "topics_left": ["app-eu-changelog"],
        "state_directory": str(home),
        "done": True,
    }
    assert topics(at) == {"t", "app-eu-changelog", "app-totals"}
    assert at.json("groups", "list") == []
    assert not home.exists()


def test_an_application_that_runs_is_left_alone(at: Cluster) -> None:
    asyncio.run(join_streams(at.servers, "app", "t"))
    assert "app has 1 member: stop all instances first" in at.fails("apps", "reset", "app", "--yes")
    assert "app-store-changelog" in topics(at)


def test_a_classic_group_needs_a_word_about_topics(at: Cluster) -> None:
    asyncio.run(join_classic(at.servers, "app", T0))
    assert "app has 1 member" in at.fails("apps", "reset", "app")
    at.ok("groups", "remove-members", "app", "--all", "--yes")

    async def commit() -> None:
        async with Admin(at.servers) as admin:
            await admin.group_offsets.alter("app", {T0: 0})

    asyncio.run(commit())
    said = at.fails("apps", "reset", "app")
    assert "look whether app-eu-changelog may go, and give --by-name; nothing was done" in said
    assert "app-eu-changelog" in topics(at)
    assert len(at.json("groups", "list")) == 1
    assert "app is reset" in at.ok("apps", "reset", "app", "--by-name")
    assert topics(at) == {"t", "app-totals"}
    assert at.json("groups", "list") == []


def test_groups_that_are_no_applications(at: Cluster) -> None:
    stopped(at, "orders")
    assert "there is no group 'order'; did you mean 'orders'?" in at.fails("apps", "reset", "order")
