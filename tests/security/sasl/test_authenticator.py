from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.security.sasl.authenticator import (
    Authenticator,
    IllegalStateError,
    SaslSettings,
    State,
    UnsupportedMechanismError,
)
from kohort.security.sasl.exchange import AuthenticationFailedError
from kohort.security.sasl.plain import PlainExchange

USERS = {"alice": "secret", "bob": "other"}
ALICE, BOB, WRONG = b"\0alice\0secret", b"\0bob\0other", b"\0alice\0other"


def authenticator(**max_reauth_ms: int) -> Authenticator:
    mechanisms = {"PLAIN": lambda: PlainExchange(USERS), "OTHER": lambda: PlainExchange(USERS)}
    return Authenticator(SaslSettings(mechanisms, max_reauth_ms))


@pytest.mark.parametrize("raw", [False, True])
def test_who_proves_it_gets_in(raw: bool) -> None:
    who = authenticator()
    assert who.mechanisms == ["PLAIN", "OTHER"]
    assert not who.done
    who.shake("PLAIN", raw=raw)
    assert who.state is (State.RAW_TOKENS if raw else State.TOKENS)
    assert who.evaluate(ALICE, 1000).lifetime_ms == 0
    assert (who.done, who.name, who.expires_at) == (True, "alice", None)
    assert not who.expired(10**15)


def test_a_session_ends_and_goes_on_after_another_exchange() -> None:
    who = authenticator(PLAIN=500)
    who.shake("PLAIN", raw=False)
    assert who.evaluate(ALICE, 1000).lifetime_ms == 500
    assert [who.expired(now) for now in (1000, 1499, 1500)] == [False, False, True]
    who.shake("PLAIN", raw=False)
    assert not who.done
    who.evaluate(ALICE, 1400)
    assert who.done
    assert not who.expired(1800)


def test_nobody_becomes_another() -> None:
    who = authenticator()
    who.shake("PLAIN", raw=False)
    who.evaluate(ALICE, 0)
    who.shake("PLAIN", raw=False)
    with pytest.raises(AuthenticationFailedError, match="Cannot change principals"):
        who.evaluate(BOB, 0)
    assert who.state is State.FAILED


def test_nor_changes_the_mechanism() -> None:
    who = authenticator()
    who.shake("PLAIN", raw=False)
    who.evaluate(ALICE, 0)
    with pytest.raises(UnsupportedMechanismError):
        who.shake("OTHER", raw=False)
    assert who.state is State.FAILED


def test_a_mechanism_that_is_not_enabled() -> None:
    who = authenticator()
    with pytest.raises(UnsupportedMechanismError):
        who.shake("GSSAPI", raw=False)
    assert who.state is State.FAILED


STEPS = st.sampled_from(["shake", "shake raw", "shake other", "alice", "bob", "wrong"])


@given(st.lists(STEPS, max_size=12))
def test_nobody_is_done_without_a_right_token_and_what_failed_stays_so(steps: list[str]) -> None:
    who = authenticator()
    exchanging, proved = False, False
    for step in steps:
        failed = who.state is State.FAILED
        try:
            if step.startswith("shake"):
                who.shake("OTHER" if step.endswith("other") else "PLAIN", raw=step.endswith("raw"))
                exchanging, proved = True, False
            else:
                who.evaluate({"alice": ALICE, "bob": BOB, "wrong": WRONG}[step], 0)
                proved = exchanging and step != "wrong"
                exchanging = False
        except (AuthenticationFailedError, IllegalStateError, UnsupportedMechanismError):
            assert who.state is State.FAILED
            exchanging = proved = False
        assert who.done == proved
        assert not failed or who.state is State.FAILED
