"""What a Prometheus that scrapes a broker and an instance says to every expression of dashboards and alerts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pytest
import yaml

from tests.deploy.conftest import Scrapes
from tests.deploy.prometheus import PROMETHEUS, program
from tests.deploy.promql import DASHBOARDS, RULES
from tests.deploy.test_dashboards import filled, targets
from tests.waiting import eventually
from tests.web_server import web_server

EMPTY = {"{{group}}: run nowhere"}
"""Legends of what a good world hasn't."""


class Prometheus:
    """A server that is asked over HTTP."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/"

    def ask(self, what: str, **fields: str) -> Any:
        """The data of an answer; None if it doesn't answer yet."""
        try:
            with urlopen(f"{self._url}{what}?{urlencode(fields)}", timeout=30) as answer:
                return json.load(answer)["data"]
        except URLError:
            return None

    def query(self, expression: str) -> list[Any]:
        found = self.ask("query", query=expression)
        return [] if found is None else found["result"]  # type: ignore[no-any-return]


@contextmanager
def prometheus(directory: Path, jobs: dict[str, str], rules: Sequence[Path] = RULES) -> Iterator[Prometheus]:
    """Scrapes each job's address once a second, and goes by these rules."""
    PROMETHEUS.require()
    with web_server() as free:  # a port that was free a moment ago
        port = urlsplit(free.url).port
    assert port is not None
    scrapes = [
        {"job_name": job, "metrics_path": urlsplit(url).path, "static_configs": [{"targets": [urlsplit(url).netloc]}]}
        for job, url in jobs.items()
    ]
    config = directory / "prometheus.yml"
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config.write_text(yaml.safe_dump({"global": every, "rule_files": [*map(str, rules)], "scrape_configs": scrapes}))
    command = [program("prometheus") or "", f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}"]
    with (directory / "log").open("w") as log:
        server = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            yield Prometheus(port)
        finally:
            server.terminate()
            server.wait(60)


def of_queues(worker: bytes) -> bytes:
    """What of a worker's metrics an instance hasn't."""
    return b"".join(line for line in worker.splitlines(True) if b"kohort_queue" in line)


@pytest.mark.long
def test_each_panel_shows_something(scrapes: Scrapes, tmp_path: Path) -> None:
    with web_server() as broker, web_server() as instance:
        broker.body, instance.body = scrapes.broker, scrapes.instance + of_queues(scrapes.worker)
        jobs = {"kohort-broker": broker.url, "kohort-application": instance.url}
        with prometheus(tmp_path, jobs) as server:
            twice = "count(count_over_time(up[1m]) > 1) == 2 and count(up == 1) == 2"
            eventually(lambda: server.query(twice), what="two scrapes of both")
            eventually(lambda: server.query("application:kafka_streams_records_lag:sum"), what="recording rules")
            empty = [
                f"{panel['title']}: {target['expr']}"
                for file in DASHBOARDS
                for panel, target in targets(json.loads(file.read_text()))
                if target["legendFormat"] not in EMPTY and not server.query(filled(target["expr"]))
            ]
            assert not empty, "\n".join(empty)
            rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
            assert len(rules) == 36
            assert not [rule for rule in rules if rule["health"] == "err"]
