"""A plan as people read it, and the epoch of the topology that a changed program brings."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("pyspark")

from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.client.types import Broker
from kohort.spark.program.compiled import TopicInput
from kohort.spark.program.settings import AppSettings
from kohort.spark.program.topology import topology
from kohort.spark.program.topology_epochs import same_topology, topology_epoch
from kohort.spark.program.upgrade_plan import SourceChange, TopicChange, UpgradePlan
from kohort.spark.program.upgrade_rules import Fate, StoreChange
from kohort.streams.topology import Topology
from tests.spark.program.programs import program, source, spec

PLAN = UpgradePlan(
    application_id="shop",
    stores=(
        StoreChange("by-city", "orders", Fate.EXTENDED, "total: nothing yet, of rows from now on; without worst"),
        StoreChange("people", "people", Fate.REBUILT, "for team its topic is read again"),
        StoreChange("by-who", "orders", Fate.LEFT),
    ),
    topics=(TopicChange("shop-by-city-changelog", Fate.KEPT), TopicChange("shop-by-who-changelog", Fate.LEFT)),
    sources=(SourceChange("orders", Fate.KEPT), SourceChange("visits", Fate.NEW, "earliest")),
    members=0,
    topology_changed=True,
    programs=("0123456789abcdef",),
)


def test_a_plan_is_printed_as_a_table_with_what_has_to_be_done() -> None:
    assert str(PLAN).splitlines() == [
        "        name                    becomes",
        "store   by-city                 extended  total: nothing yet, of rows from now on; without worst",
        "store   people                  rebuilt   for team its topic is read again",
        "store   by-who                  left      made of orders; kohort apps reset shop --store by-who deletes it",
        "source  orders                  kept",
        "source  visits                  new       begins at the earliest record",
        "topic   shop-by-city-changelog  kept",
        "topic   shop-by-who-changelog   left",
        "what is left isn't deleted. If nobody needs it: kohort topics delete shop-by-who-changelog",
    ]


def test_who_has_to_stop_and_what_is_refused_is_said() -> None:
    plan = replace(
        PLAN,
        stores=(StoreChange("by-city", "orders", Fate.REFUSED, "its key is another"),),
        topics=(TopicChange("shop-rows-repartition", Fate.LEFT, 3),),
        members=2,
    )
    assert plan.remarks == [
        "2 instances run: stop all before you start the changed program",
        "store 'by-city' can't go on: its key is another. Give it another name in the program; or have it begin from "
        "nothing: kohort apps reset shop --store by-city",
        "what is left isn't deleted. If nobody needs it: kohort topics delete shop-rows-repartition",
    ]
    assert "3 records in it aren't read yet, and won't be" in str(plan)
    rows = replace(plan, stores=(StoreChange("r", "r", Fate.REFUSED, "n is of another type, and 3 records are left"),))
    assert rows.remarks[1] == "repartition topic r: n is of another type, and 3 records are left"


def group(topology: Topology | None, epoch: int | None, *members: GroupMember) -> GroupDescription:
    return GroupDescription(
        group_id="app", type=GroupType.STREAMS, state="Empty", coordinator=Broker(1, "here", 9092, None), assignor="",
        protocol_type="streams", epoch=1, assignment_epoch=1, members=members, topology_epoch=epoch, topology=topology,
    )  # fmt: skip


MEMBER = GroupMember(
    member_id="m", instance_id=None, client_id="c", host="h", rack=None, epoch=1, classic=False, topics=(),
    pattern=None, partitions=(), target=None,
)  # fmt: skip


def test_another_topology_comes_with_a_higher_epoch() -> None:
    ours, other = program(), program(aggregate=spec("late", changelog="app-late-changelog"))
    assert topology_epoch(ours, None) == 0
    assert topology_epoch(ours, group(ours.topology, 3)) == 3, "as another instance has brought it"
    assert topology_epoch(other, group(ours.topology, 3)) == 4
    assert topology_epoch(other, group(None, 3)) == 4, "it can't be told which it has"
    assert topology_epoch(other, group(None, None)) == 0, "it has none"
    assert topology_epoch(other, group(ours.topology, 3, MEMBER)) == 0, "those who run would lose their tasks"
    assert same_topology(ours, group(ours.topology, 3, MEMBER))
    assert not same_topology(other, group(ours.topology, 3))


def test_a_topology_that_writes_other_repartition_topics_is_another() -> None:
    ours = program()
    parts = dict(ours.topology.subtopologies)
    parts["0"] = replace(parts["0"], repartition_sinks=())
    assert not same_topology(ours, group(replace(ours.topology, subtopologies=parts), 3))


def test_a_program_that_reads_by_patterns_brings_its_topology_to_a_group_without_members() -> None:
    ours = program()
    _, *others = ours.subtopologies
    read = TopicInput(replace(source("flights-.*"), pattern=True))
    by_pattern = replace(ours.subtopologies[0], input=read, tables=())
    ours = replace(
        ours,
        subtopologies=(by_pattern, *others),
        topology=topology((by_pattern, *others), AppSettings.of("app", "localhost:9092")),
    )
    assert ours.topology.source_patterns
    assert topology_epoch(ours, group(ours.topology, 3)) == 4
    assert topology_epoch(ours, group(ours.topology, 3, MEMBER)) == 3
