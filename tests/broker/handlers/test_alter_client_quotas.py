"""AlterClientQuotas: what is set is described, also after a restart; each entity is changed wholly or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.broker.client_quotas import MAX_CHANGES, EntityFilter
from kohort.broker.config import Settings
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from tests.broker.handlers.conftest import QUICK, Ask, Deny, asker

Entry = AlterClientQuotasRequest.Entry
ALL = EntityFilter({})
ALICE = {"user": "alice"}


def change(entity: dict[str, str | None], *quotas: tuple[str, float | None]) -> Entry:
    return Entry(
        entity=[Entry.Entity(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[Entry.Op(key=key, value=value or 0.0, remove=value is None) for key, value in quotas],
    )


def alter(ask: Ask, *entries: Entry, **options: Any) -> list[tuple[int, str | None]]:
    response = ask(AlterClientQuotasRequest(entries=list(entries), **options))
    return [(entry.error_code, entry.error_message) for entry in response.entries]


def quotas(broker: Broker) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
    return dict(broker.client_quotas.matching(ALL))


def test_sets_changes_and_removes(ask: Ask, broker: Broker) -> None:
    both = {"user": "alice", "client-id": None}
    entries = change(ALICE, ("producer_byte_rate", 10)), change(both, ("request_percentage", 12.5))
    assert alter(ask, *entries, change({"ip": "::1"}, ("connection_creation_rate", 3))) == [(0, None)] * 3
    assert quotas(broker) == {
        frozenset(ALICE.items()): {"producer_byte_rate": 10},
        frozenset(both.items()): {"request_percentage": 12.5},
        frozenset({("ip", "::1")}): {"connection_creation_rate": 3},
    }
    alter(ask, change(ALICE, ("producer_byte_rate", None), ("consumer_byte_rate", 5)), change(both, ("what", None)))
    assert quotas(broker)[frozenset(ALICE.items())] == {"consumer_byte_rate": 5}
    assert quotas(broker)[frozenset(both.items())] == {"request_percentage": 12.5}
    alter(ask, change(ALICE, ("consumer_byte_rate", None)))
    assert frozenset(ALICE.items()) not in quotas(broker)


async def restarted(broker: Broker) -> None:
    await broker.start()
    await broker.stop()


def test_a_restart_keeps_them(tmp_path: Path) -> None:
    first = Broker.build(Settings.of(QUICK), data_dir=tmp_path)
    ask = asker(first)
    alter(ask, change(ALICE, ("producer_byte_rate", 10), ("consumer_byte_rate", 5)))
    alter(ask, change(ALICE, ("consumer_byte_rate", None)))
    asyncio.run(first.stop())
    second = Broker.build(Settings.of(QUICK), data_dir=tmp_path)
    asyncio.run(restarted(second))
    assert quotas(second) == quotas(first) == {frozenset(ALICE.items()): {"producer_byte_rate": 10}}


def test_the_same_value_again_writes_nothing(ask: Ask, broker: Broker) -> None:
    alter(ask, change(ALICE, ("producer_byte_rate", 10)))
    end = broker.metadata_log.log.log_end_offset
    assert alter(ask, change(ALICE, ("producer_byte_rate", 10))) == [(0, None)]
    assert broker.metadata_log.log.log_end_offset == end


def test_what_is_only_validated_changes_nothing(ask: Ask, broker: Broker) -> None:
    assert alter(ask, change(ALICE, ("producer_byte_rate", 10)), validate_only=True) == [(0, None)]
    assert quotas(broker) == {}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (change({}, ("producer_byte_rate", 1)), "no parts"),
        (change({"group": "g"}, ("producer_byte_rate", 1)), "no type of entity 'group'"),
        (change({"user": ""}, ("producer_byte_rate", 1)), "empty"),
        (change({"ip": "::1", "user": "a"}, ("connection_creation_rate", 1)), "together"),
        (change({"ip": "nowhere"}, ("connection_creation_rate", 1)), "no IP address"),
        (change({"ip": None}, ("producer_byte_rate", 1)), "no quota 'producer_byte_rate'"),
        (change(ALICE, ("connection_creation_rate", 1)), "no quota 'connection_creation_rate'"),
        (change(ALICE, ("producer_byte_rate", -1)), "greater than 0"),
        (change(ALICE, ("request_percentage", float("nan"))), "greater than 0"),
        (change(ALICE, ("producer_byte_rate", 1.5)), "whole number"),
        (change(ALICE, ("producer_byte_rate", 2.0**64)), "at most"),
        (change(ALICE, ("producer_byte_rate", 1), ("producer_byte_rate", 2)), "twice"),
    ],
)
def test_what_cannot_be(entry: Entry, reason: str, ask: Ask, broker: Broker) -> None:
    good = change({"user": "bob"}, ("producer_byte_rate", 1))
    (code, message), other = alter(ask, entry, good)
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None
    assert reason in message
    assert other == (0, None)
    assert quotas(broker) == {frozenset({("user", "bob")}): {"producer_byte_rate": 1}}


def test_an_entity_that_is_there_twice(ask: Ask, broker: Broker) -> None:
    (result,) = alter(ask, change(ALICE, ("producer_byte_rate", 1)), change(ALICE, ("producer_byte_rate", 2)))
    assert result[0] == ErrorCode.INVALID_REQUEST
    assert quotas(broker) == {frozenset(ALICE.items()): {"producer_byte_rate": 1}}  # the first one, as in Kafka


def test_too_many_at_once(ask: Ask, broker: Broker) -> None:
    ((code, _),) = alter(ask, change(ALICE, *[(f"k{number}", None) for number in range(MAX_CHANGES + 1)]))
    assert code == ErrorCode.POLICY_VIOLATION
    entities = [change({"user": str(number)}) for number in range(MAX_CHANGES + 1)]
    assert {code for code, _ in alter(ask, *entities)} == {ErrorCode.POLICY_VIOLATION}
    assert quotas(broker) == {}


def test_who_may_not_alter_configurations_changes_nothing(ask: Ask, broker: Broker, deny: Deny) -> None:
    deny(Operation.ALTER_CONFIGS)
    ((code, _),) = alter(ask, change(ALICE, ("producer_byte_rate", 1)))
    assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert quotas(broker) == {}
