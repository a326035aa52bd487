"""A pipeline over SASL_SSL that has just the rights that docs/clusters.md names: it works, and uses each of them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.client.config import ClientConfig
from kohort.client.errors import AuthenticationError
from kohort.spark import StreamsApp, count

from .applications import producer, read, run_in_steps
from .secured import APPLICATION, PASSWORD, SINK, SOURCE, USER, Secured, secured_broker

NUMBER = 200
OPTIONS = {"topic": "TOPIC", "group": "GROUP", "transactional-id": "TRANSACTIONAL_ID"}


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    with secured_broker(tmp_path) as found:
        yield found


def application(secured: Secured, directory: Path, **other: str) -> StreamsApp:
    config, _ = ClientConfig.from_properties(secured.properties | other)
    app = StreamsApp(
        APPLICATION, bootstrap_servers=config, state_dir=directory / "state", repartition_purge_interval_ms=1
    )
    flights = app.stream(SOURCE, schema="origin STRING")
    # Through a repartition topic, whose rights are to be used, too.
    flights.repartition("origin").group_by("origin").aggregate("delays", n=count()).to(SINK)
    return app


def needed(rule: list[str]) -> tuple[set[str], str]:
    """What a rule allows, and a pattern of what to: `acls add PRINCIPAL OPERATION… --topic NAME [--prefixed]`."""
    at = next(number for number, word in enumerate(rule) if word.startswith("--"))
    kind, name = OPTIONS[rule[at].removeprefix("--")], re.escape(rule[at + 1])
    return {word.upper() for word in rule[3:at]}, f"{kind}:'{name}" + (".*'" if "--prefixed" in rule else "'")


def test_the_rights_that_the_page_names_are_enough_and_all_used(
    spark: SparkSession, secured: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kohort.authorizer")

    def send() -> int:
        sending = producer(secured.administrators)
        for number in range(NUMBER):
            sending.produce(SOURCE, json.dumps({"origin": f"o{number % 7}"}).encode())
        sending.flush()
        return NUMBER

    run_in_steps(application(secured, tmp_path), spark, [send, send], moved=True)
    counts = {message.key(): json.loads(message.value())["n"] for message in read(secured.administrators, SINK)}
    assert sum(counts.values()) == 2 * NUMBER
    asked = [each for each in caplog.messages if f"principal='User:{USER}' " in each]
    assert [each for each in asked if each.startswith("denied ")] == []
    assert len(secured.rules) == 5
    for operations, what in map(needed, secured.rules):
        used = {found[1] for each in asked if (found := re.search(rf"operation=(\w+) resource={what} api=", each))}
        assert operations <= used, f"nothing needs {operations - used} of {what}"
    assert PASSWORD not in caplog.text


def test_a_wrong_password_is_told_without_it(
    spark: SparkSession, secured: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    wrong = {"sasl.jaas.config": f'{module} username="{USER}" password="not-it-at-all";'}
    with pytest.raises(AuthenticationError) as raised:
        application(secured, tmp_path, **wrong).run(spark, progress=False)
    assert "not-it-at-all" not in str(raised.value) + caplog.text
