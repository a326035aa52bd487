"""Spark's first job beside the program's compilation."""

from __future__ import annotations

import logging
import threading

import pytest
from pyspark.sql import SparkSession

from kohort.spark.jobs import first_job as module
from kohort.spark.jobs.first_job import first_job


def test_a_job_has_run_when_the_program_is_compiled(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup("kohort-first-job"))
    with first_job(spark, lambda: False):
        pass
    assert len(set(tracker.getJobIdsForGroup("kohort-first-job")) - before) == 1


def test_a_program_that_cant_run_doesnt_wait_for_the_job(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(module, "_run", lambda _: over.wait())
    with pytest.raises(ZeroDivisionError), first_job(spark, lambda: False):
        raise ZeroDivisionError
    over.set()


def test_an_application_that_is_to_stop_doesnt_wait_for_the_job(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    monkeypatch.setattr(module, "_run", lambda _: over.wait())
    with first_job(spark, lambda: True):
        pass
    over.set()


def test_a_cluster_has_no_first_job(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_local", lambda _: False)
    monkeypatch.setattr(SparkSession, "range", None)
    with first_job(spark, lambda: False):
        pass


def test_a_job_that_fails_is_left_for_others_to_meet(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(batches: object) -> None:
        raise ValueError

    monkeypatch.setattr(module, "_same", fail)
    with caplog.at_level(logging.INFO, module.__name__), first_job(spark, lambda: False):
        pass
    assert caplog.messages == ["Spark could not be warmed up"]
