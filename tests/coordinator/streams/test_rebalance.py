from __future__ import annotations

from tests.coordinator.streams.driver import App, Driver, joined, settle


def test_the_first_member_gets_all_tasks_at_once() -> None:
    driver = Driver()
    app = App(driver, "m1")
    app.join()
    assert app.have() == ["0_0", "0_1", "0_2", "0_3"]
    assert (app.epoch, driver.group.epoch, driver.group.assignment_epoch, driver.state()) == (2, 2, 2, "Stable")


def test_a_second_member_gets_its_half_when_the_first_has_given_it_up() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    assert (second.epoch, second.have()) == (3, [])
    first.beat()
    assert (first.epoch, len(first.have())) == (2, 2)
    second.beat()
    assert second.have() == []
    first.full()
    second.beat()
    assert (first.epoch, second.epoch, driver.state()) == (3, 3, "Stable")
    assert sorted(first.have() + second.have()) == ["0_0", "0_1", "0_2", "0_3"]
    assert driver.dump() == driver.dump(driver.replayed())


def test_a_member_that_leaves_passes_its_tasks_on() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    second.leave()
    settle(first)
    assert len(first.have()) == 4
    assert driver.dump() == driver.dump(driver.replayed())
