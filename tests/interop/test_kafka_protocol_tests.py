"""Apache Kafka's own tests of its protocol, as they were published, against `kohort serve`.

The classes come from Maven Central. `java/protocol_tests` gives them a cluster of Kohort's where they ask for one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from tests.tools import MAVEN

from .java.build import MAVEN_S, classpath
from .java.jvm import FLAGS

RUN_S: Final = 600
"""The limit of a JVM with one part of the classes; each takes a minute or two on two cores."""

PARTS: Final = {
    "classic": (
        "kafka.server.JoinGroupRequestTest",
        "kafka.server.SyncGroupRequestTest",
        "kafka.server.HeartbeatRequestTest",
        "kafka.server.LeaveGroupRequestTest",
        "kafka.server.ListGroupsRequestTest",
        "kafka.server.DescribeGroupsRequestTest",
        "kafka.server.DeleteGroupsRequestTest",
    ),
    "offsets": (
        "kafka.server.OffsetCommitRequestTest",
        "kafka.server.OffsetDeleteRequestTest",
        "kafka.server.OffsetFetchRequestTest",
        "kafka.server.TxnOffsetCommitRequestTest",
        "kafka.server.WriteTxnMarkersRequestTest",
    ),
    "consumer": (
        "kafka.server.ConsumerGroupHeartbeatRequestTest",
        "kafka.server.ConsumerGroupHeartbeatRequestTest$WithAssignmentBatchingDisabledTest",
        "kafka.server.ConsumerGroupDescribeRequestTest",
    ),
    "conversion": ("kafka.server.ConsumerProtocolMigrationTest",),
    "streams": (
        "kafka.server.StreamsGroupHeartbeatRequestTest",
        "kafka.server.StreamsGroupHeartbeatRequestTest$WithAssignmentBatchingDisabledTest",
        "kafka.server.StreamsGroupDescribeRequestTest",
    ),
    "share": (
        "kafka.server.ShareGroupHeartbeatRequestTest",
        "kafka.server.ShareGroupHeartbeatRequestTest$WithAssignmentBatchingDisabledTest",
        "kafka.server.ShareGroupDescribeRequestTest",
    ),
    "share records": ("kafka.server.ShareFetchAcknowledgeRequestTest",),
}

TOPICS_ARE_THERE = "the topics of coordinators are made before the test, which wants to see that they are missing"
BROKERS = "needs two brokers or more"

LEFT_OUT: Final[dict[str, str]] = {
    "OffsetFetchRequestTest.testGroupErrors": TOPICS_ARE_THERE,
    "StreamsGroupHeartbeatRequestTest.testStreamsGroupHeartbeatIsInaccessibleWhenOffsetTopicNotExist": TOPICS_ARE_THERE,
    "StreamsGroupHeartbeatRequestTest$WithAssignmentBatchingDisabledTest."
    "testStreamsGroupHeartbeatIsInaccessibleWhenOffsetTopicNotExist": TOPICS_ARE_THERE,
    "ShareFetchAcknowledgeRequestTest.testShareFetchRequestToNonLeaderReplica": BROKERS,
    "ShareFetchAcknowledgeRequestTest.testShareFetchRequestSuccessMultiplePartitionsMultipleBrokers": BROKERS,
}
"""Why a test of Kafka's can't pass here, or doesn't, by class and method. One that passes fails the run."""


@pytest.mark.long
@pytest.mark.timeout(MAVEN_S + RUN_S)
@pytest.mark.parametrize("part", PARTS)
def test_what_kafka_asks_of_its_own_broker(part: str, tmp_path: Path) -> None:
    MAVEN.require()
    passed, failed = run(PARTS[part], tmp_path)
    assert {name.split(".")[0] for name in passed | failed.keys()} == {name.split(".")[-1] for name in PARTS[part]}
    surprising = [f"{name}: {why}" for name, why in failed.items() if name not in LEFT_OUT]
    assert not surprising, "\n\n".join(surprising)
    assert not passed & LEFT_OUT.keys(), "they pass: take them out of the list of those that don't"


def run(classes: tuple[str, ...], folder: Path) -> tuple[set[str], dict[str, str]]:
    """Which of the tests passed, in all of their variants, and why others didn't, by class and method."""
    command = [
        "java", *FLAGS, "-Xmx384m", "-XX:+EnableDynamicAgentLoading", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        f"-Dkohort.python={sys.executable}", f"-Dkohort.directory={folder}", "-cp", classpath("protocol_tests"),
        "org.junit.platform.console.ConsoleLauncher", "execute", *(f"--select-class={name}" for name in classes),
        "--config=junit.jupiter.extensions.autodetection.enabled=true", "--details=none", "--disable-banner",
        f"--reports-dir={folder / 'reports'}",
    ]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KOHORT_")}
    with (folder / "out.txt").open("wb") as out:
        subprocess.run(command, cwd=folder, env=environment, stdout=out, stderr=out, timeout=RUN_S, check=False)
    return outcome(folder / "reports" / "TEST-junit-jupiter.xml")


def outcome(report: Path) -> tuple[set[str], dict[str, str]]:
    """What a report of JUnit's says, by class and method."""
    seen: set[str] = set()
    failed: dict[str, str] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.attrib['classname'].split('.')[-1]}.{case.attrib['name'].split('(')[0]}"
        seen.add(name)
        for kind in ("failure", "error", "skipped"):
            if (problem := case.find(kind)) is not None:
                failed.setdefault(name, f"{case.attrib['name']}: {(problem.text or kind)[:2000]}")
    return seen - failed.keys(), failed
