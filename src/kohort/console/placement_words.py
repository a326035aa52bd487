"""Why tasks are where they are, in sentences and rows: the words for what `Explanation` works out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kohort.client.administration.group_types import GroupDescription
from kohort.console.links import placement_link
from kohort.console.live import Cell
from kohort.console.words import NOTHING, member_names, number, visible
from kohort.coordinator.placement.explanation import ALL, Alternative, Cost, Explanation, Share, racks
from kohort.coordinator.placement.in_words import (
    Measured,
    change_measures,
    moves_together,
    natural,
    range_text,
    restore_text,
    state_measures,
)
from kohort.coordinator.placement.model import Member
from kohort.coordinator.placement.outcome import Comparison, Outcome
from kohort.number_ranges import partitions_text
from kohort.plurals import several
from kohort.streams.task_offsets import records_left
from kohort.streams.tasks import Role, TaskId

MOST_EFFORT: Final = 60_000
"""Ways to put tasks elsewhere that are looked at for one page; beyond, only a task's own page looks."""

MOST_MOVES: Final = 200
"""Rows of moves."""

MEMBER_COLUMNS: Final = ("Member", "Process", ">Tasks", "Active", "Gains", "Loses", "Standby")
MOVE_COLUMNS: Final = ("Tasks", "From", "To", "To restore")
TASK_COLUMNS: Final = ("Task", "Active on", "Standby on", "Why there", "Next best", "What that costs")
PLACE_COLUMNS: Final = (
    "Member",
    "Process",
    "In exchange for",
    ">Out of balance",
    ">Spread of stores",
    "To restore",
    ">Tasks moved",
    ">Copies in one rack",
)

Rows = dict[str, tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Names:
    """What members are called: by static names, or by short ids, and those with their racks.

    Attributes:
        by_id: names of members.
        rack_tags: the group's.
    """

    by_id: Mapping[str, str]
    rack_tags: Sequence[str] = ()

    @classmethod
    def of(cls, group: GroupDescription, rack_tags: Sequence[str]) -> Names:
        """The names of a group's members."""
        return cls(member_names(group), rack_tags)

    def name(self, member: str) -> str:
        """A member's; of one that isn't there yet its id."""
        return self.by_id.get(member, member)

    def place(self, member: Member) -> str:
        """A member's, with its racks: `m1 (zone a)`."""
        where = racks(member, self.rack_tags)
        return f"{self.name(member.id)} ({where})" if where else self.name(member.id)


def _text(text: str, href: str = "", tone: str = "") -> Cell:
    return Cell(visible(text) or NOTHING, href, tone)


# What all of it comes to


def metric_rows(comparison: Comparison) -> tuple[tuple[str, ...], Rows]:
    """Columns and rows: metrics of the present placement, and of the other one."""
    (other,) = (outcome.metrics for outcome in comparison.outcomes.values())
    now = None if comparison.now is None else comparison.now.metrics
    found = [other] if now is None else [now, other]
    rows: Rows = {}
    above = ""
    for name, measure in state_measures(found):
        above = above if name.startswith(" ") else name
        rows[_whole(above, name)] = (_text(_whole(above, name)), *(_measured(measure(of)) for of in found))
    for name, measure in change_measures([other], changes=now is not None):
        above = above if name.startswith(" ") else name
        before = () if now is None else (Cell(""),)
        rows[_whole(above, name)] = (_text(_whole(above, name)), *before, _measured(measure(other)))
    return ("Metric", "Then") if now is None else ("Metric", "Now", "Then"), rows


def _whole(above: str, name: str) -> str:
    """A metric's name by itself: that of a part has the one of the whole before it."""
    return f"{above}: {name.strip()}" if name.startswith(" ") else name


def _measured(measured: Measured) -> Cell:
    if measured.off:
        return _text(f"{measured.text}, {measured.off}", tone="warn")
    return Cell(visible(measured.text))


def move_rows(outcome: Outcome, names: Names) -> Rows:
    """What moves from one member to another."""
    rows: Rows = {}
    for tasks, source, target, restore in moves_together(outcome.moves):
        if len(rows) == MOST_MOVES:
            break
        source_name = "nobody" if source is None else names.name(source)
        rows[str(len(rows))] = (_text(tasks), _text(source_name), _text(names.name(target)), Cell(restore))
    return rows


def member_rows(outcome: Outcome, now: Outcome | None, names: Names) -> Rows:
    """Who has which tasks then, and how that differs from now; members that go are among them."""
    members = {member.id: member for side in (now, outcome) if side is not None for member in side.group.members}
    stay = {member.id for member in outcome.group.members}
    then = outcome.placement.by_member()
    before = {} if now is None else now.placement.by_member()
    rows: Rows = {}
    for member in sorted(members.values(), key=lambda member: (natural(member.process), natural(member.id))):
        has, had = (_in_role(side.get(member.id, {}), Role.ACTIVE) for side in (then, before))
        standby = _in_role(then.get(member.id, {}), Role.STANDBY)
        rows[member.id] = (
            _text(names.place(member)),
            _text(member.process),
            Cell(number(len(has)) if member.id in stay else "gone"),
            *(_text(partitions_text(tasks)) for tasks in (has, has - had, had - has, standby)),
        )
    return rows


def _in_role(tasks: Mapping[TaskId, Role], role: Role) -> set[TaskId]:
    return {task for task, has in tasks.items() if has is role}


# Each task


def task_rows(group_id: str, explanation: Explanation, tasks: Sequence[TaskId], names: Names) -> Rows:
    """A row a task: where it is, why, and the next best place."""
    looks = len(tasks) * explanation.effort <= MOST_EFFORT
    rows: Rows = {}
    for task in tasks:
        owner = explanation.placement.active.get(task)
        standby = explanation.placement.standby.get(task, ())
        places = [names.place(explanation.members[name]) for name in standby]
        if looks:
            best = explanation.best(task)
            why = verdict(explanation, task, best, names)
            next_best = NOTHING if best is None else place_text(best, names)
            cost = NOTHING if best is None else cost_text(best.cost)
        else:
            why, next_best, cost = "The task's page says it.", NOTHING, NOTHING
        rows[str(task)] = (
            _text(str(task), placement_link(group_id, str(task))),
            Cell("nobody", tone="warn") if owner is None else _text(names.place(explanation.members[owner])),
            _text(", ".join(places)),
            _text(why),
            _text(next_best),
            _text(cost),
        )
    return rows


def place_text(place: Alternative, names: Names) -> str:
    """Where else a task could be, and what for."""
    return names.name(place.member) + ("" if place.instead is None else f", for {place.instead}")


def cost_text(cost: Cost) -> str:
    """What another place costs, as far as it costs anything; a plus or minus where it is beside now."""
    parts = []
    if cost.unbalanced:
        parts.append(f"{cost.unbalanced:+,} tasks out of balance")
    if cost.spread:
        parts.append(f"spread of state stores {float(cost.spread):+.3g}")
    parts.append(f"{restore_text(cost.restore)} to restore")
    parts.append(f"{several(cost.moves, 'task')} moved")
    if cost.together:
        parts.append(f"{cost.together:+,} copies in one rack")
    return ", ".join(parts)


def verdict(explanation: Explanation, task: TaskId, best: Alternative | None, names: Names) -> str:
    """What decides, by the best of all other places."""
    if task not in explanation.placement.active:
        return "Nobody runs it now." if best is not None else "Nobody is in the group."
    if best is None:
        return "Nobody else is in the group."
    cost, other = best.cost, names.name(best.member)
    if cost.unbalanced > 0:
        return "Balance: anywhere else, members would have more or less than their fair shares."
    if cost.unbalanced < 0:
        return f"It would be better on {other}, for balance: the next placement may move it."
    if cost.spread > 0:
        return "State stores: anywhere else, they would be spread less evenly over processes."
    if cost.spread < 0:
        return f"It would be better on {other}: state stores would be spread more evenly."
    if cost.restore.tasks:
        own = explanation.restore(task, best.member).tasks
        state = "its state is here; anywhere else" if own else "it would change places with a task whose state is here;"
        return f"State: {state} at least {restore_text(cost.restore)} would be restored."
    return f"It is here: {other} would do as well, but tasks would move for nothing."


def place_rows(explanation: Explanation, task: TaskId, names: Names, most: int) -> Rows:
    """All other places of a task, the best ones first."""
    rows: Rows = {}
    for place in explanation.alternatives(task)[:most]:
        cost, member = place.cost, explanation.members[place.member]
        instead = "nothing" if place.instead is None else str(place.instead)
        rows[place.member] = (
            _text(names.place(member)),
            _text(member.process),
            _text(f"{instead}; its standby there" if place.standby else instead),
            _difference(cost.unbalanced),
            _difference(float(cost.spread)),
            Cell(restore_text(cost.restore)),
            Cell(number(cost.moves)),
            _difference(cost.together),
        )
    return rows


def _difference(value: float) -> Cell:
    if not value:
        return Cell("as now")
    return Cell(f"{value:+,.3g}" if isinstance(value, float) else f"{value:+,}", tone="warn" if value > 0 else "good")


def sentences(explanation: Explanation, task: TaskId, names: Names, group: GroupDescription) -> list[str]:
    """All that there is to say of a task's place."""
    return [visible(each) for each in _sentences(explanation, task, names, group)]


def _sentences(explanation: Explanation, task: TaskId, names: Names, group: GroupDescription) -> Iterator[str]:
    owner = explanation.placement.active.get(task)
    if owner is None:
        yield f"Nobody runs task {task} now: it is on its way from one member to another, or nobody is there."
    else:
        member = explanation.members[owner]
        process = f", in process {member.process}" if member.process not in ("", member.id) else ""
        yield f"Task {task} is active on {names.place(member)}{process}."
        for share in explanation.shares(owner, task):
            yield _share_text(share, names.name(owner))
        yield from _state(explanation, task, owner)
    yield from _standbys(explanation, task, names)
    yield from _on_the_way(task, owner, group, names)
    yield verdict(explanation, task, explanation.best(task), names)


def _share_text(share: Share, name: str) -> str:
    what = f"tasks of subtopology {share.what}"
    if share.kind:
        what = "tasks" if share.what == ALL else "tasks that keep state"
    fair = range_text(share.least, share.most)
    return f"Balance: of the group's {share.tasks:,} {what}, {name} has {share.has:,}; the fair share is {fair}."


def _state(explanation: Explanation, task: TaskId, owner: str) -> Iterator[str]:
    stores = explanation.stores(task)
    if not stores:
        yield "State: it keeps none, so it restores nothing anywhere."
        return
    end = explanation.group.ends.get(task)
    size = "" if end is None else f", whose changelogs have {several(end, 'record')}"
    yield f"State: it has {several(stores, 'state store')}{size}. They are here, and nothing is to restore."
    has, least, most = explanation.process_stores(owner)
    yield (
        f"State stores: the active tasks of its process have {has:,} in all; processes have {range_text(least, most)}."
    )
    owns = explanation.members[owner].process
    others: dict[str, list[str]] = {}
    for name, member in explanation.members.items():
        if name != owner and member.process != owns:
            others.setdefault(restore_text(explanation.restore(task, name)), []).append(member.process or name)
    for restore, processes in sorted(others.items(), key=lambda each: len(each[1])):
        count = len(set(processes))
        named = ", ".join(sorted(set(processes))) if count <= 3 else f"{count:,} processes"
        yield f"State elsewhere: {named} would restore {restore}."


def _standbys(explanation: Explanation, task: TaskId, names: Names) -> Iterator[str]:
    wanted = explanation.group.standbys if explanation.stores(task) else 0
    standby = explanation.placement.standby.get(task, ())
    if not wanted and not standby:
        return
    on = ", ".join(_standby_text(explanation, task, name, names) for name in standby) or "nobody"
    yield f"Standbys: {wanted:,} wanted; on {on}."
    for tag, (together, must) in explanation.together(task).items():
        if not together:
            yield f"Racks: each copy is in a {tag} of its own."
        else:
            why = "as there are no more of them" if together == must else "though that could be better"
            copies = "1 copy is" if together == 1 else f"{together:,} copies are"
            yield f"Racks: {copies} in a {tag} that another is in, {why}."


def _standby_text(explanation: Explanation, task: TaskId, name: str, names: Names) -> str:
    member = explanation.members[name]
    lag = explanation.group.lags.get((member.process, task))
    behind = "" if lag is None else f", {several(lag, 'record')} behind" if lag else ", caught up"
    return f"{names.place(member)}{behind}"


def _on_the_way(task: TaskId, owner: str | None, group: GroupDescription, names: Names) -> Iterable[str]:
    for member in group.members:
        if member.streams is None:
            continue
        name = names.name(member.member_id)
        if member.streams.target_tasks.get(task) is Role.ACTIVE and member.member_id != owner:
            yield f"On its way: the broker has given it to {name}."
        if member.streams.tasks.get(task) is Role.WARMUP:
            end, offset = member.streams.task_end_offsets.get(task), member.streams.task_offsets.get(task)
            lag = records_left(offset, end)
            left = "" if lag is None else f", {several(lag, 'record')} behind"
            yield f"Warm-up: {name} restores it{left}, and is to run it then."
