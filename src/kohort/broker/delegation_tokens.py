"""Delegation tokens (KIP-48): made, renewed, expired, kept in the metadata log; with them clients log in by SCRAM.

A token's secret (HMAC) is made of its id and the broker's own secret, and isn't kept. Its id is a name in SCRAM, and
its HMAC in base64 the password.
"""

from __future__ import annotations

import base64
import hmac
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from kohort.broker.config import Settings
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.stored.cluster_metadata import (
    DelegationTokenRecord,
    MetadataRecord,
    RemoveDelegationTokenRecord,
)
from kohort.security.sasl.scram import SALT_BYTES, ScramMechanism, TokenCredential, credential, salted_password

__all__ = ["DelegationToken", "DelegationTokens"]

REMOVED_AT_ONCE: Final = 1000
"""Expired tokens that are removed in one batch, as in Kafka."""

_MAX_LONG: Final = 2**63 - 1


class DelegationToken(NamedTuple):
    """A token.

    Attributes:
        owner: whom it stands for, as "User:alice".
        requester: who asked for it.
        renewers: who may renew it beside its owner.
        issued_at, expires_at: in ms since 1970.
        max_at: until when it can be renewed.
    """

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_at: int
    max_at: int
    expires_at: int

    def concerns(self, principal: str) -> bool:
        """Whether a principal is its owner, or a renewer, or has asked for it."""
        return principal in (self.owner, self.requester, *self.renewers)

    def expired(self, now: int) -> bool:
        return now > min(self.max_at, self.expires_at)


class DelegationTokens:
    """The tokens of a cluster.

    Args:
        append: appends records to the metadata log, as one batch; raises KafkaError.
        new_id: makes ids.
    """

    def __init__(
        self,
        settings: Settings,
        append: Callable[[list[MetadataRecord]], None],
        new_id: Callable[[], uuid.UUID],
    ) -> None:
        self._secret = settings.text("delegation.token.secret.key").encode()
        self._max_lifetime_ms = settings.int("delegation.token.max.lifetime.ms")
        self._expiry_ms = settings.int("delegation.token.expiry.time.ms")
        self._append = append
        self._new_id = new_id
        self._tokens: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[tuple[ScramMechanism, str], TokenCredential] = {}

    def __iter__(self) -> Iterator[DelegationToken]:
        return iter(self._tokens.values())

    @property
    def enabled(self) -> bool:
        """Whether there is a secret to make tokens with."""
        return bool(self._secret)

    def hmac(self, token_id: str) -> bytes:
        """The secret of a token."""
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def create(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int, now: int
    ) -> DelegationToken:
        """Makes a token.

        Args:
            max_lifetime_ms: how long it can be renewed; 0 or less for as long as the broker allows.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        lifetime = min(max_lifetime_ms, self._max_lifetime_ms) if max_lifetime_ms > 0 else self._max_lifetime_ms
        max_at = _sum(now, lifetime)
        expires_at = min(max_at, _sum(now, self._expiry_ms))
        token = DelegationToken(_base64_id(self._new_id()), owner, requester, tuple(renewers), now, max_at, expires_at)
        self._put(token)
        return token

    def renew(self, secret: bytes, principal: str, period_ms: int, now: int) -> int:
        """Renews a token for some time, 0 or less for as long as the broker does; returns when it expires.

        Raises:
            KafkaError: DELEGATION_TOKEN_NOT_FOUND, _EXPIRED or _OWNER_MISMATCH, or KAFKA_STORAGE_ERROR.
        """
        token = self._find(secret)
        if token.expired(now):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_renewer(token, principal)
        period = min(period_ms, self._expiry_ms) if period_ms > 0 else self._expiry_ms
        return self._put(token._replace(expires_at=min(token.max_at, _sum(now, period))))

    def expire(self, secret: bytes, principal: str, period_ms: int, now: int) -> int:
        """Lets a token expire after some time, below 0 at once; returns when.

        Raises:
            KafkaError: as `renew`.
        """
        token = self._find(secret)
        _check_renewer(token, principal)
        if period_ms < 0:
            self._write([RemoveDelegationTokenRecord(token_id=token.id)])
            return now
        if token.expired(now):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return self._put(token._replace(expires_at=min(token.max_at, _sum(now, period_ms))))

    def credential(self, mechanism: ScramMechanism, token_id: str, now: int) -> TokenCredential | None:
        """What a client with a token logs in by; None if there is no such token, or the broker has no secret for them.

        A few ms for its first time. It is no matter that this shows which ids there are: they can't be guessed.
        """
        token = self._tokens.get(token_id) if self.enabled else None
        if token is None or token.expired(now):
            return None
        known = self._credentials.get((mechanism, token_id))
        if known is None or known.expires_at != token.expires_at:
            secret, iterations = self.hmac(token_id), mechanism.min_iterations
            salt = hmac.digest(secret, mechanism.value.encode(), "sha256")[:SALT_BYTES]
            salted = salted_password(mechanism, base64.b64encode(secret).decode(), salt, iterations)
            made = credential(mechanism, salted, salt, iterations)
            known = TokenCredential(made, token.owner.partition(":")[2], token.expires_at)
            self._credentials[mechanism, token_id] = known
        return known

    def sweep(self, now: int) -> None:
        """Removes tokens that have expired.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        expired = [token.id for token in self if token.expired(now)][:REMOVED_AT_ONCE]
        if expired:
            self._write([RemoveDelegationTokenRecord(token_id=token_id) for token_id in expired])

    def replay(self, record: MetadataRecord) -> None:
        """Applies a record of the metadata log."""
        if isinstance(record, DelegationTokenRecord):
            self._tokens[record.token_id] = DelegationToken(
                record.token_id,
                record.owner,
                record.requester,
                tuple(record.renewers),
                record.issue_timestamp,
                record.max_timestamp,
                record.expiration_timestamp,
            )
            self._ids[self.hmac(record.token_id)] = record.token_id
        elif isinstance(record, RemoveDelegationTokenRecord):
            self._tokens.pop(record.token_id, None)
            self._ids.pop(self.hmac(record.token_id), None)
            for mechanism in ScramMechanism:
                self._credentials.pop((mechanism, record.token_id), None)

    def _find(self, secret: bytes) -> DelegationToken:
        token_id = self._ids.get(secret)
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return self._tokens[token_id]

    def _put(self, token: DelegationToken) -> int:
        self._write(
            [
                DelegationTokenRecord(
                    owner=token.owner,
                    requester=token.requester,
                    renewers=token.renewers,
                    issue_timestamp=token.issued_at,
                    max_timestamp=token.max_at,
                    expiration_timestamp=token.expires_at,
                    token_id=token.id,
                )
            ]
        )
        return token.expires_at

    def _write(self, records: list[MetadataRecord]) -> None:
        self._append(records)
        for record in records:
            self.replay(record)


def _check_renewer(token: DelegationToken, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _base64_id(made: uuid.UUID) -> str:
    """An id as Kafka writes it."""
    return base64.urlsafe_b64encode(made.bytes).rstrip(b"=").decode()


def _sum(now: int, duration: int) -> int:
    return min(now + duration, _MAX_LONG)
