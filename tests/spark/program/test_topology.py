"""What the group is told of a program, and how the program is printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("pyspark")

from kohort.spark.errors import ProgramError
from kohort.spark.internals import empty_frame
from kohort.spark.program.compiled import CompiledSubtopology, Program, TableStore
from kohort.spark.program.settings import AppSettings
from kohort.spark.program.topology import topology
from kohort.spark.program.topology_description import describe
from kohort.spark.program.windows import window
from tests.spark.program.programs import AIRLINE, program, source, spec


def test_the_group_is_told_of_topics_and_stores() -> None:
    below, above = program().topology.subtopologies.values()
    assert below.source_topics == ("airlines", "flights")
    assert below.copartition_groups == (("airlines", "flights"),)
    assert below.repartition_sinks == ("app-delays-repartition",)
    assert [topic.name for topic in above.repartition_sources] == ["app-delays-repartition"]
    assert above.repartition_sources[0].configs["retention.ms"] == "-1"
    event_time = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
    assert above.changelogs[0].configs == {"cleanup.policy": "compact", **event_time}


def test_windows_that_go_have_changelogs_that_go() -> None:
    retained = spec(window=window("at", "1 hour", grace="1 hour", retention="2 days"))
    settings = AppSettings.of("app", "b:1", windowstore_changelog_additional_retention_ms=5, replication_factor=3)
    subtopologies = program(aggregate=retained).subtopologies
    (changelog,) = topology(subtopologies, settings).subtopologies["1"].changelogs
    assert changelog.replication_factor == 3
    assert changelog.configs["cleanup.policy"] == "compact,delete"
    assert changelog.configs["retention.ms"] == str(2 * 86_400_000 + 5)


def test_spark_connect_has_no_driver_here() -> None:
    with pytest.raises(ProgramError, match=r"this is a session of Spark Connect; .* without \.remote\(…\)"):
        empty_frame(object(), AIRLINE)  # type: ignore[arg-type]


def test_what_a_part_reads_and_keeps() -> None:
    made = program(dead="dead")
    below, above = made.subtopologies
    assert (below.input_topics, above.input_topics) == (("flights", "airlines"), ("app-delays-repartition",))
    assert [(store.name, store.changelog) for subtopology in made.subtopologies for store in subtopology.stores] == [
        ("airlines", "app-airlines-changelog"), ("delays", "app-delays-changelog"),
    ]  # fmt: skip
    assert made.sinks == ("out", "dead")
    assert [each.topic for each in made.sources] == ["flights", "airlines"]
    assert made.subtopology("1") is above
    with pytest.raises(KeyError):
        made.subtopology("2")


def test_a_global_table_is_printed_as_kafka_streams_does() -> None:
    airports = TableStore("airports", source("airports", AIRLINE), None)
    kept = TableStore("kept", source("t", AIRLINE), "app-kept-changelog")
    made: Program = replace(
        program(), subtopologies=(CompiledSubtopology("0", None, (kept,), ()),), globals=(airports,)
    )
    assert describe(made) == (
        "Topologies:\n"
        "   Sub-topology: 0\n"
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [t])\n"
        "      --> KTABLE-SOURCE-0000000001\n"
        "    Processor: KTABLE-SOURCE-0000000001 (stores: [kept])\n"
        "      --> none\n"
        "      <-- KSTREAM-SOURCE-0000000000\n"
        "\n"
        "  Sub-topology: 1 for global store (will not generate tasks)\n"
        "    Source: KSTREAM-SOURCE-0000000002 (topics: [airports])\n"
        "      --> KTABLE-SOURCE-0000000003\n"
        "    Processor: KTABLE-SOURCE-0000000003 (stores: [airports])\n"
        "      --> none\n"
        "      <-- KSTREAM-SOURCE-0000000002\n"
    )
