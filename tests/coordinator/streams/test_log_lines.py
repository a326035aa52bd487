"""Log lines that say why a group rebalanced."""

from __future__ import annotations

import logging

import pytest

from tests.coordinator.streams.driver import App, Driver, joined

SESSION = 45_000


@pytest.fixture
def driver(caplog: pytest.LogCaptureFixture) -> Driver:
    caplog.set_level(logging.INFO)
    return Driver()


def test_an_epoch_says_why_it_began(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    joined(driver, ["m1"])
    (line,) = (line for line in caplog.messages if "epoch bumped" in line)
    assert "group=app epoch=2" in line
    for cause in ("topology 0 was brought", "member m1 joined", "topics changed", "num.standby.replicas"):
        assert cause in line


def test_a_member_that_moves_says_what_it_has_and_gives_up(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    (first,) = joined(driver, ["m1"])
    App(driver, "m2").join()
    caplog.clear()
    first.beat()
    (line,) = (line for line in caplog.messages if "member moved" in line)
    assert "group=app member=m1 epoch=2 was=2 state=Unrevoked tasks=[0_0,0_1] revoking=[0_2,0_3]" in line


def test_a_fenced_member_is_named_with_the_reason(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    (app,) = joined(driver, ["m1"])
    app.beat(member_epoch=99)
    assert "member='m1' epoch=99 error=FENCED_MEMBER_EPOCH" in caplog.messages[-1]


def test_an_expired_member_is_named_with_the_reason(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    joined(driver, ["m1"])
    driver.sleep(SESSION)
    assert any("member removed group=app member=m1" in line and "45000 ms" in line for line in caplog.messages)


def test_who_comes_and_goes_is_named_with_its_host(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    (app,) = joined(driver, ["m1"])
    assert "member joins group=app member=m1 instance=None client=client host=10.0.0.1" in caplog.messages
    app.leave()
    assert "member removed group=app member=m1 client=client host=10.0.0.1 because=it left" in caplog.messages
