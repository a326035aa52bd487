"""The first user of a secured broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kohort.broker.config import ConfigError
from kohort.broker.scram_users import ScramUsers
from kohort.broker.secured.first_user import FirstUser
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.security.sasl.scram import ScramMechanism


@pytest.fixture
def users() -> ScramUsers:
    return ScramUsers(lambda records: None)


def known(users: ScramUsers) -> dict[ScramMechanism, Any]:
    return dict(users.of("admin"))


def test_a_password_is_made_once(tmp_path: Path) -> None:
    first, again = (FirstUser(tmp_path / "password") for _ in range(2))
    assert (first.made, again.made) == (True, False)
    assert first.password == again.password
    assert len(first.password) >= 32
    assert (tmp_path / "password").stat().st_mode & 0o777 == 0o600


def test_it_is_let_in_by_both_mechanisms(tmp_path: Path, users: ScramUsers) -> None:
    assert FirstUser(tmp_path / "password").let_in(users) is None
    assert set(known(users)) == {*ScramMechanism}


def test_what_fits_stays(tmp_path: Path, users: ScramUsers) -> None:
    FirstUser(tmp_path / "password").let_in(users)
    before = known(users)
    assert FirstUser(tmp_path / "password").let_in(users) is None
    assert known(users) == before


def test_another_broker_gets_the_same_password(tmp_path: Path, users: ScramUsers) -> None:
    FirstUser(tmp_path / "password")
    assert FirstUser(tmp_path / "password").let_in(users) is None
    assert set(known(users)) == {*ScramMechanism}


def test_a_password_that_was_changed_stays_and_is_warned_of(tmp_path: Path, users: ScramUsers) -> None:
    FirstUser(tmp_path / "elsewhere").let_in(users)
    FirstUser(tmp_path / "password")
    before = known(users)
    warning = FirstUser(tmp_path / "password").let_in(users)
    assert warning is not None
    assert f"admin has another password than {tmp_path / 'password'} says" in warning
    assert known(users) == before


def test_a_password_that_was_made_anew_counts(tmp_path: Path, users: ScramUsers) -> None:
    FirstUser(tmp_path / "password").let_in(users)
    before = known(users)
    (tmp_path / "password").unlink()
    assert FirstUser(tmp_path / "password").let_in(users) is None
    assert not set(before.values()) & set(known(users).values())
    assert FirstUser(tmp_path / "password").let_in(users) is None


def test_a_crash_between_the_mechanisms_is_mended(tmp_path: Path) -> None:
    written: list[object] = []

    def append(records: list[Any]) -> None:
        if len(written) == 1:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
        written.extend(records)

    users = ScramUsers(append)
    with pytest.raises(OSError, match="the disk is full"):
        FirstUser(tmp_path / "password").let_in(users)
    written.clear()
    assert len(known(users)) == 1
    users = ScramUsers(lambda records: None)
    FirstUser(tmp_path / "password").let_in(users)
    assert len(known(users)) == 2


@pytest.mark.parametrize(
    "text", ["", "\nsecret-secret", "short", "with a space", 'quote"quote', "back\\slash", "ö" * 9]
)
def test_what_is_no_password(tmp_path: Path, text: str) -> None:
    (tmp_path / "password").write_text(text)
    with pytest.raises(ConfigError, match="its first line must be a password"):
        FirstUser(tmp_path / "password")


def test_a_password_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("My#own=p4ssword!\r\nand a note\n")
    assert FirstUser(tmp_path / "password").password == "My#own=p4ssword!"
