"""What becomes of a transaction when something goes wrong, with a producer that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from kohort.client.errors import (
    CommitFailedError,
    ConnectionLostError,
    FencedError,
    RequestTimeoutError,
    TransactionAbortableError,
)
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kohort.spark.runtime.commit_errors import while_committing, while_sending
from kohort.spark.runtime.epoch_committer import EpochCommitter
from kohort.spark.runtime.epoch_states import EpochEvent
from kohort.spark.runtime.epoch_writes import EpochWrites

OFFSETS = {TopicPartition("s", 0): OffsetAndMetadata(7)}
ROWS = pa.table({"key": pa.array([b"a", b"b"]), "value": pa.array([b"1", b"2"])})


class _Part(NamedTuple):
    first_offset: int
    records: int


class _Delivery:
    def __init__(self, first: int) -> None:
        self._first = first

    def result(self) -> dict[int, _Part]:
        return {0: _Part(self._first, 2)}


class _Producer:
    """Fails as `failures` says: for each method, what it raises the first, second, … time."""

    def __init__(self, failures: dict[str, list[Exception | None]], calls: list[str], first: int) -> None:
        self._failures, self._calls, self._first = failures, calls, first

    def _call(self, name: str) -> None:
        self._calls.append(name)
        left = self._failures.get(name)
        if left and (error := left.pop(0)) is not None:
            raise error

    async def start(self) -> None:
        self._call("start")

    async def close(self, *, timeout_ms: float = 0) -> None:
        self._call("close")

    async def begin_transaction(self) -> None:
        self._call("begin")

    async def send_table(self, topic: str, table: pa.Table, partition: int | None = None) -> _Delivery:
        self._call("send")
        return _Delivery(self._first)

    async def send_offsets_to_transaction(self, offsets: Any, group: GroupMetadata) -> None:
        self._call(f"offsets@{group.generation}" if "offsets" not in self._failures else "offsets")

    async def commit_transaction(self) -> None:
        self._call("commit")

    async def abort_transaction(self) -> None:
        self._call("abort")


class _Member:
    def __init__(self) -> None:
        self.epoch = 0

    def group_metadata(self) -> GroupMetadata:
        self.epoch += 1
        return GroupMetadata("g", self.epoch, "m")


class _OverError(Exception):
    """The epoch can't go on: the event says how."""


def _commit(
    failures: dict[str, list[Exception | None]], first: int = 10
) -> tuple[list[str], Callable[[], Awaitable[dict[tuple[str, int], int]]]]:
    """The calls of producers, and what sends and commits as the table of epochs has it."""
    calls: list[str] = []
    made: Callable[[], Any] = lambda: _Producer(failures, calls, first)  # noqa: E731
    committer = EpochCommitter(made, None, _Member())  # type: ignore[arg-type]
    writes = EpochWrites(sent=[("out", ROWS)], changelogs={("store", "changelog", 0): ROWS})

    async def commit() -> dict[tuple[str, int], int]:
        event = EpochEvent.SEND_AGAIN
        while event is EpochEvent.SEND_AGAIN:
            try:
                await committer.send(writes, OFFSETS)
                event = EpochEvent.UNANSWERED
            except Exception as error:
                event = while_sending(error)
            while event is EpochEvent.UNANSWERED:
                try:
                    return await committer.commit()
                except Exception as error:
                    event = while_committing(error)
            if event is EpochEvent.SEND_AGAIN:
                await committer.abort()
        raise _OverError(event.name)

    return calls, commit


def _run(commit: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await commit()

    return asyncio.run(main())


def test_once() -> None:
    calls, commit = _commit({})
    assert _run(commit) == {("store", 0): 12}
    assert calls == ["start", "begin", "send", "send", "offsets@1", "commit"]


def test_topics_are_asked_for_until_they_are_there() -> None:
    there = {"a"}
    asked: list[list[str]] = []

    class Cluster:
        async def ask_any(self, request: MetadataRequest, response: type[MetadataResponse]) -> MetadataResponse:
            assert not request.allow_auto_topic_creation
            names = [topic.name or "" for topic in request.topics or ()]
            asked.append(names)
            codes = {name: ErrorCode.NONE if name in there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for name in names}
            codes |= {name: ErrorCode.INVALID_TOPIC_EXCEPTION for name in names if " " in name}
            topics = [MetadataResponse.Topic(name=name, error_code=int(code)) for name, code in codes.items()]
            return MetadataResponse(topics=topics)

    committer = EpochCommitter(None, Cluster(), None)  # type: ignore[arg-type]

    async def missing(*topics: str) -> set[str]:
        return set(await committer.missing(topics))

    assert asyncio.run(missing("a", "b", "no topic")) == {"b", "no topic"}
    there.add("b")
    assert asyncio.run(missing("a", "b")) == set()
    assert asyncio.run(missing("a", "b")) == set()
    assert asked == [["a", "b", "no topic"], ["b"]]


def test_the_epoch_has_changed() -> None:
    calls, commit = _commit({"offsets": [CommitFailedError("stale"), None]})
    assert _run(commit) == {("store", 0): 12}
    assert calls == [
        "start", "begin", "send", "send", "offsets", "abort", "begin", "send", "send", "offsets", "commit",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "writes",
    [
        EpochWrites(changelogs={("by-day", "by-day-changelog", 0): ROWS}),
        EpochWrites(sent=[("by-day-changelog", ROWS)]),
    ],
    ids=["changelog", "output"],
)
def test_a_row_that_no_broker_takes_is_told_with_its_topic(writes: EpochWrites) -> None:
    committer = EpochCommitter(
        lambda: _Producer({"send": [ValueError("a row is too large")]}, [], 0),  # type: ignore[arg-type, return-value]
        None,  # type: ignore[arg-type]
        _Member(),  # type: ignore[arg-type]
    )
    with pytest.raises(ValueError, match=r"^topic 'by-day-changelog': a row is too large$"):
        asyncio.run(committer.send(writes, OFFSETS))


@pytest.mark.parametrize(
    "failures",
    [
        {"start": [ConnectionLostError("no broker")]},
        {"begin": [TransactionAbortableError("aborted")]},
        {"send": [RequestTimeoutError("no memory")]},
        {"send": [None, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "out")]},
        {"offsets": [RequestTimeoutError("no answer")]},
        {"commit": [TransactionAbortableError("a record wasn't delivered")]},
        {"offsets": [CommitFailedError("moved on")], "abort": [RequestTimeoutError("no answer")]},
    ],
    ids=str,
)
def test_what_is_sent_again(failures: dict[str, list[Exception | None]]) -> None:
    calls, commit = _commit(failures)
    assert _run(commit) == {("store", 0): 12}
    assert calls[-1] == "commit" and calls.count("commit") <= 2


def test_no_answer_to_the_commit_is_asked_for_again_and_nothing_sent_again() -> None:
    calls, commit = _commit({"commit": [RequestTimeoutError("no answer"), ConnectionLostError("gone"), None]})
    assert _run(commit) == {("store", 0): 12}
    assert calls[-3:] == ["commit"] * 3 and calls.count("send") == 2


@pytest.mark.parametrize(
    "failures",
    [
        {"start": [FencedError("another one is starting")]},
        {"send": [FencedError("fenced")]},
        {"offsets": [FencedError("fenced")]},
        {"commit": [FencedError("fenced")]},
        {"commit": [RequestTimeoutError("no answer"), KafkaError(ErrorCode.INVALID_TXN_STATE)]},
        {"commit": [KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)]},
    ],
    ids=str,
)
def test_what_nobody_knows_the_end_of(failures: dict[str, list[Exception | None]]) -> None:
    calls, commit = _commit(failures)
    with pytest.raises(_OverError, match="RESTART"):
        _run(commit)
    assert "abort" not in calls


def test_a_broker_that_has_forgotten_where_records_are() -> None:
    _, commit = _commit({}, first=-1)
    with pytest.raises(_OverError, match="RESTART"):
        _run(commit)


@pytest.mark.parametrize(
    "failures",
    [
        {"send": [KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "out")]},
        {"send": [KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "out")]},
        {"send": [ValueError("a row takes too many bytes")]},
    ],
    ids=str,
)
def test_what_will_never_be_taken(failures: dict[str, list[Exception | None]]) -> None:
    _, commit = _commit(failures)
    with pytest.raises(_OverError, match="STOP"):
        _run(commit)


def test_a_transaction_is_aborted_also_if_who_asks_for_it_is_cancelled() -> None:
    async def scenario() -> None:
        calls: list[str] = []
        ended = asyncio.Event()

        class Slow(_Producer):
            async def close(self, *, timeout_ms: float = 0) -> None:
                await asyncio.sleep(0.02)
                ended.set()

        committer = EpochCommitter(lambda: Slow({}, calls, 0), None, _Member())  # type: ignore[arg-type, return-value]
        await committer.open()
        closing = asyncio.create_task(committer.close(timeout_ms=1_000))
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert not ended.is_set()
        await committer.close()
        assert ended.is_set()

    asyncio.run(scenario())
