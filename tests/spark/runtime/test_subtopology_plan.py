"""The small parts: reasons, errors in plain words, a thread, transactional ids, what is committed beside offsets."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.errors import ApplicationError
from kohort.spark.program.committed_metadata import Fingerprint, metadata
from kohort.spark.program.settings import AppSettings
from kohort.spark.runtime.active_task import later_of, stream_time_of
from kohort.spark.runtime.dangling_transactions import dangling, transactional_id
from kohort.spark.runtime.job_thread import JobThread
from kohort.spark.runtime.reporting import settings_of_group
from kohort.spark.runtime.wait_reasons import Reasons, plain

AT = TopicPartition("s", 0)
FROM_SPARK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
    process()
  File "/home/me/program.py", line 7, in slower
    return 1 / frame["zero"]
ZeroDivisionError: division by zero

JVM stacktrace:
org.apache.spark.SparkException: Job aborted due to stage failure
"""


def test_the_oldest_reason_that_holds() -> None:
    told: list[str | None] = []
    reasons = Reasons(told.append)
    group, lane = reasons.of("group"), reasons.of("lane")
    lane(None)
    group("no tasks yet")
    lane("no broker")
    group(None)
    group(None)
    lane(None)
    assert told == ["no tasks yet", "no tasks yet", "no broker", None]


def test_errors_in_plain_words() -> None:
    assert plain(RuntimeError(FROM_SPARK)) == "ZeroDivisionError: division by zero"
    assert plain(ValueError("first\nsecond")) == "first"
    assert plain(ValueError()) == "ValueError"


def test_a_thread_of_its_own() -> None:
    async def scenario() -> None:
        worker = JobThread("kohort-lane-test")
        threads = {await worker.run(threading.get_ident) for _ in range(3)}
        assert len(threads) == 1 and threading.get_ident() not in threads
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 // 0)
        gate = threading.Event()
        waiting = asyncio.create_task(worker.run(gate.wait, 5))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert worker.busy
        gate.set()
        await worker.idle()
        assert not worker.busy
        await worker.closed()
        assert "kohort-lane-test" not in {thread.name for thread in threading.enumerate()}

    asyncio.run(scenario())


def test_whose_transactions_are_left() -> None:
    one, two = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    mine, theirs = transactional_id("app", one, "0"), transactional_id("app", two, "1")
    others = [f"app-more-{one}-0", "app-0", transactional_id("other", two, "0"), f"app-{one}"]
    assert dangling("app", [mine, theirs, *others], [one]) == [theirs]
    assert dangling("app", [mine, theirs, *others], [one, two]) == []
    assert dangling("a.p", [transactional_id("axp", two, "0")], []) == []


def test_what_is_committed_beside_an_offset() -> None:
    p, q = Fingerprint("p"), Fingerprint("q")
    assert stream_time_of(None, AT, p) is None
    assert stream_time_of(OffsetAndMetadata(1), AT, p) is None
    assert stream_time_of(OffsetAndMetadata(1, metadata="by hand"), AT, p) is None
    assert stream_time_of(OffsetAndMetadata(1, metadata=metadata(None, p)), AT, p) is None
    assert stream_time_of(OffsetAndMetadata(1, metadata=metadata(7, p)), AT, p) == 7
    assert stream_time_of(OffsetAndMetadata(1, metadata=metadata(7, p)), AT, Fingerprint("p", ("0a1b2c3d",))) == 7
    with pytest.raises(ApplicationError, match=r"s-0.*another version of the program"):
        stream_time_of(OffsetAndMetadata(1, metadata=metadata(7, q)), AT, p)
    assert later_of([None, 3, 1]) == 3 and later_of([]) is None


def test_the_group_is_told_what_the_user_says() -> None:
    settings = AppSettings.of("app", "localhost:9092", num_standby_replicas=1, session_timeout_ms=9_000)
    assert settings_of_group(settings) == {"streams.num.standby.replicas": "1", "streams.session.timeout.ms": "9000"}
    assert settings_of_group(AppSettings.of("app", "localhost:9092", num_standby_replicas=0)) == {
        "streams.num.standby.replicas": "0"
    }
    assert settings_of_group(AppSettings.of("app", "localhost:9092")) == {}  # what an operator has set stays
