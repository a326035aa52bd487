"""What clients log in with that have a delegation token."""

from __future__ import annotations

import uuid

from kohort.broker.config import Settings
from kohort.broker.delegation_tokens import DelegationToken, DelegationTokens
from kohort.protocol.stored.cluster_metadata import MetadataRecord
from kohort.security.sasl.scram import SALT_BYTES, ScramMechanism
from tests.broker.handlers.delegation_tokens import ENABLED


def tokens(**settings: object) -> tuple[DelegationTokens, list[MetadataRecord]]:
    log: list[MetadataRecord] = []
    return DelegationTokens(Settings.of(settings), log.extend, lambda: uuid.UUID(int=7)), log


def test_without_the_secret_that_made_them_tokens_are_of_no_use() -> None:
    """Their passwords could be computed by whoever knows their ids."""
    enabled, log = tokens(**ENABLED)
    token = enabled.create("User:alice", "User:alice", (), -1, 0)
    assert isinstance(token, DelegationToken)
    disabled, _ = tokens()
    for record in log:
        disabled.replay(record)
    for mechanism in ScramMechanism:
        assert enabled.credential(mechanism, token.id, 0) is not None
        assert disabled.credential(mechanism, token.id, 0) is None


def test_their_salts_are_as_long_as_those_of_unknown_ones() -> None:
    enabled, _ = tokens(**ENABLED)
    token = enabled.create("User:alice", "User:alice", (), -1, 0)
    known = enabled.credential(ScramMechanism.SHA_512, token.id, 0)
    assert known is not None
    assert len(known.credential.salt) == SALT_BYTES


def test_a_token_that_has_expired_or_is_removed_lets_nobody_in() -> None:
    enabled, _ = tokens(**ENABLED)
    token = enabled.create("User:alice", "User:alice", (), -1, 0)
    mechanism = ScramMechanism.SHA_256
    assert enabled.credential(mechanism, token.id, token.expires_at) is not None
    assert enabled.credential(mechanism, token.id, token.expires_at + 1) is None
    enabled.expire(enabled.hmac(token.id), "User:alice", -1, 1)
    assert enabled.credential(mechanism, token.id, 1) is None
