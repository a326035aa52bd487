"""Forms, with any values; plans that wait; attempts that are slowed down; lines of the audit log."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.audit import AuditLog, Who
from kohort.console.changes.fields import Fields
from kohort.console.changes.pending import FOR_S, MOST, MOST_CHARACTERS, MOST_OF_ONE, PendingPlans, Shown
from kohort.console.changes.plan import Plan
from kohort.console.login_pages import way_on
from kohort.console.record_ranges import ChoiceError
from kohort.console.throttle import FREE, LONGEST_S, MOST_NAMES, Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(st.text())
def test_any_text_is_taken_or_refused(text: str) -> None:
    fields = Fields({"f": [text]})
    for read in (
        lambda: fields.whole("f", "it"),
        lambda: fields.pairs("f", "they"),
        lambda: fields.partitions("f"),
        lambda: fields.needed("f", "it"),
    ):
        try:
            read()
        except ChoiceError as error:
            assert str(error)


@pytest.mark.parametrize("text", ["0-99999,0-99999", ",".join(["0-99999"] * 100_000), "0-100000"])
def test_there_is_an_end_to_partitions(text: str) -> None:
    with pytest.raises(ChoiceError, match="partitions"):
        Fields({"f": [text]}).partitions("f")
    assert len(Fields({"f": ["0-99999"]}).partitions("f") or ()) == 100_000


@given(st.sets(st.integers(0, 50), min_size=1))
def test_partitions_come_back(numbers: set[int]) -> None:
    from kohort.number_ranges import numbers as text

    assert Fields({"f": [text(numbers)]}).partitions("f") == sorted(numbers)


def test_plans_are_taken_once_by_who_was_shown_them_and_not_for_ever() -> None:
    clock = Clock()
    pending = PendingPlans(clock)
    shown = Shown(Plan(action="a", target="t", title="T"), Fields())
    token = pending.keep("me", shown)
    assert pending.take("you", token) is None
    assert pending.take("me", token) is shown
    assert pending.take("me", token) is None
    late = pending.keep("me", shown)
    clock.now += FOR_S
    assert pending.take("me", late) is None
    first = pending.keep("me", shown)
    for number in range(MOST):
        pending.keep(str(number), shown)
    assert pending.take("me", first) is None


def test_plans_of_one_push_out_their_own_and_large_ones_those_that_wait_longest() -> None:
    clock = Clock()
    pending = PendingPlans(clock)
    shown = Shown(Plan(action="a", target="t", title="T"), Fields())
    other = pending.keep("you", shown)
    own = [pending.keep("me", shown) for _ in range(MOST_OF_ONE + 1)]
    assert [pending.take("me", each) is shown for each in own] == [False] + [True] * MOST_OF_ONE
    half = Shown(shown.plan, Fields({"value": ["x" * (MOST_CHARACTERS // 2)]}))
    large = [pending.keep(str(number), half) for number in range(3)]
    assert pending.take("you", other) is None
    assert [pending.take(str(number), each) is half for number, each in enumerate(large)] == [False, True, True]
    pending.keep("me", half)
    clock.now += FOR_S
    pending.keep("me", shown)
    assert len(pending._kept) == 1


def test_a_login_forgets_no_attempts_by_other_names() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for name in ("alice", "mallory", "alice", "alice"):
        assert throttle.begin("192.0.2.1", name) == 0.0
    throttle.succeeded("192.0.2.1", "mallory")
    assert [throttle.begin("192.0.2.1", "alice") for _ in range(3)] == [0.0, 0.0, 1.0]
    clock.now += 1
    assert throttle.begin("192.0.2.1", "mallory") == 0.0
    throttle.succeeded("192.0.2.1", "mallory")
    assert throttle.begin("192.0.2.1", "mallory") == 1.0
    throttle.succeeded("192.0.2.1", "alice")
    assert [throttle.begin("192.0.2.1", str(name)) for name in range(FREE)] == [0.0] * FREE


def test_a_throttle_remembers_some_names_of_an_address() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for name in range(1_000):
        clock.now += LONGEST_S
        assert throttle.begin("192.0.2.1", str(name)) == 0.0
        if name >= MOST_NAMES:
            throttle.succeeded("192.0.2.1", str(name))
    ((names, _),) = throttle._tried.values()
    assert names.total() == MOST_NAMES
    assert len(names) <= MOST_NAMES + 1


def test_guessing_becomes_slow_for_a_network_and_for_nobody_else() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    assert [throttle.begin("2001:db8::1") for _ in range(FREE)] == [0.0] * FREE
    assert throttle.begin("2001:db8::2") == 1.0
    assert throttle.begin("2001:db8:0:1::1") == throttle.begin("192.0.2.1") == 0.0
    clock.now += 1
    assert throttle.begin("2001:db8::1") == 0.0
    assert throttle.begin("2001:db8::1") == 2.0
    for _ in range(20):
        clock.now += LONGEST_S
        assert throttle.begin("2001:db8::1") == 0.0
    assert throttle.begin("2001:db8::1") == LONGEST_S
    throttle.succeeded("2001:db8::1")
    assert throttle.begin("2001:db8::1") == 0.0


def test_audit_lines_are_appended_whole_and_refusals_cannot_fill_the_disk(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "audit"
    log = AuditLog(file, clock=clock)
    log.write(Who("eve\n{", "::1"), "done", action="a", target="\u2028")
    log.close()
    log = AuditLog(file, pace=clock)
    for _ in range(1_000):
        log.refused(Who("", "::1"), "x" * 10_000, action="a")
    log.refused(Who("", "::1"), "w", action="b")
    clock.now += 60
    log.refused(Who("", "::1"), "w", action="a")
    log.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert (lines[0]["user"], lines[0]["target"]) == ("eve\n{", "\u2028")
    assert len(lines) == 63
    assert len(lines[1]["why"]) == 300
    assert [each.get("left_out") for each in lines[-3:]] == [None, 940, None]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_line_that_broke_off_keeps_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = AuditLog(tmp_path / "audit"), os.write
    parts = iter([7])

    def full(file: int, data: bytes) -> int:
        if (part := next(parts, 0)) == 0:
            raise OSError(28, "No space left on device")
        return write(file, data[:part])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        log.write(Who("", "::1"), "begun", action="a", target="t")
    monkeypatch.setattr(os, "write", write)
    for _ in range(2):
        log.write(Who("", "::1"), "done", action="a", target="t")
    log.close()
    torn, *whole = (tmp_path / "audit").read_text().splitlines()
    assert torn == '{"time"'
    assert [json.loads(each)["result"] for each in whole] == ["done", "done"]


def test_without_a_file_lines_go_to_the_processes_log(capsys: pytest.CaptureFixture[str]) -> None:
    AuditLog().write(Who("", "::1"), "done", action="a", target="t")
    assert json.loads(capsys.readouterr().err)["result"] == "done"
    stream = io.StringIO()
    AuditLog(stream=stream).write(Who("", "::1"), "done", action="a", target="t")
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize(
    ("given_path", "path"),
    [
        ("/group?id=a", "/group?id=a"),
        ("//evil.example", "/groups"),
        ("https://evil.example", "/groups"),
        ("/\\evil.example", "/groups"),
        ("/a\r\nSet-Cookie: a", "/groups"),
        ("/login?next=/login", "/groups"),
        ("", "/groups"),
    ],
)
def test_a_login_leads_nowhere_else(given_path: str, path: str) -> None:
    assert way_on(given_path) == path
