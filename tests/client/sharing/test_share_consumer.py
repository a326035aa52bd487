"""Share consumers over sockets, with a broker that fails as a test wants it to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from kohort.client import AcknowledgeType, ClientConfig, ShareConsumer, ShareRecord, TopicPartition
from kohort.client.errors import ClientError, ClosedError, ConfigError, SharedRecordError, UnsupportedError
from kohort.client.share_consumer import AcknowledgementResult, OffsetSpan
from kohort.client.sharing.membership import ShareMembership
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest
from kohort.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.client.support.scripted_broker import HangUpError
from tests.waiting import run, until

from .share_broker import ACCEPT, REJECT, RELEASE, RENEW, TOPIC, ShareBroker

T0 = TopicPartition(TOPIC, 0)


@asynccontextmanager
async def consuming(
    broker: ShareBroker, **settings: Any
) -> AsyncIterator[tuple[ShareConsumer, list[AcknowledgementResult]]]:
    """A consumer that is quick to try again, and what it reports."""
    config = ClientConfig(
        bootstrap_servers=broker.scripted.address, retry_backoff_ms=2, retry_backoff_max_ms=20, reconnect_backoff_ms=2,
        reconnect_backoff_max_ms=20, request_timeout_ms=5_000,
    )  # fmt: skip
    results: list[AcknowledgementResult] = []
    settings = {"acknowledge_linger_ms": 2, "fetch_max_wait_ms": 20} | settings
    async with ShareConsumer(config, group_id="g", on_acknowledged=results.append, **settings) as consumer:
        consumer.subscribe(TOPIC)
        yield consumer, results


async def take(consumer: ShareConsumer, count: int) -> list[ShareRecord]:
    found: list[ShareRecord] = []
    async for record in consumer:
        found.append(record)
        if len(found) == count:
            break
    return found


def offsets(results: list[AcknowledgementResult], *, failed: bool) -> list[int]:
    return sorted(
        offset
        for result in results
        if (result.error is not None) == failed
        for first, last, kind in result.acknowledgements
        if kind != RENEW
        for offset in range(first, last + 1)
    )


def epochs(broker: ShareBroker, kind: type[ShareFetchRequest] | type[ShareAcknowledgeRequest]) -> list[int]:
    return [request.share_session_epoch for request in broker.scripted.requests(kind)]  # type: ignore[attr-defined]


async def heartbeats(broker: ShareBroker, count: int) -> None:
    """Waits for so many heartbeats more; they come every 20 ms."""
    before = len(broker.scripted.requests(ShareGroupHeartbeatRequest))
    await until(lambda: len(broker.scripted.requests(ShareGroupHeartbeatRequest)) >= before + count)


def test_a_session_from_its_opening_to_its_end() -> None:
    """The rest is released, the session closed, and the group left, in this order."""

    async def scenario() -> None:
        async with ShareBroker(30).running() as broker:
            async with consuming(broker) as (consumer, results):
                found = await take(consumer, 12)
                assert [record.offset for record in found] == list(range(12))
                assert [record.value for record in found[:2]] == [b"0", b"1"]
            assert broker.accepted == set(range(12)) and not broker.locked
            assert offsets(results, failed=False) == list(range(12))
            requests = [each.request for each in broker.scripted.asked]
            ends = [
                type(each)
                for each in requests
                if (isinstance(each, ShareAcknowledgeRequest) and each.share_session_epoch == -1)
                or (isinstance(each, ShareGroupHeartbeatRequest) and each.member_epoch == -1)
            ]
            assert ends == [ShareAcknowledgeRequest, ShareGroupHeartbeatRequest]
            assert epochs(broker, ShareFetchRequest)[0] == 0
            assert epochs(broker, ShareAcknowledgeRequest)[-1] == -1

    run(scenario())


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
        None,
    ],
)
def test_a_session_that_ends_is_opened_again_and_its_records_come_again(error: int | None) -> None:
    """Also if the connection breaks (None). What wasn't answered is reported as failed, once."""

    async def scenario() -> None:
        async with ShareBroker(30).running() as broker:
            async with consuming(broker, max_poll_records=10) as (consumer, results):
                await take(consumer, 10)
                broker.session_errors.append(error)
                await consumer.commit()
                assert offsets(results, failed=True) + offsets(results, failed=False) == list(range(10))
                while len(broker.accepted) < 30:
                    await consumer.poll(timeout_ms=50)
            assert 0 in epochs(broker, ShareFetchRequest)[1:]

    run(scenario())


@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
def test_the_leader_has_moved_and_the_broker_says_where_to(mode: str) -> None:
    async def scenario() -> None:
        async with ShareBroker(30).running() as broker, ShareBroker(30, node_id=2).running() as second:
            broker.scripted.others = [second.scripted.broker]
            async with consuming(broker, max_poll_records=10, share_acquire_mode=mode) as (consumer, results):
                found = await take(consumer, 10)
                broker.other = second.scripted.broker
                broker.lead(2, 5)
                second.lead(2, 5)
                found += await take(consumer, 10)
                assert second.scripted.requests(ShareFetchRequest)
            assert second.accepted, "what the second has given"
            assert offsets(results, failed=False) and broker.accepted | second.accepted

    run(scenario())


def test_errors_that_pass_are_tried_again_and_each_acknowledgement_counts_once() -> None:
    async def scenario() -> None:
        async with ShareBroker(10).running() as broker:
            broker.acknowledge_errors.extend([ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT])
            broker.fetch_errors.extend([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT])
            async with consuming(broker) as (consumer, results):
                await take(consumer, 10)
                assert await consumer.commit() == {T0: None}
            assert broker.accepted == set(range(10))
            assert offsets(results, failed=False) == list(range(10)) and not offsets(results, failed=True)

    run(scenario())


def test_closing_waits_for_what_has_to_be_sent_again() -> None:
    async def scenario() -> None:
        async with ShareBroker(10).running() as broker:
            async with consuming(broker, share_acknowledgement_mode="explicit") as (consumer, results):
                records = await take(consumer, 10)
                broker.acknowledge_errors.append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
                consumer.acknowledge(records)
            assert broker.accepted == set(range(10))
            assert offsets(results, failed=False) == list(range(10)) and not offsets(results, failed=True)

    run(scenario())


def test_one_lost_lock_does_not_spoil_the_other_acknowledgements() -> None:
    async def scenario() -> None:
        async with ShareBroker(20).running() as broker:
            async with consuming(broker, share_acknowledgement_mode="explicit") as (consumer, results):
                records = await take(consumer, 20)
                broker.bad_offsets = {7}
                for record in records:
                    consumer.acknowledge(record, AcknowledgeType(1 + record.offset % 3))
                errors = await consumer.commit()
                assert isinstance(errors[T0], KafkaError)
            assert offsets(results, failed=True) == [7]
            assert len(offsets(results, failed=False)) == 19

    run(scenario())


def test_a_commit_tells_of_what_was_refused_since_the_one_before() -> None:
    async def scenario() -> None:
        async with (
            ShareBroker(20).running() as broker,
            consuming(broker, share_acknowledgement_mode="explicit") as (consumer, results),
        ):
            records = await take(consumer, 2)
            consumer.acknowledge((T0, [OffsetSpan(100, 101)]))
            refused = (await consumer.commit())[T0]
            assert isinstance(refused, KafkaError) and refused.code is ErrorCode.INVALID_RECORD_STATE
            broker.end_locks()
            consumer.acknowledge(records[0])
            await until(lambda: 0 in offsets(results, failed=True))  # answered before anybody asks
            assert isinstance((await consumer.commit())[T0], KafkaError)
            assert await consumer.commit() == {}, "it is told once"

    run(scenario())


def test_a_member_that_failed_unexpectedly_says_so_and_can_subscribe_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with ShareBroker(2_000).running() as broker, consuming(broker, max_poll_records=10) as (consumer, _):
            await take(consumer, 1)
            with monkeypatch.context() as broken:
                broken.setattr(ShareMembership, "request", lambda self: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    while True:
                        await consumer.poll(max_records=1, timeout_ms=50)
            consumer.subscribe(TOPIC)
            assert await take(consumer, 1)

    run(scenario())


@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_heartbeat_that_fails_while_the_member_leaves_does_not_keep_it_from_leaving(hangs_up: bool) -> None:
    async def scenario() -> None:
        async with ShareBroker(20).running() as broker:
            async with consuming(broker) as (consumer, _):
                await take(consumer, 1)
                asked, leaves = asyncio.Event(), asyncio.Event()

                async def fails() -> None:
                    asked.set()
                    await leaves.wait()
                    if hangs_up:
                        raise HangUpError
                    broker.heartbeat_errors.append(ErrorCode.GROUP_AUTHORIZATION_FAILED)

                broker.before_heartbeat = fails
                await asked.wait()
                consumer.unsubscribe()
                leaves.set()
            last = broker.scripted.requests(ShareGroupHeartbeatRequest)[-1]
            assert isinstance(last, ShareGroupHeartbeatRequest) and last.member_epoch == -1

    run(scenario())


def test_a_fenced_member_joins_again_and_goes_on() -> None:
    async def scenario() -> None:
        async with ShareBroker(40).running() as broker:
            async with consuming(broker, max_poll_records=10) as (consumer, _):
                await take(consumer, 5)
                broker.heartbeat_errors.append(ErrorCode.UNKNOWN_MEMBER_ID)
                await until(lambda: not broker.heartbeat_errors)
                while len(broker.accepted) < 40:
                    await consumer.poll(timeout_ms=50)
            joins = [each for each in broker.scripted.requests(ShareGroupHeartbeatRequest) if each.member_epoch == 0]  # type: ignore[attr-defined]
            assert len(joins) == 2

    run(scenario())


@pytest.mark.parametrize("before", [0, 1])
def test_of_a_partition_that_is_taken_away_only_first_deliveries_are_released_unseen(before: int) -> None:
    """Another release would count as a delivery, and may be the last one."""

    async def scenario() -> None:
        async with ShareBroker(40).running() as broker:
            broker.deliveries |= dict.fromkeys(range(5, 40), before)
            async with consuming(broker, share_acknowledgement_mode="explicit") as (consumer, _):
                given = await take(consumer, 5)
                assert len(broker.locked) == 40
                broker.assigned = False
                await until(lambda: not consumer.assignment())
                while more := await consumer.poll(timeout_ms=50):
                    given += more
                for record in given:
                    consumer.acknowledge(record)
                await consumer.commit()
                released = {o for first, last, kind in broker.taken for o in range(first, last + 1) if kind == RELEASE}
                assert broker.accepted == set(range(40 if before else 5))
                assert released == set(range(40)) - broker.accepted

    run(scenario())


def test_locks_are_renewed_while_the_body_works_until_it_has_taken_too_long() -> None:
    async def scenario() -> None:
        async with ShareBroker(1, lock_ms=600).running() as broker:  # long enough for a slow machine
            async with consuming(broker) as (consumer, _):
                await take(consumer, 1)
                await until(lambda: broker.taken.count((0, 0, RENEW)) >= 3)
            assert broker.accepted == {0}
        async with (
            ShareBroker(1, lock_ms=40).running() as broker,
            consuming(broker, lock_renewal_ms=0, share_acknowledgement_mode="explicit") as (consumer, _),
        ):
            (record,) = await take(consumer, 1)
            await heartbeats(broker, 4)  # longer than a lock lasts
            consumer.acknowledge(record)
            await consumer.commit()
            assert broker.taken == [(0, 0, ACCEPT)]

    run(scenario())


def test_brokers_that_cannot_renew_are_not_asked_to() -> None:
    async def scenario() -> None:
        async with ShareBroker(2, lock_ms=40, acknowledge=(1, 1)).running() as broker:
            async with consuming(broker, share_acknowledgement_mode="explicit") as (consumer, results):
                assert consumer.renews_locks() is None
                one, two = await take(consumer, 2)
                assert consumer.renews_locks() is False
                consumer.acknowledge(one, AcknowledgeType.RENEW)
                consumer.acknowledge(two)
                await consumer.commit()
                await until(lambda: len(results) == 2)
                told = {tuple(each.acknowledgements[0]): each.error for each in results}
                consumer.acknowledge(one)
                assert await consumer.commit() == {T0: None}, "its lock goes on"
            assert told[1, 1, ACCEPT] is None
            error = told[0, 0, RENEW]
            assert isinstance(error, KafkaError) and error.code is ErrorCode.UNSUPPORTED_VERSION
            assert broker.accepted == {0, 1}

    run(scenario())


def test_a_corrupt_batch_is_rejected_and_told_once() -> None:
    async def scenario() -> None:
        broker = ShareBroker(30)
        base, data = broker.batches[1]
        broker.batches[1] = base, data[:-1] + bytes([data[-1] ^ 1])
        async with broker.running(), consuming(broker) as (consumer, _):
            found: list[ShareRecord] = []
            errors: list[SharedRecordError] = []
            while len(found) < 20:
                try:
                    found += await take(consumer, 1)
                except SharedRecordError as error:
                    errors.append(error)
            assert sorted(record.offset for record in found) == [*range(10), *range(20, 30)]
            assert [(each.partition, each.first_offset, each.last_offset) for each in errors] == [(T0, 10, 19)]
            await consumer.commit()
            assert broker.archived == set(range(10, 20))

    run(scenario())


def test_what_was_locked_ahead_is_released_and_not_counted_as_given() -> None:
    async def scenario() -> None:
        async with ShareBroker(30).running() as broker:
            async with consuming(broker, max_poll_records=10) as (consumer, _):
                async for _record in consumer:
                    await until(lambda: max(broker.locked) >= 10, "locked ahead")
                    consumer.unsubscribe()
                    await until(lambda: broker.locked == {0})
                    break
                with pytest.raises(ClientError, match="subscribe"):
                    await consumer.poll(timeout_ms=10)
            assert broker.accepted == {0}
            assert all(kind in (ACCEPT, RELEASE) for _, _, kind in broker.taken)

    run(scenario())


def test_a_loop_gives_no_more_records_once_the_consumer_is_closed_in_its_body() -> None:
    async def scenario() -> None:
        async with ShareBroker(30).running() as broker:
            async with consuming(broker) as (consumer, _):
                given = []
                async for record in consumer:
                    given.append(record.offset)
                    await consumer.close()
            assert given == [0]

    run(scenario())


def test_records_that_a_loop_left_come_again_as_batches() -> None:
    async def scenario() -> None:
        async with ShareBroker(30).running() as broker:
            async with consuming(broker) as (consumer, _):
                async for record in consumer:
                    given = {record.offset}
                    break
                while len(given) < 30:
                    batch = await consumer.poll_batch(10_000)
                    assert batch is not None, f"only {sorted(given)} came"
                    given.update(batch["offset"].to_pylist())
            assert given == set(range(30))
            assert not broker.locked

    run(scenario())


def test_it_says_whether_it_has_records_that_it_has_not_given() -> None:
    async def scenario() -> None:
        async with ShareBroker(10).running() as broker:
            settings = {"share_acquire_mode": "record_limit", "max_poll_records": 4}
            async with consuming(broker, **settings) as (consumer, _):
                assert not consumer.buffered()
                batch = await consumer.poll_batch(10_000, max_records=3)
                assert batch is not None
                assert batch.num_rows == 3
                assert consumer.buffered()
                batch = await consumer.poll_batch(10_000)
                assert batch is not None
                assert batch.num_rows == 1
                assert not consumer.buffered()

    run(scenario())


def test_a_strict_limit_locks_nothing_ahead() -> None:
    async def scenario() -> None:
        async with ShareBroker(30).running() as broker:
            async with consuming(broker, share_acquire_mode="record_limit", max_poll_records=2) as (consumer, _):
                async for record in consumer:
                    assert len(broker.locked) <= 2
                    await heartbeats(broker, 1)
                    assert len(broker.locked) <= 2
                    if record.offset == 9:
                        break
            assert {each.share_acquire_mode for each in broker.scripted.requests(ShareFetchRequest)} == {1}  # type: ignore[attr-defined]

    run(scenario())


def test_refusals_are_raised_in_the_loop() -> None:
    async def scenario() -> None:
        async with ShareBroker(1).running() as broker:
            broker.heartbeat_errors.append(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            async with consuming(broker) as (consumer, _):
                with pytest.raises(KafkaError, match="READ on the group"):
                    await take(consumer, 1)
            broker.heartbeat_errors.append(ErrorCode.UNSUPPORTED_VERSION)
            async with consuming(broker) as (consumer, _):
                with pytest.raises(UnsupportedError, match="no share groups"):
                    await take(consumer, 1)
            broker.fetch_errors.append(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            async with consuming(broker) as (consumer, _):
                with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                    await take(consumer, 1)

    run(scenario())


def test_wrong_calls_say_what_is_wrong() -> None:
    for wrong in (
        {"group_id": ""},
        {"group_id": "g", "share_acknowledgement_mode": "auto"},
        {"group_id": "g", "share_acquire_mode": "strict"},
        {"group_id": "g", "max_poll_records": 0},
    ):
        with pytest.raises(ConfigError, match=next(reversed(wrong))):
            ShareConsumer("localhost:1", **wrong)

    async def scenario() -> None:
        consumer = ShareConsumer("localhost:1", group_id="g")
        with pytest.raises(ClientError, match="isn't started"):
            consumer.subscribe("t")
        await consumer.close()
        with pytest.raises(ClosedError):
            consumer.subscribe("t")

    run(scenario())


@pytest.mark.parametrize("seed", range(12))
def test_whatever_fails_every_record_is_accepted_once_and_every_acknowledgement_reported_once(seed: int) -> None:
    """Sessions, connections, locks, members and acknowledgements fail at random; then nothing fails any more."""
    random = Random(seed)
    passing = (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.INVALID_RECORD_STATE,
        0,
        None,
    )
    ending = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH, 0, 0, None)
    said: Counter[int] = Counter()

    def fail(broker: ShareBroker) -> None:
        match random.randrange(8):
            case 0:
                broker.acknowledge_errors.append(random.choice(passing))
            case 1:
                broker.session_errors.append(random.choice(ending))
            case 2:
                broker.fetch_errors.append(random.choice((ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, None)))
            case 3:
                broker.end_locks()
            case 4:
                broker.heartbeat_errors.append(ErrorCode.UNKNOWN_MEMBER_ID)

    async def scenario() -> None:
        async with ShareBroker(200).running() as broker:
            mode = random.choice(["implicit", "explicit"])
            settings = {"max_poll_records": random.choice([3, 20, 100]), "share_acknowledgement_mode": mode}
            async with consuming(broker, **settings) as (consumer, results):
                steps = 0
                while len(broker.accepted) + len(broker.archived) < 200:
                    steps += 1
                    for record in await consumer.poll(random.choice([1, 10, 50]), timeout_ms=20):
                        if mode == "explicit":
                            kind = random.choice((ACCEPT, ACCEPT, RELEASE, REJECT))
                            said[record.offset] += 1
                            consumer.acknowledge(record, AcknowledgeType(kind))
                    if steps < 60:
                        fail(broker)
                    elif steps % 50 == 0:
                        broker.end_locks()  # of records whose acknowledgement was refused
                    assert steps < 2000
                await consumer.commit()
            if mode == "explicit":
                told = Counter(
                    offset
                    for result in results
                    for first, last, kind in result.acknowledgements
                    if kind in (ACCEPT, REJECT)
                    for offset in range(first, last + 1)
                )
                assert all(told[offset] <= times for offset, times in said.items())
            good = [
                offset
                for result in results
                if result.error is None
                for first, last, kind in result.acknowledgements
                if kind == ACCEPT
                for offset in range(first, last + 1)
            ]
            assert len(good) == len(set(good)) and broker.accepted.issuperset(good)
            assert broker.accepted | broker.archived == set(range(200))

    run(scenario())
