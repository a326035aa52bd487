"""A real Prometheus scrapes a broker and an application that run: dashboards show them, an alert says what is gone."""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.spark import StreamsApp, count
from tests.deploy.promql import DASHBOARDS, RULES
from tests.deploy.test_dashboards import filled, targets
from tests.deploy.test_real_prometheus import Prometheus, prometheus
from tests.interop.apache_kafka import free_ports
from tests.waiting import eventually

from .applications import create_topics, producer


def hurried(directory: Path) -> list[Path]:
    """The rules, with alerts that wait for two seconds where they wait for minutes."""
    made = [directory / each.name for each in RULES]
    for rule, copy in zip(RULES, made, strict=True):
        copy.write_text(re.sub(r"^( +for: )\w+$", r"\g<1>2s", rule.read_text(), flags=re.MULTILINE))
    return made


@contextmanager
def broker(port: int, metrics: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "kohort.cli", "serve", "--ephemeral", "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen([*command, "--metrics", str(metrics)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert select.select([process.stdout], [], [], 60)[0], "the broker says nothing"
        assert process.stdout.readline().startswith("kohort ready on ")
        yield process
    finally:
        process.kill()
        process.communicate()


def firing(server: Prometheus) -> set[str]:
    found = server.ask("alerts")
    alerts = [] if found is None else found["alerts"]
    return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}


@pytest.mark.long
def test_what_runs_is_seen_and_missed(spark: SparkSession, tmp_path: Path) -> None:
    port, metrics, queries = free_ports(3)
    servers = f"127.0.0.1:{port}"
    exposed = {"kohort-broker": metrics, "kohort-application": queries}
    jobs = {job: f"http://127.0.0.1:{at}/metrics" for job, at in exposed.items()}
    app = StreamsApp(
        "watched", bootstrap_servers=servers, state_dir=tmp_path / "state", application_server=f"127.0.0.1:{queries}"
    )
    words = app.stream("words", schema="word STRING", key="word")
    words.group_by("word").aggregate("counts", n=count()).to("counts")
    with broker(port, metrics) as process, prometheus(tmp_path, jobs, hurried(tmp_path)) as server:
        create_topics(servers, "words", "counts")
        sending = producer(servers)
        with app.start(spark):

            def shown() -> bool:
                sending.produce("words", b'{"word": "tea"}', b"tea")
                sending.flush()
                return bool(server.query("count(up == 1) == 2 and sum(kafka_streams_process_total) > 0"))

            eventually(shown, within=180, what="both scraped, and records that were processed")
            eventually(lambda: server.query("application:kafka_streams_records_lag:sum"), what="recording rules")
            rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
            assert [rule["name"] for rule in rules if rule["health"] == "err"] == []
            for file in DASHBOARDS:
                asked = list(targets(json.loads(file.read_text())))
                full = {panel["title"] for panel, target in asked if server.query(filled(target["expr"]))}
                assert len(full) >= len({panel["title"] for panel, _ in asked}) / 3, f"{file.stem}: {sorted(full)}"
            assert "KohortBrokerDown" not in firing(server)
        process.kill()
        eventually(lambda: "KohortBrokerDown" in firing(server), what="the alert that the broker is gone")
