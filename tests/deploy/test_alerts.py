"""Each alert comes when it should, and not otherwise: judged by promtool, with made-up series over hours."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.deploy.prometheus import PROMETHEUS, program
from tests.deploy.promql import DEPLOY, RULES, rules_of

BROKER: Final = 'job="kohort-broker",instance="b:9090"'
ONE: Final = 'job="kohort-application",instance="one:8080"'
TWO: Final = 'job="kohort-application",instance="two:8080"'
INFO: Final = {f'kafka_streams_info{{{each},application_id="flights",version="1"}}': "1x300" for each in (ONE, TWO)}
DAY: Final = 86_400
SLOW_FLAPPING: Final = " ".join(str(2 * (minute // 9) + (minute % 9 >= 5)) for minute in range(300))
"""Rebalances of a group with a member that is dropped after five minutes, and back after nine."""


class Case(NamedTuple):
    """Series by whose name an alert comes, and others by whose it doesn't.

    Attributes:
        fires, quiet: values in promtool's notation, a minute apart, by series.
        at: minutes until it is looked at.
        alerts: how many come.
    """

    fires: dict[str, str]
    quiet: dict[str, str]
    at: int = 20
    alerts: int = 1


def one(name: str, fires: str, quiet: str, labels: str = "", at: int = 20) -> Case:
    """A case of one series of the broker's."""
    series = f"{name}{{{BROKER}{labels and ',' + labels}}}"
    return Case({series: fires}, {series: quiet}, at)


def application(name: str, fires: str, quiet: str, labels: str = "", at: int = 20) -> Case:
    """A case of one series of an instance's."""
    series = f"{name}{{{ONE}{labels and ',' + labels}}}"
    return Case({**INFO, series: fires}, {**INFO, series: quiet}, at)


def lags(first: str, second: str, read: str) -> dict[str, str]:
    """The lags of two instances, and what each has read."""
    label = 'subtopology="0"'
    return INFO | {
        f"kafka_streams_records_lag{{{ONE},{label}}}": first,
        f"kafka_streams_records_lag{{{TWO},{label}}}": second,
        f"kafka_streams_process_total{{{ONE},{label}}}": read,
        f"kafka_streams_process_total{{{TWO},{label}}}": read,
    }


def disk(free: str) -> dict[str, str]:
    return {f"kohort_disk_bytes{{{BROKER}}}": "1000x300", f"kohort_disk_free_bytes{{{BROKER}}}": free}


def connections(open_: str) -> dict[str, str]:
    return {f"kohort_connections{{{BROKER}}}": open_, f"kohort_connections_limit{{{BROKER}}}": "1000x300"}


def epochs(count: str) -> dict[str, str]:
    return {
        f'kafka_streams_records_lag{{{ONE},subtopology="0"}}': "500x300",
        f'kafka_streams_process_latency_seconds_count{{{ONE},subtopology="0"}}': count,
    }


def writes(slow: str, quick: str) -> dict[str, str]:
    bucket = f'kohort_request_seconds_bucket{{{BROKER},api="Produce"'
    return {f'{bucket},le="0.262144"}}': quick, f'{bucket},le="4.194304"}}': slow, f'{bucket},le="+Inf"}}': slow}


CASES: Final = {
    "KohortBrokerDown": one("up", "1x5 0x300", "1x300"),
    "KohortBrokerMissing": Case({f"up{{{ONE}}}": "1x300"}, {f"up{{{BROKER}}}": "0x300"}),
    "KohortRecordsLost": one("kohort_log_lost_records_total", "0x5 20x300", "0x300"),
    "KohortPartitionsOffline": one("kohort_offline_partitions", "0x5 2x300", "0x5 2 0x300"),
    "KohortDiskFillsUp": Case(disk("399-1x300"), disk("300x300"), at=90),
    "KohortDiskFull": Case(disk("40x300"), disk("60x300")),
    "KohortConnectionsNearLimit": Case(connections("900x300"), connections("700x300")),
    "KohortConnectionsRefused": one("kohort_connections_refused_total", "0+1x300", "7x300"),
    "KohortAuthenticationFailures": one(
        "kohort_authentication_failures_total", "0+3x300", "0+1x300", 'mechanism="PLAIN"'
    ),
    "KohortCertificateExpires": one(
        "kohort_certificate_expires_timestamp_seconds", f"{10 * DAY}x300", f"{20 * DAY}x300", 'listener="SSL"', at=90
    ),
    "KohortCertificateExpired": one(
        "kohort_certificate_expires_timestamp_seconds", "600x300", f"{DAY}x300", 'listener="SSL"'
    ),
    "KohortCoordinatorsLoading": one("kohort_coordinators_loading", "1x300", "1x3 0x300"),
    "KohortGroupsRebalanceTooLong": one(
        "kohort_groups", "1x300", "1x10 0 1x300", 'protocol="streams",state="Reconciling"'
    ),
    "KohortGroupRebalancesOften": one(  # one that a member leaves and joins every five minutes, and a deployment
        "kohort_group_rebalances_total", "0+0.4x300", "0x10 0+3x8 24x300", 'group="billing",protocol="classic"', at=40
    ),
    "KohortGroupKeepsRebalancing": one(  # and a deployment half an hour ago
        "kohort_group_rebalances_total",
        SLOW_FLAPPING,
        "0x85 0+3x8 24x300",
        'group="billing",protocol="classic"',
        at=120,
    ),
    "KohortGroupFallsBehind": one(
        "kohort_group_lag_records", "0+500x300", "90000-10x300", 'group="billing",topic="orders"', at=60
    ),
    "KohortStreamsGroupNotReady": one("kohort_groups", "1x300", "0x300", 'protocol="streams",state="NotReady"'),
    "KohortStreamsTasksUnowned": one("kohort_streams_tasks_unowned", "2x300", "2x3 0x300", 'group="flights"'),
    "KohortPlacementFails": one("kohort_placement_failures_total", "0x8 1x300", "1x300", 'assignor="optimal"'),
    "KohortDeadLettersLost": one("kohort_share_dead_letter_failures_total", "0x8 5x300", "5x300"),
    "KohortRequestsSlow": Case(writes("0+100x300", "0+90x300"), writes("0+100x300", "0+100x300")),
    "KohortInstanceDown": application("up", "1x5 0x300", "1x300"),
    "KohortInstanceFailing": application("kafka_streams_state", "1x300", "0x300", 'kafka_streams_state="failing"'),
    "KohortInstanceWaits": application("kafka_streams_state", "1x300", "1x5 0x300", 'kafka_streams_state="waiting"'),
    "KohortEpochsFail": application("kafka_streams_failures_total", "0+1x300", "0x8 1x300"),
    "KohortEpochsStopped": Case(epochs("70x300"), epochs("0+1x300")),
    "KohortLagGrows": Case(lags("0+500x300", "9000x300", "0+900x300"), lags("90000-10x300", "0x300", "0+900x300"), 60),
    "KohortCatchUpTakesLong": Case(lags("90000x300", "9x300", "0+60x300"), lags("90000x300", "9x300", "0+6000x300")),
    "KohortLagUnknown": application("kafka_streams_records_lag_age_seconds", "0+60x300", "5x300", 'subtopology="0"'),
    "KohortRestoreTakesLong": application("kafka_streams_tasks", "2x300", "2x20 0x300", 'role="restoring"', at=40),
    "KohortRecordsDropped": application(
        "kafka_streams_dropped_records_total", "0x8 5x300", "5x300", 'subtopology="0",reason="no key"'
    ),
    "KohortQueueJobsFail": application("kohort_queue_failed_jobs_total", "0+1x300", "0x8 1x300", 'queue="jobs"'),
    "KohortQueueDeadLetters": application("kohort_queue_dead_letters_total", "0x8 5x300", "5x300", 'queue="jobs"'),
    "KohortQueueLosesLocks": application(
        "kohort_queue_records_total", "0x8 5x300", "5x300", 'queue="jobs",outcome="lost"'
    ),
}


def promtool(*arguments: str | Path) -> str:
    """What promtool says; the test fails if it does."""
    PROMETHEUS.require()
    ran = subprocess.run([program("promtool") or "", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def firing(alert: str, series: dict[str, str], at: int, count: int) -> dict[str, Any]:
    """A test of promtool's: so many alerts of the name are firing after so many minutes."""
    counted = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    return {
        "name": alert,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": counted, "eval_time": f"{at}m", "exp_samples": [{"labels": "{}", "value": count}]}
        ],
    }


def judge(tests: list[dict[str, Any]], directory: Path) -> None:
    """Has promtool run its tests."""
    file = directory / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(path) for path in RULES], "tests": tests}))
    promtool("test", "rules", file)


def test_rules_and_the_example_are_valid() -> None:
    assert "SUCCESS" in promtool("check", "rules", *RULES)
    assert "SUCCESS" in promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")


def test_there_is_a_case_for_each_alert() -> None:
    assert {rule["alert"] for file in RULES for rule in rules_of(file) if "alert" in rule} == CASES.keys()


def test_each_alert_comes_when_it_should(tmp_path: Path) -> None:
    judge([firing(name, case.fires, case.at, case.alerts) for name, case in CASES.items()], tmp_path)


def test_no_alert_comes_otherwise(tmp_path: Path) -> None:
    judge([firing(name, case.quiet, case.at, 0) for name, case in CASES.items()], tmp_path)


def test_lag_and_rate_are_summed_by_application(tmp_path: Path) -> None:
    other = 'job="kohort-application",instance="three:8080"'
    series = lags("100x60", "20x60", "0+60x60") | {
        f'kafka_streams_info{{{other},application_id="orders",version="1"}}': "1x60",
        f'kafka_streams_records_lag{{{other},subtopology="0"}}': "7x60",
    }
    name = "application:kafka_streams_records_lag:sum"
    samples = [
        {"labels": f'{name}{{application_id="flights"}}', "value": 120},
        {"labels": f'{name}{{application_id="orders"}}', "value": 7},
    ]
    rate = "application:kafka_streams_process:rate5m"
    rates = [{"labels": f'{rate}{{application_id="flights"}}', "value": 2}]
    expressions = [
        {"expr": name, "eval_time": "30m", "exp_samples": samples},
        {"expr": rate, "eval_time": "30m", "exp_samples": rates},
    ]
    test = firing("KohortLagGrows", series, 30, 0)
    judge([{**test, "promql_expr_test": expressions}], tmp_path)


def test_an_instance_that_never_had_an_epoch_has_stopped(tmp_path: Path) -> None:
    """Whether its tasks have come, or not: then there is no series of epochs."""
    lag = f'kafka_streams_records_lag{{{ONE},subtopology="0"}}'
    judge([firing("KohortEpochsStopped", series, 20, 1) for series in ({lag: "500x300"}, epochs("0x300"))], tmp_path)
    read_nothing = lags("90000x300", "9x300", "0x300")
    judge([firing("KohortCatchUpTakesLong", read_nothing, 20, 1)], tmp_path)


def test_a_case_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    case = CASES["KohortBrokerDown"]
    with pytest.raises(AssertionError, match="KohortBrokerDown"):
        judge([firing("KohortBrokerDown", case.quiet, case.at, 1)], tmp_path)


@pytest.mark.parametrize("file", RULES, ids=lambda path: path.name)
def test_each_alert_says_how_bad_it_is_and_where_to_read_on(file: Path) -> None:
    page = (DEPLOY.parent / "docs" / "operations.md").read_text()
    headings = {heading(line) for line in re.findall(r"^##+ (.+)$", page, re.MULTILINE)}
    for rule in yaml.safe_load(file.read_text())["groups"][-1]["rules"]:
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        assert {"summary", "description", "runbook"} == set(rule["annotations"]), rule["alert"]
        path, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (path, anchor in headings) == ("docs/operations.md", True), rule["annotations"]["runbook"]


def heading(text: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
