"""Users of SCRAM: who may log in with a password."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kohort.client.administration.node_lookup import any_node, controller
from kohort.client.administration.request_router import Failure, Node, RequestRouter
from kohort.client.errors import kafka_error, raise_for
from kohort.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kohort.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

__all__ = ["SCRAM_MECHANISMS", "ScramCredential", "Users"]

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")

_NUMBERS: Final = {name: number for number, name in enumerate(SCRAM_MECHANISMS, 1)}
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_SALT_BYTES: Final = 24

Upsertion = AlterUserScramCredentialsRequest.Upsertion
Deletion = AlterUserScramCredentialsRequest.Deletion


class ScramCredential(NamedTuple):
    """A user's credential, without its secrets.

    Attributes:
        mechanism: such as "SCRAM-SHA-512".
        iterations: the more, the longer each guess of the password takes.
    """

    mechanism: str
    iterations: int


class Users:
    """Users of SCRAM: `Admin.users`. Errors and `timeout_ms` as in `Topics`."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(self, *names: str, timeout_ms: int | None = None) -> dict[str, list[ScramCredential]]:
        """Returns the credentials of users by name, of all users if none is named.

        Raises:
            KafkaError: RESOURCE_NOT_FOUND: there is no such user.
            PartialFailureError: some of several can't be described.
        """
        deadline = self._router.deadline(timeout_ms)
        if not names:

            async def ask_all(node: Node, keys: Sequence[None]) -> Mapping[None, dict[str, list[ScramCredential]]]:
                results = (await _described(node, ())).results
                return {None: {result.user: _credentials(result) for result in results}}

            return (await self._router.ask_nodes([None], any_node, ask_all, deadline)).checked()[None]

        async def ask(node: Node, keys: Sequence[str]) -> Mapping[str, list[ScramCredential] | Failure]:
            return {
                result.user: kafka_error(result.error_code, result.error_message)
                if result.error_code
                else _credentials(result)
                for result in (await _described(node, keys)).results
            }

        wanted = list(dict.fromkeys(names))
        return (await self._router.ask_nodes(wanted, any_node, ask, deadline)).checked()

    async def set(
        self,
        name: str,
        password: str,
        *,
        mechanism: str = "SCRAM-SHA-512",
        iterations: int = 8192,
        timeout_ms: int | None = None,
    ) -> None:
        """Makes a user, or gives one another password; the password itself isn't sent.

        Args:
            mechanism: one of `SCRAM_MECHANISMS`; a user may have a password for each.
            iterations: from 4096 to 16384.

        Raises:
            ValueError: there is no such mechanism.
            KafkaError: UNACCEPTABLE_CREDENTIAL.
        """
        if mechanism not in _NUMBERS:
            raise ValueError(f"mechanism={mechanism!r}: one of {', '.join(SCRAM_MECHANISMS)} is needed")
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = await asyncio.to_thread(
            hashlib.pbkdf2_hmac, _HASHES[mechanism], password.encode(), salt, max(1, iterations)
        )
        change = Upsertion(
            name=name, mechanism=_NUMBERS[mechanism], iterations=iterations, salt=salt, salted_password=salted
        )
        await self._alter(AlterUserScramCredentialsRequest(upsertions=[change]), timeout_ms)

    async def delete(self, name: str, mechanism: str, *, timeout_ms: int | None = None) -> None:
        """Removes a user's credential; connections that there are stay until they authenticate again.

        Raises:
            ValueError: there is no such mechanism.
            KafkaError: RESOURCE_NOT_FOUND.
        """
        if mechanism not in _NUMBERS:
            raise ValueError(f"mechanism={mechanism!r}: one of {', '.join(SCRAM_MECHANISMS)} is needed")
        change = Deletion(name=name, mechanism=_NUMBERS[mechanism])
        await self._alter(AlterUserScramCredentialsRequest(deletions=[change]), timeout_ms)

    async def _alter(self, request: AlterUserScramCredentialsRequest, timeout_ms: int | None) -> None:
        async def ask(node: Node, keys: Sequence[str]) -> Mapping[str, Failure | None]:
            answer = await node.ask(request, AlterUserScramCredentialsResponse)
            return {
                result.user: kafka_error(result.error_code, result.error_message) if result.error_code else None
                for result in answer.results
            }

        names = [*(each.name for each in request.deletions), *(each.name for each in request.upsertions)]
        (await self._router.ask_nodes(names, controller, ask, self._router.deadline(timeout_ms))).checked()


async def _described(node: Node, names: Sequence[str]) -> DescribeUserScramCredentialsResponse:
    users = [DescribeUserScramCredentialsRequest.User(name=name) for name in names]
    answer = await node.ask(
        DescribeUserScramCredentialsRequest(users=users or None), DescribeUserScramCredentialsResponse
    )
    raise_for(answer.error_code, answer.error_message)
    return answer


def _credentials(result: DescribeUserScramCredentialsResponse.Result) -> list[ScramCredential]:
    """Those of a user, without mechanisms that aren't known here."""
    names = {number: name for name, number in _NUMBERS.items()}
    return [
        ScramCredential(names[each.mechanism], each.iterations)
        for each in result.credential_infos
        if each.mechanism in names
    ]
