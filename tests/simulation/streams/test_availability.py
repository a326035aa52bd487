from __future__ import annotations

from tests.simulation.streams.availability import outcome_of, rolling_restart, scale_out


def test_warm_ups_keep_tasks_running_while_an_application_is_scaled_out() -> None:
    without, warmed_up = outcome_of(scale_out, standbys=0, warmups=0), outcome_of(scale_out, standbys=0, warmups=2)
    assert warmed_up.available > without.available
    assert warmed_up.worst_ms < without.worst_ms


def test_a_scale_out_moves_no_more_tasks_than_the_new_members_have_to_get() -> None:
    outcome = outcome_of(scale_out, standbys=0, warmups=2)
    assert outcome.moved == 24  # of 48 tasks, half the members being new


def test_standbys_take_over_at_once_in_a_rolling_restart() -> None:
    without, with_standbys = (
        outcome_of(rolling_restart, standbys=0, warmups=2),
        outcome_of(rolling_restart, standbys=1, warmups=2),
    )
    assert with_standbys.available > without.available
    assert with_standbys.worst_ms < 10_000 < without.worst_ms
