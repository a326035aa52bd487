"""Names that nobody has take as long as wrong passwords: the same work is done for both."""

from __future__ import annotations

import base64
import hashlib
import hmac
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker.config import Settings
from kohort.broker.delegation_tokens import DelegationTokens
from kohort.broker.scram_users import ScramUsers, UserChange
from kohort.security.sasl import plain, scram
from kohort.security.sasl.exchange import AuthenticationFailedError, Exchange
from kohort.security.sasl.plain import PlainExchange
from kohort.security.sasl.scram import ScramExchange, ScramMechanism, credential, salted_password

PASSWORDS = {f"user{number}": "a secret" for number in range(100)}
SALT = b"0123456789abcdefghijklmno"
MECHANISMS = list(ScramMechanism)

Attempt = Callable[[str], None]
"""Logs in by a name with a wrong password."""


def made(exchange: Exchange, *tokens: Callable[[bytes], bytes]) -> None:
    """Exchanges tokens, each made of the last answer; it fails at the last."""
    answer = b""
    for token in tokens[:-1]:
        answer = exchange.evaluate(token(answer))
    with pytest.raises(AuthenticationFailedError):
        exchange.evaluate(tokens[-1](answer))


def by_plain(name: str) -> None:
    made(PlainExchange(PASSWORDS), lambda _: f"\0{name}\0wrong".encode())


def by_scram(mechanism: ScramMechanism, *, tokens: bool) -> Attempt:
    users = ScramUsers(lambda records: None)
    known = credential(mechanism, salted_password(mechanism, "a secret", SALT, 4096), SALT, 4096)
    for name in PASSWORDS:
        users.alter([UserChange(name, mechanism.number, known)])
    delegated = DelegationTokens(
        Settings.of({"delegation.token.secret.key": "secret"}), lambda records: None, lambda: uuid.UUID(int=7)
    )
    token_id = delegated.create("User:alice", "User:alice", (), -1, 0).id
    delegated.credential(mechanism, token_id, 0)
    proof = base64.b64encode(bytes(len(known.stored_key)))

    def last(answer: bytes) -> bytes:
        return b"c=biws," + answer.partition(b",")[0] + b",p=" + proof

    def attempt(name: str) -> None:
        who = token_id if tokens and name in PASSWORDS else name
        exchange = ScramExchange(
            mechanism,
            lambda wanted: users.find(mechanism, wanted),
            lambda: "nonce",
            b"the server's secret",
            lambda wanted: delegated.credential(mechanism, wanted, 0),
            lambda: users.usual_shape(mechanism),
        )
        extension = ",tokenauth=true" if tokens else ""
        made(exchange, lambda _: f"n,,n={who},r=x{extension}".encode(), last)

    return attempt


def attempts() -> Iterator[tuple[str, Attempt]]:
    yield "PLAIN", by_plain
    for mechanism in MECHANISMS:
        yield mechanism.value, by_scram(mechanism, tokens=False)
        yield f"{mechanism.value}, delegation tokens", by_scram(mechanism, tokens=True)


ALL = dict(attempts())


class Work:
    """Notes what is hashed and compared: which function, by which hash, and how many bytes come out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[tuple[str, str]] = []
        hashed = SimpleNamespace(
            new=self._noted("hash", hashlib.new),
            shake_256=self._noted("shake", lambda data: hashlib.shake_256(data)),
            pbkdf2_hmac=self._noted("pbkdf2", hashlib.pbkdf2_hmac),
        )
        keyed = SimpleNamespace(
            digest=self._noted("hmac", hmac.digest, at=2), compare_digest=self._noted("compare", hmac.compare_digest)
        )
        monkeypatch.setattr(scram, "hashlib", hashed)
        monkeypatch.setattr(scram, "hmac", keyed)
        monkeypatch.setattr(plain, "hmac", keyed)

    def _noted(self, what: str, function: Callable[..., Any], at: int = 0) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.done.append((what, args[at] if isinstance(args[at], str) else ""))
            return function(*args)

        return call


@pytest.mark.parametrize("name", ALL)
def test_the_same_work_is_done_for_both(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    ALL[name]("user7")
    known, work.done = work.done, []
    ALL[name]("nobody")
    assert work.done == known
    assert ("compare", "") in known
    assert all(what != "pbkdf2" for what, _ in known)  # which would be work for strangers


@pytest.mark.long
def test_it_takes_as_long_for_both() -> None:
    """Prints medians (`-s` shows them); the bound is far wider than what is measured, 0.95 to 1.03."""
    for name, attempt in ALL.items():
        times: dict[str, list[int]] = {"user7": [], "nobody": []}
        for _ in range(3000):
            for who, taken in times.items():
                began = time.perf_counter_ns()
                attempt(who)
                taken.append(time.perf_counter_ns() - began)
        wrong, unknown = (statistics.median(taken) / 1000 for taken in times.values())
        sys.stdout.write(
            f"{name:40} wrong password {wrong:7.2f} µs, unknown {unknown:7.2f} µs: {unknown / wrong:.3f}\n"
        )
        assert 0.5 < unknown / wrong < 2
