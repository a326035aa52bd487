"""Share partitions on the server: with a persister that fails or takes its time, and logs that change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from kohort.broker.broker import Broker
from kohort.broker.context import Context
from kohort.broker.features import FeatureUpdate, UpgradeType
from kohort.broker.handlers import share_acknowledge as acknowledge_handler
from kohort.broker.handlers import share_fetch as fetch_handler
from kohort.broker.reply import Reply
from kohort.broker.session import Session
from kohort.broker.share.hosted_partition import HostedSharePartition, Status
from kohort.broker.topics import ConfigResource, Topic
from kohort.coordinator.purgatory import DelayedOperation
from kohort.coordinator.share_partition import DeadLetter
from kohort.coordinator.share_state import Outcome, ReadOutcome, StateBatch
from kohort.log.log import Log
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_fetch import ShareFetchRequest
from kohort.protocol.records.rows import encode_records
from tests.broker.handlers.conftest import NOW, Ask, append, append_records
from tests.broker.share.groups import (
    GROUP,
    MEMBER,
    Member,
    acquired,
    errors,
    initialized,
    share_acknowledge,
    share_fetch,
)


class SlowPersister:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.reads: list[Reply[ReadOutcome]] = []
        self.writes: list[tuple[Sequence[StateBatch], Reply[Outcome]]] = []

    def read(self, group_id: str, topic_id: UUID, partition: int, leader_epoch: int) -> Reply[ReadOutcome]:
        self.reads.append(Reply())
        return self.reads[-1]

    def write(
        self,
        group_id: str,
        topic_id: UUID,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Reply[Outcome]:
        self.writes.append((batches, Reply()))
        return self.writes[-1][1]


@pytest.fixture
def topic(broker: Broker) -> Topic:
    made = broker.topics.create("t", 1)
    append_records(broker, "t", 0, 10)
    broker.share_state.start()
    initialized(broker, made)
    return made


@pytest.fixture
def persister(broker: Broker, topic: Topic) -> SlowPersister:
    del topic
    made = SlowPersister()
    broker.shares._persister = made
    return made


def only(broker: Broker) -> HostedSharePartition:
    (hosted,) = broker.shares
    return hosted


def answers(broker: Broker, request: Any) -> list[Any]:
    """Where the response of a request will be, as soon as it is there."""
    handle = fetch_handler.handle if isinstance(request, ShareFetchRequest) else acknowledge_handler.handle
    found: list[Any] = []
    response = handle(request, Context(broker, 2, broker.shares._clock(), "", Session()))
    if isinstance(response, Reply):
        response.then(found.append)
    else:
        found.append(response)
    return found


def test_a_partition_that_is_loading_makes_its_fetches_wait(
    broker: Broker, topic: Topic, persister: SlowPersister
) -> None:
    first = answers(broker, share_fetch(topic, max_wait_ms=1000))
    second = answers(broker, share_fetch(topic, member="other", max_wait_ms=1000))
    assert (first, second, len(persister.reads)) == ([], [], 1)
    persister.reads[0](ReadOutcome(start_offset=4))
    assert acquired(first[0]) == [(4, 9, 1)]
    assert second == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_state_that_cannot_be_read_is_told_and_read_again_with_the_next_fetch(
    broker: Broker, topic: Topic, persister: SlowPersister, error: ErrorCode, told: ErrorCode
) -> None:
    found = answers(broker, share_fetch(topic, max_wait_ms=1000))
    persister.reads[0](ReadOutcome(error, "why"))
    assert errors(found[0]) == [(told, 0)]
    assert list(broker.shares) == []
    answers(broker, share_fetch(topic, 1, max_wait_ms=1000))
    assert len(persister.reads) == 2


def test_states_that_contradict_each_other_are_an_error(broker: Broker, topic: Topic, persister: SlowPersister) -> None:
    found = answers(broker, share_fetch(topic, max_wait_ms=1000))
    persister.reads[0](ReadOutcome(start_offset=5, batches=(StateBatch(3, 4, 2, 1),)))
    assert errors(found[0]) == [(ErrorCode.UNKNOWN_SERVER_ERROR, 0)]


def test_a_coordinator_that_is_loading_is_asked_again(broker: Broker, topic: Topic, persister: SlowPersister) -> None:
    now = broker.shares._clock()
    found = answers(broker, share_fetch(topic, max_wait_ms=100_000))
    persister.reads[0](ReadOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    assert (found, only(broker).status) == ([], Status.LOADING)
    broker.wheel.advance(now + 5_000)
    persister.reads[1](ReadOutcome())
    assert acquired(found[0]) == [(0, 9, 1)]


def with_records(broker: Broker, topic: Topic, persister: SlowPersister) -> None:
    found = answers(broker, share_fetch(topic, max_wait_ms=1000))
    persister.reads[0](ReadOutcome())
    assert acquired(found[0]) == [(0, 9, 1)]


def test_acknowledgements_are_answered_when_they_are_persisted_and_not_before(
    broker: Broker, topic: Topic, persister: SlowPersister
) -> None:
    with_records(broker, topic, persister)
    found = answers(broker, share_acknowledge(topic, 1, (0, 4, 1), (5, 9, 2)))
    other = answers(broker, share_fetch(topic, member="other", max_wait_ms=1000))
    assert (found, other) == ([], [])
    ((batches, reply),) = persister.writes
    assert batches == [StateBatch(0, 4, 2, 1), StateBatch(5, 9, 0, 1)]
    reply(Outcome())
    assert errors(found[0]) == [(0, 0)]
    assert acquired(other[0]) == [(5, 9, 2)]


@pytest.mark.parametrize(
    ("error", "told", "fenced"),
    [
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR, False),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND, True),
    ],
)
def test_what_cannot_be_persisted_is_as_before(
    broker: Broker, topic: Topic, persister: SlowPersister, error: ErrorCode, told: ErrorCode, fenced: bool
) -> None:
    with_records(broker, topic, persister)
    found = answers(broker, share_acknowledge(topic, 1, (0, 9, 1)))
    persister.writes[0][1](Outcome(error, "why"))
    assert errors(found[0]) == [(told, 0)]
    if fenced:
        assert list(broker.shares) == []
        return
    again = answers(broker, share_acknowledge(topic, 2, (0, 9, 1)))  # it still has them
    persister.writes[1][1](Outcome())
    assert errors(again[0]) == [(0, 0)]


def test_a_write_that_comes_back_after_its_group_is_gone_is_answered(
    broker: Broker, topic: Topic, persister: SlowPersister
) -> None:
    with_records(broker, topic, persister)
    found = answers(broker, share_acknowledge(topic, 1, (0, 9, 1)))
    broker.shares.evict(GROUP)
    persister.writes[0][1](Outcome())
    assert errors(found[0]) == [(0, 0)]
    assert len(broker.wheel) == 0


def test_locks_expire_though_that_cannot_be_persisted(broker: Broker, topic: Topic, persister: SlowPersister) -> None:
    with_records(broker, topic, persister)
    other = answers(broker, share_fetch(topic, member="other", max_wait_ms=100_000))
    broker.wheel.advance(broker.shares._clock() + 29_000)
    assert other == []
    later = broker.shares._clock() + 31_000
    only(broker)._clock = lambda: later
    broker.wheel.advance(later)
    assert acquired(other[0]) == [(0, 9, 2)]
    persister.writes[0][1](Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert acquired(other[0]) == [(0, 9, 2)]


def test_a_clock_that_is_set_back_does_not_keep_timers_running(
    broker: Broker, topic: Topic, persister: SlowPersister, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_records(broker, topic, persister)
    hosted = only(broker)
    now = broker.shares._clock()
    monkeypatch.setattr(hosted, "_clock", lambda: now - 3_600_000)
    runs: list[int] = []
    expire = hosted._expire

    def once() -> None:
        assert not runs
        runs.append(1)
        expire()

    monkeypatch.setattr(hosted, "_expire", once)
    hosted._timer = broker.wheel.add(now + 31_000, hosted._expire)
    broker.wheel.advance(now + 31_000)
    assert len(persister.writes) == 1
    assert hosted.machine is not None
    assert not hosted.machine.holds(MEMBER)


@pytest.mark.parametrize("request_of", [share_fetch, share_acknowledge])
def test_the_end_of_a_session_leaves_a_later_one_of_the_member_alone(
    broker: Broker, topic: Topic, persister: SlowPersister, request_of: Any
) -> None:
    with_records(broker, topic, persister)
    acks = {"acks": [(0, 4, 1)]} if request_of is share_fetch else {}
    args = [] if acks else [(0, 4, 1)]
    ended = answers(broker, request_of(topic, -1, *args, **acks))
    assert acquired(answers(broker, share_fetch(topic))[0]) == []  # opened over another connection
    persister.writes[0][1](Outcome())
    assert errors(ended[0]) == [(0, 0)]
    assert len(broker.shares.sessions) == 1
    assert errors(answers(broker, share_fetch(topic, 1))[0]) == []


def test_the_end_of_a_session_releases_what_is_held_of_forgotten_partitions(broker: Broker, topic: Topic) -> None:
    """A partition that went to another member isn't in the session any more; its locks would last until they expire."""
    assert acquired(answers(broker, share_fetch(topic))[0]) == [(0, 9, 1)]
    answers(broker, share_fetch(topic, 1, indexes=(), forget=[0]))
    other = answers(broker, share_fetch(topic, member="other", max_wait_ms=1000))
    assert other == []
    broker.shares.release(GROUP, MEMBER)
    assert acquired(other[0]) == [(0, 9, 2)]


@pytest.mark.parametrize("how", ["fenced by its group", "opened again"])
def test_a_fetch_gets_no_records_once_its_session_is_over(broker: Broker, topic: Topic, how: str) -> None:
    """It waits before the others, and would take what its member has just lost, or what nobody receives."""
    assert acquired(answers(broker, share_fetch(topic))[0]) == [(0, 9, 1)]
    waits = answers(broker, share_fetch(topic, 1, max_wait_ms=1000))
    other = answers(broker, share_fetch(topic, member="other", max_wait_ms=1000))
    assert (waits, other) == ([], [])
    if how == "opened again":
        answers(broker, share_fetch(topic))
        append_records(broker, "t", 0, 1)
        broker.shares.fetches.check_and_complete(topic.partitions[0].log)
        assert acquired(other[0]) == [(10, 10, 1)]
    else:
        broker.shares.release(GROUP, MEMBER)
        assert acquired(other[0]) == [(0, 9, 2)]
    assert acquired(waits[0]) == []


# Logs and groups


def test_what_a_fetch_waits_for_is_read_once_to_be_counted(
    broker: Broker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all of it again with every append is quadratic in the bytes that the member waits for."""
    log = topic.partitions[0].log
    size = len(log.read(0, 1 << 20, up_to=10))
    found = answers(broker, share_fetch(topic, max_wait_ms=1000, min_bytes=size * 5))
    read: list[int] = []
    original = Log.read

    def counting(log: Log, offset: int, max_bytes: int, **limits: Any) -> bytes:
        data = original(log, offset, max_bytes, **limits)
        read.append(len(data))
        return data

    monkeypatch.setattr(Log, "read", counting)
    for _ in range(39):
        append_records(broker, "t", 0, 1)
        broker.shares.fetches.check_and_complete(log)
    assert (found, len(read), sum(read)) == ([], 39, size // 10 * 39)
    append_records(broker, "t", 0, 1)
    broker.shares.fetches.check_and_complete(log)
    assert acquired(found[0]) == [(0, 49, 1)]


def test_a_log_that_is_offline_is_an_error_though_nothing_new_is_in_it(broker: Broker, topic: Topic) -> None:
    """Without one the member would ask again at once, and again."""
    assert acquired(answers(broker, share_fetch(topic, max_wait_ms=1000))[0]) == [(0, 9, 1)]
    waiting = answers(broker, share_fetch(topic, 1, max_wait_ms=1000))
    assert waiting == []
    topic.partitions[0].log.offline = "the disk is gone"
    broker.shares.fetches.check_and_complete(topic.partitions[0].log)
    assert errors(waiting[0]) == [(ErrorCode.KAFKA_STORAGE_ERROR, 0)]


def set_group(broker: Broker, **configs: str) -> None:
    broker.topics.set_configs(
        ConfigResource.GROUP, GROUP, {name.replace("_", "."): value for name, value in configs.items()}
    )


def test_what_retention_took_away_is_given_up(broker: Broker, ask: Ask, topic: Topic) -> None:
    member = Member(ask, topic)
    assert acquired(member.fetch(max_records=4)) == [(0, 3, 1)]
    topic.partitions[0].log.delete_records(7)
    assert acquired(member.fetch()) == [(7, 9, 1)]
    assert errors(member.acknowledge((0, 3, 1), (7, 9, 1))) == [(0, 0)]
    machine = only(broker).machine
    assert machine is not None
    assert machine.start_offset == 10


def test_a_group_begins_by_time_once_that_is_found(broker: Broker, topic: Topic, persister: SlowPersister) -> None:
    set_group(broker, share_auto_offset_reset="by_duration:P365000D")

    async def main() -> None:
        found = answers(broker, share_fetch(topic, max_wait_ms=100_000))
        persister.reads[0](ReadOutcome(start_offset=-1))
        while not found:
            await asyncio.sleep(0)
        assert acquired(found[0]) == [(0, 9, 1)]

    asyncio.run(main())


def test_a_group_that_goes_while_its_beginning_is_searched_for(
    broker: Broker, topic: Topic, persister: SlowPersister
) -> None:
    set_group(broker, share_auto_offset_reset="by_duration:P365000D")

    async def main() -> None:
        broker.turns._left = 0.0  # the search begins later
        found = answers(broker, share_fetch(topic, max_wait_ms=100_000))
        persister.reads[0](ReadOutcome(start_offset=-1))
        broker.shares.evict(GROUP)
        assert errors(found[0]) == [(ErrorCode.GROUP_ID_NOT_FOUND, 0)]
        while len(broker.turns):
            await asyncio.sleep(0)
        assert list(broker.shares) == []

    asyncio.run(main())


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 10)])
def test_where_a_group_without_offsets_begins(broker: Broker, ask: Ask, reset: str, first: int) -> None:
    made = broker.topics.create("new", 1)
    append_records(broker, "new", 0, 10)
    broker.share_state.start()
    initialized(broker, made, start_offset=-1)
    set_group(broker, share_auto_offset_reset=reset)
    member = Member(ask, made)
    member.fetch(max_records=1)
    append_records(broker, "new", 0, 2)
    got = acquired(member.fetch(max_records=500))
    assert got[0][0] == (first or 10) if first else got[0][0] == 1
    broker.shares.evict(GROUP)  # what it began with is known now
    set_group(broker, share_auto_offset_reset="latest")
    assert acquired(Member(ask, made, "other").fetch())[0][0] == first


def test_a_group_that_reads_what_is_committed(broker: Broker, ask: Ask) -> None:
    made = broker.topics.create("transactions", 1)
    log = made.partitions[0].log

    def produce(producer: int) -> None:
        append(broker, "transactions", 0, encode_records(
            [(b"k", b"v")] * 2, NOW, producer_id=producer, producer_epoch=0, transactional=True
        ))  # fmt: skip

    def end(producer: int, *, commit: bool) -> None:
        log.append_marker(producer, 0, commit=commit, now=NOW, coordinator_epoch=0)

    produce(1)  # 0, 1: aborted
    produce(2)  # 2, 3
    end(1, commit=False)  # 4
    end(2, commit=True)  # 5
    produce(3)  # 6, 7: open
    append_records(broker, "transactions", 0, 1)  # 8
    broker.share_state.start()
    set_group(broker, share_isolation_level="read_committed")
    initialized(broker, made)
    initialized(broker, made, "uncommitted")
    member = Member(ask, made)
    assert acquired(member.fetch()) == [(2, 5, 1)]
    assert errors(member.acknowledge((2, 5, (1, 1, 0, 0)))) == [(0, 0)]
    assert acquired(member.fetch()) == []
    end(3, commit=False)  # 9
    assert acquired(member.fetch()) == [(8, 9, 1)]
    assert errors(member.acknowledge((8, 9, (1, 0)))) == [(0, 0)]
    assert acquired(Member(ask, made, group="uncommitted").fetch()) == [(0, 9, 1)]
    hosted = broker.shares.of_group(GROUP)[0]
    assert hosted.machine is not None
    assert (hosted.machine.start_offset, hosted.machine.describe()) == (10, [])


def test_a_groups_limits_apply_from_the_next_fetch_on(broker: Broker, ask: Ask, topic: Topic) -> None:
    member = Member(ask, topic)
    assert member.fetch(max_records=1).acquisition_lock_timeout_ms == 30_000
    set_group(broker, share_record_lock_duration_ms="20000", share_renew_acknowledge_enable="false")
    assert member.fetch(max_records=1).acquisition_lock_timeout_ms == 20_000
    refused = member.acknowledge((0, 0, 4), is_renew_ack=True)
    assert errors(refused)[0][0] != ErrorCode.NONE
    machine = only(broker).machine
    assert machine is not None
    first, second = machine.describe()
    assert first.locked_until is not None and second.locked_until is not None
    assert second.locked_until < first.locked_until


def test_share_version_is_asked(broker: Broker, ask: Ask, topic: Topic) -> None:
    set_group(broker, errors_deadletterqueue_topic_name="dlq.t")
    member = Member(ask, topic)
    assert acquired(member.fetch(max_records=5)) == [(0, 4, 1)]
    for level in (1, 0):
        broker.features.update([FeatureUpdate("share.version", level, UpgradeType.SAFE_DOWNGRADE)])
        if level:
            assert errors(member.acknowledge((0, 0, 3))) == [(0, 0)]  # archived at once
            assert (broker.shares.dead_letters.written, broker.shares.dead_letters.failed) == (0, 0)
        else:
            assert member.acknowledge((1, 1, 3)).error_code == ErrorCode.UNSUPPORTED_VERSION
            assert member.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert (list(broker.shares), len(broker.shares.sessions)) == ([], 0)
    broker.features.update([FeatureUpdate("share.version", 2, UpgradeType.UPGRADE)])
    other = Member(ask, topic)
    assert acquired(other.fetch()) == [(1, 9, 1)]
    other.acknowledge((1, 1, 3))
    assert broker.shares.dead_letters.failed == 1  # there is no such topic


def test_nothing_is_left_of_members_that_are_gone(broker: Broker, ask: Ask, topic: Topic) -> None:
    shares = broker.shares
    delivered = [0] * 10
    for number in range(100):
        member = Member(ask, topic, f"member-{number}")
        for first, last, count in acquired(member.fetch()):
            for offset in range(first, last + 1):
                delivered[offset] += 1
                assert delivered[offset] == count
        member.epoch = -1
        assert member.acknowledge().error_code == 0
        assert (list(shares), len(shares.sessions)) == ([], 0)
    assert delivered == [5] * 10
    assert acquired(Member(ask, topic, "another").fetch()) == []
    machine = only(broker).machine
    assert machine is not None
    assert (machine.start_offset, machine.describe()) == (10, [])
    shares.stop()
    assert (list(shares), shares.fetches.delayed, len(broker.wheel)) == ([], 0, 0)


def test_a_group_without_sessions_keeps_its_partitions_until_all_is_written(
    broker: Broker, topic: Topic, persister: SlowPersister
) -> None:
    """Who loads the state meanwhile would write the same dead letters again."""
    set_group(broker, errors_deadletterqueue_topic_name="dlq.t")
    with_records(broker, topic, persister)
    hosted = only(broker)
    sent: list[Sequence[DeadLetter]] = []
    hosted._write_dead_letters = lambda _, letters: sent.append(letters)
    answers(broker, share_acknowledge(topic, 1, (0, 9, 3)))
    broker.shares.release(GROUP, MEMBER)
    persister.writes[0][1](Outcome())
    hosted.dead_lettered(sent[0])
    assert list(broker.shares) == [hosted]
    assert len(persister.writes) == 2
    answers(broker, share_fetch(topic, member="other", max_wait_ms=1000))
    persister.writes[1][1](Outcome())
    assert list(broker.shares) == [hosted]  # it is fetched from again
    broker.shares.release(GROUP, "other")
    assert (list(broker.shares), hosted.status) == ([], Status.FENCED)


class Looks(DelayedOperation):
    """A fetch that waits until its partitions are fenced; it says what it does then."""

    def __init__(self, waits_for: Sequence[HostedSharePartition], then: Callable[[], None]) -> None:
        super().__init__(2**62)
        self.waits_for = waits_for
        self.then = then
        self.looks = 0

    def try_complete(self) -> bool:
        self.looks += 1
        return all(hosted.status is Status.FENCED for hosted in self.waits_for) and self.force_complete()

    def on_complete(self) -> None:
        self.then()

    def on_expiration(self) -> None:
        raise AssertionError


def loading(broker: Broker, count: int) -> list[HostedSharePartition]:
    topic = broker.topics.create("many", count)
    return [broker.shares.load(GROUP, partition) for partition in topic.partitions]


def test_a_fetch_looks_once_when_a_topic_with_many_partitions_goes(broker: Broker, persister: SlowPersister) -> None:
    del persister
    hosted = loading(broker, 50)
    fetch = Looks(hosted, lambda: None)
    assert not broker.shares.fetches.try_complete_else_watch(fetch, hosted)
    before = fetch.looks

    broker.topics.delete("many")

    assert (fetch.completed, fetch.looks - before) == (True, 1)


def test_fetches_that_are_completed_may_end_partitions_of_others_in_a_long_chain(
    broker: Broker, persister: SlowPersister
) -> None:
    del persister
    hosted = loading(broker, 300)

    def ends(each: HostedSharePartition) -> Callable[[], None]:
        return lambda: broker.shares.evict_partition(GROUP, each.key)

    for this, following in pairwise(hosted):
        assert not broker.shares.fetches.try_complete_else_watch(Looks([this], ends(following)), [this])

    broker.shares.evict_partition(GROUP, hosted[0].key)

    assert list(broker.shares) == []
    assert broker.shares.fetches.delayed == 0
