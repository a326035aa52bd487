"""The coordinators' runtime: responses that can't be sent, and records that can't be written."""

from __future__ import annotations

import pytest

from kohort.broker.server import Server
from kohort.coordinator.step import Answer, Record, Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest
from kohort.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.broker.conftest import Run
from tests.broker.raw import RawClient


def join(group_id: str, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"m")],
    )


def test_a_member_of_a_client_with_a_very_long_name_joins(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        name = "c" * 32_767
        response = await client.call(join("g"), 3, client_id=name)
        assert response.error_code == ErrorCode.NONE
        assignment = SyncGroupRequest.Assignment(member_id=response.member_id, assignment=b"a")
        request = SyncGroupRequest(
            group_id="g", generation_id=1, member_id=response.member_id, assignments=[assignment]
        )
        assert (await client.call(request, 3, client_id=name)).assignment == b"a"
        await client.close()

    with_server(test)


def test_a_record_that_does_not_encode_is_an_error_for_who_asked(with_server: Run) -> None:
    async def test(server: Server) -> None:
        groups = server.broker.groups
        groups.start()
        key, value = OffsetCommitKey(group="g" * 40_000, topic="t"), OffsetCommitValue(offset=1)
        given: list[object] = []
        groups.perform(
            groups.entry("g"),
            Step([Record(key, value)], failed=lambda code: Step(answers=[Answer(given.append, code)])),
        )
        assert given == [ErrorCode.UNKNOWN_SERVER_ERROR]

    with_server(test)


def test_soft_state_is_applied_after_the_records_and_before_the_answers_if_they_are_in_the_log(
    with_server: Run,
) -> None:
    async def test(server: Server) -> None:
        groups = server.broker.groups
        groups.start()
        happened: list[object] = []
        entry = groups.entry("g")

        def step(*records: Record) -> Step:
            return Step(
                list(records),
                [Answer(happened.append, "answered")],
                failed=lambda code: Step(answers=[Answer(happened.append, code)]),
                apply=lambda: happened.append(entry.shard.offsets.committed("g", "t", 0) is not None),
            )

        value = OffsetCommitValue(offset=1)
        groups.perform(entry, step(Record(OffsetCommitKey(group="g" * 40_000, topic="t"), value)))
        groups.perform(entry, step())
        groups.perform(entry, step(Record(OffsetCommitKey(group="g", topic="t"), value)))
        assert happened == [ErrorCode.UNKNOWN_SERVER_ERROR, False, "answered", True, "answered"]

    with_server(test)


def test_keys_of_coordinators_are_noted_within_bounds(with_server: Run) -> None:
    async def test(server: Server) -> None:
        groups = server.broker.groups
        groups.start()
        assert groups.entry("g" * 1_000_000) is groups.entry("g" * 1_000_000)
        assert groups.entry("g") is groups.entry("g")
        assert list(groups._partition_of) == ["g"]

    with_server(test)


def test_an_answer_that_can_not_be_given_keeps_no_other_back(with_server: Run) -> None:
    async def test(server: Server) -> None:
        groups = server.broker.groups
        given: list[int] = []

        def fails(response: object) -> None:
            raise OSError("the connection is broken")

        groups.start()
        groups.perform(groups.entry("g"), Step(answers=[Answer(fails, 1), Answer(given.append, 2)]))
        assert given == [2]

    with_server(test)


def test_any_number_of_steps_is_performed_that_others_leave(with_server: Run) -> None:
    async def test(server: Server) -> None:
        groups = server.broker.groups
        groups.start()
        entry = groups.entry("g")
        given: list[int] = []

        def step(number: int) -> Step:
            left = [] if number % 2 else [number + 1]
            return Step(
                answers=[Answer(given.append, number)],
                apply=lambda: entry.shard.pending_steps.extend(step(each) for each in left),
            )

        entry.shard.pending_steps.extend(step(2 * number) for number in range(2_000))
        groups.perform(entry, Step(answers=[Answer(given.append, -1)]))
        assert sorted(given) == list(range(-1, 4_000))
        assert not entry.shard.pending_steps

    with_server(test)


def test_steps_that_are_left_are_performed_after_one_that_fails(with_server: Run) -> None:
    async def test(server: Server) -> None:
        groups = server.broker.groups
        groups.start()
        entry = groups.entry("g")
        given: list[int] = []

        def fails() -> None:
            raise ValueError("a mistake in the coordinator")

        entry.shard.pending_steps.append(Step(apply=fails))
        with pytest.raises(ValueError, match="a mistake"):
            groups.drain()
        entry.shard.pending_steps.append(Step(answers=[Answer(given.append, 1)]))
        groups.drain()
        assert given == [1]

    with_server(test)
