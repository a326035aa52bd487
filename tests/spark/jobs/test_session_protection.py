"""Spark's own protection, where executors are processes of their own."""

from __future__ import annotations

import logging

import pytest

from kohort.spark.jobs.session_protection import is_on_a_cluster, unprotected, warn_of_unprotected

CLUSTER = {"spark.master": "spark://h:7077"}
AUTHENTICATED = CLUSTER | {"spark.authenticate": "true"}


@pytest.mark.parametrize(
    ("conf", "keys"),
    [
        ({}, []),
        ({"spark.master": "local[4]"}, []),
        (CLUSTER, ["spark.authenticate=true", "spark.network.crypto.enabled=true"]),
        ({"spark.master": "yarn"}, ["spark.authenticate=true", "spark.network.crypto.enabled=true"]),
        (AUTHENTICATED, ["spark.network.crypto.enabled=true"]),
        (AUTHENTICATED | {"spark.network.crypto.enabled": "true"}, []),
        (AUTHENTICATED | {"spark.ssl.rpc.enabled": "TRUE"}, []),
        (CLUSTER | {"spark.network.crypto.enabled": "true"}, ["spark.authenticate=true"]),
    ],
)
def test_what_is_off_is_told_with_what_turns_it_on(
    conf: dict[str, str], keys: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    found = unprotected(conf)
    assert len(found) == len(keys)
    assert all(f"set {key}" in sentence for key, sentence in zip(keys, found, strict=True))
    with caplog.at_level(logging.WARNING):
        warn_of_unprotected(conf)
    assert caplog.messages == found


@pytest.mark.parametrize(
    ("master", "cluster"),
    [("local", False), ("local[*]", False), ("local-cluster[1,1,512]", True), ("k8s://h", True), ("yarn", True)],
)
def test_a_cluster(master: str, cluster: bool) -> None:
    assert is_on_a_cluster({"spark.master": master}) is cluster
