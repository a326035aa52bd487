"""Every error that a heartbeat can be answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.client.errors import FencedError, UnsupportedError
from kohort.client.heartbeat_errors import Reaction
from kohort.client.streams.heartbeat_errors import HEARTBEAT_ERRORS
from kohort.protocol.errors import ErrorCode, KafkaError

GUIDE = Path(__file__).parents[3] / "docs" / "streams-member.md"


def test_the_guide_says_what_becomes_of_each() -> None:
    for code, (reaction, _) in HEARTBEAT_ERRORS.reactions.items():
        if code:
            assert any(
                f"`{code.name}`" in line and reaction.value in line for line in GUIDE.read_text().splitlines()
            ), code


def test_errors_that_are_not_in_the_table() -> None:
    assert HEARTBEAT_ERRORS.reaction_to(ErrorCode.REQUEST_TIMED_OUT) is Reaction.RETRY
    assert HEARTBEAT_ERRORS.reaction_to(ErrorCode.UNKNOWN_SERVER_ERROR) is Reaction.FAIL
    assert HEARTBEAT_ERRORS.reaction_to(31_000) is Reaction.FAIL


def test_a_group_that_is_gone_is_made_again_by_those_who_were_in_it() -> None:
    assert HEARTBEAT_ERRORS.reaction_to(ErrorCode.GROUP_ID_NOT_FOUND, joining=True) is Reaction.FAIL
    assert HEARTBEAT_ERRORS.reaction_to(ErrorCode.GROUP_ID_NOT_FOUND, joining=False) is Reaction.REJOIN


@pytest.mark.parametrize(
    "code", [code for code, (what, _) in HEARTBEAT_ERRORS.reactions.items() if what is Reaction.FAIL]
)
def test_fatal_errors_say_what_the_broker_said_and_what_to_do(code: ErrorCode) -> None:
    error = HEARTBEAT_ERRORS.fatal_error(code, "The broker's words.")
    assert code.name in str(error)
    assert "The broker's words; " in str(error)
    assert HEARTBEAT_ERRORS.reactions[code][1] in str(error)
    kinds = {ErrorCode.FENCED_INSTANCE_ID: FencedError, ErrorCode.UNSUPPORTED_VERSION: UnsupportedError}
    assert type(error) is kinds.get(code, KafkaError)


def test_unknown_errors_say_their_code() -> None:
    assert "31000" in str(HEARTBEAT_ERRORS.fatal_error(31_000, None))
