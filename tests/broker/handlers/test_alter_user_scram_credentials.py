"""AlterUserScramCredentials: users come and go, and stay over a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kohort.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kohort.security.sasl.scram import ScramMechanism, credential, salted_password
from tests.broker.handlers.conftest import QUICK, Ask, asker

SHA_256, SHA_512 = ScramMechanism
Upsertion = AlterUserScramCredentialsRequest.Upsertion
Deletion = AlterUserScramCredentialsRequest.Deletion
User = DescribeUserScramCredentialsRequest.User


def upsertion(name: str, mechanism: ScramMechanism = SHA_256, iterations: int = 4096) -> Upsertion:
    return Upsertion(
        name=name,
        mechanism=mechanism.number,
        iterations=iterations,
        salt=b"salt",
        salted_password=salted_password(mechanism, "secret", b"salt", 4096),
    )


def deletion(name: str, mechanism: ScramMechanism = SHA_256) -> Deletion:
    return Deletion(name=name, mechanism=mechanism.number)


def alter(ask: Ask, *changes: Upsertion | Deletion) -> list[tuple[str, ErrorCode]]:
    response = ask(
        AlterUserScramCredentialsRequest(
            deletions=[each for each in changes if isinstance(each, Deletion)],
            upsertions=[each for each in changes if isinstance(each, Upsertion)],
        )
    )
    return [(result.user, ErrorCode(result.error_code)) for result in response.results]


def described(ask: Ask, *names: str) -> dict[str, ErrorCode | list[tuple[int, int]]]:
    response = ask(DescribeUserScramCredentialsRequest(users=[User(name=name) for name in names]))
    return {
        result.user: ErrorCode(result.error_code)
        if result.error_code
        else [(each.mechanism, each.iterations) for each in result.credential_infos]
        for result in response.results
    }


def test_users_come_and_go(ask: Ask, broker: Broker) -> None:
    assert described(ask) == {}
    assert alter(ask, upsertion("alice"), upsertion("bob", SHA_512)) == [("alice", 0), ("bob", 0)]
    assert alter(ask, upsertion("alice", SHA_512, 8192)) == [("alice", 0)]
    assert described(ask) == {"alice": [(1, 4096), (2, 8192)], "bob": [(2, 4096)]}
    assert broker.scram_users.find(SHA_256, "alice") == credential(
        SHA_256, salted_password(SHA_256, "secret", b"salt", 4096), b"salt", 4096
    )
    assert alter(ask, deletion("alice", SHA_512), deletion("bob", SHA_512)) == [("alice", 0), ("bob", 0)]
    assert described(ask) == {"alice": [(1, 4096)]}


async def stopped(broker: Broker) -> None:
    await broker.start()
    await broker.stop()


def test_users_stay_over_a_restart(tmp_path: Path) -> None:
    broker = Broker.build(Settings.of(QUICK), data_dir=tmp_path)
    alter(asker(broker), upsertion("alice"), upsertion("bob"))
    alter(asker(broker), deletion("bob"))
    known = broker.scram_users.find(SHA_256, "alice")
    asyncio.run(stopped(broker))

    again = Broker.build(Settings.of(QUICK), data_dir=tmp_path)
    asyncio.run(stopped(again))
    assert list(again.scram_users) == ["alice"]
    assert again.scram_users.find(SHA_256, "alice") == known


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ([upsertion("")], ["UNACCEPTABLE_CREDENTIAL"]),
        ([upsertion("a", iterations=4095)], ["UNACCEPTABLE_CREDENTIAL"]),
        ([upsertion("a", iterations=16_385)], ["UNACCEPTABLE_CREDENTIAL"]),
        ([upsertion("a", iterations=16_384)], ["NONE"]),
        ([Upsertion(name="a", mechanism=3, iterations=4096)], ["UNSUPPORTED_SASL_MECHANISM"]),
        ([Deletion(name="a", mechanism=0)], ["UNSUPPORTED_SASL_MECHANISM"]),
        ([deletion("nobody")], ["RESOURCE_NOT_FOUND"]),
        ([deletion("known", SHA_512)], ["RESOURCE_NOT_FOUND"]),
        ([upsertion("a"), upsertion("a", SHA_512), upsertion("b")], ["DUPLICATE_RESOURCE", "NONE"]),
        ([deletion("known"), upsertion("known", SHA_512)], ["DUPLICATE_RESOURCE"]),
        ([deletion("known"), deletion("known")], ["DUPLICATE_RESOURCE"]),
    ],
)
def test_what_can_not_be_changed(changes: list[Upsertion | Deletion], codes: list[str], ask: Ask) -> None:
    alter(ask, upsertion("known"))
    before = described(ask)
    assert [code.name for _, code in alter(ask, *changes)] == codes
    if "NONE" not in codes:
        assert described(ask) == before
