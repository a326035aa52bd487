"""Tasks by member on a time line: the picture's changing parts, as texts of a page.

A row a task: a thick bar where a member has it active, in the member's colour, and thin ones for standbys and warm-ups.
The bars of a colour and a role are one path, so that a page that is open is told what changes by texts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.console.task_times import Span, TaskTimes
from kohort.console.words import duration, visible
from kohort.plurals import several
from kohort.short_names import short_names
from kohort.streams.tasks import Role, TaskId

ROWS: Final = 40
"""Tasks that are drawn: of more, those that moved last."""

COLOURS: Final = 8
"""Of members; of more, some have the same."""

WINDOW_S: Final = 900.0
"""The time that is shown, at most."""

WIDTH: Final = 960
LEFT: Final = 110
"""Of the picture, and of the tasks' names, in its own units."""

RIGHT: Final = 170
"""Of the members' names."""

ROW: Final = 22

_ACROSS: Final = WIDTH - LEFT - RIGHT
_THICK: Final = 10
_THIN: Final = 3
_LANES: Final = 3
_LONGEST: Final = 16

ROLES: Final = (Role.ACTIVE, Role.STANDBY, Role.WARMUP)


def timeline_texts(times: TaskTimes, names: Mapping[str, str]) -> dict[str, str]:
    """What changes of the picture: paths, names, its size, and a sentence.

    Args:
        times: of the group.
        names: of members that are there now, by id; those that are gone have their ids, shortened.
    """
    now = times.last if times.last is not None else 0.0
    first = times.first if times.first is not None else now
    since = max(first, now - WINDOW_S)
    spans = times.spans(since)
    tasks = _rows(times, spans)
    rows = {task: row for row, task in enumerate(tasks)}
    members = list(dict.fromkeys(span.member for span in spans))
    colours = {member: at % COLOURS for at, member in enumerate(members)}
    called = _cut_names({**short_names(members), **names})
    paths: dict[tuple[Role, int], list[str]] = {}
    for span in spans:
        if span.task in rows and now > since:
            bar = _bar(span, rows[span.task], colours[span.member], since, now)
            paths.setdefault((span.role, colours[span.member]), []).append(bar)
    texts = {
        f"timeline {role.value} {colour}": "".join(paths.get((role, colour), ()))
        for role in ROLES
        for colour in range(COLOURS)
    }
    for row in range(ROWS):
        task = tasks[row] if row < len(tasks) else None
        texts[f"timeline task {row}"] = "" if task is None else _cut(visible(str(task)))
        owner = None if task is None else times.owners.get(task)
        texts[f"timeline owner {row}"] = (
            "" if task is None else "nobody" if owner is None else called.get(owner, visible(owner))
        )
    for colour in range(COLOURS):
        of = [called[member] for member in members if colours[member] == colour]
        texts[f"timeline name {colour}"] = ", ".join(of[:4]) + (", …" if len(of) > 4 else "")
    texts["timeline_box"] = f"0 0 {WIDTH} {ROW * max(1, len(tasks)) + 8}"
    texts["timeline_text"] = _sentence(times, len(tasks), len({span.task for span in spans}), now - since)
    return texts


def _rows(times: TaskTimes, spans: list[Span]) -> list[TaskId]:
    tasks = {span.task for span in spans}
    if len(tasks) > ROWS:
        moved = {move.task: at for at, move in enumerate(times.moves)}
        tasks = set(sorted(tasks, key=lambda task: (-moved.get(task, -1), task))[:ROWS])
    return sorted(tasks)


def _bar(span: Span, row: int, colour: int, since: float, now: float) -> str:
    """A bar as a part of a path."""
    scale = _ACROSS / (now - since)
    x = LEFT + (max(span.begin, since) - since) * scale
    width = max(1.0, (span.end - max(span.begin, since)) * scale)
    y = 4 + row * ROW
    height = _THICK
    if span.role is not Role.ACTIVE:
        y, height = y + _THICK + (colour % _LANES) * _THIN, _THIN
    return f"M{x:.1f},{y}h{width:.1f}v{height}h-{width:.1f}z"


def _sentence(times: TaskTimes, shown: int, tasks: int, seconds: float) -> str:
    if times.last is None or not seconds:
        return "The time line begins with the console, and grows while it runs."
    which = f"{shown:,} of {tasks:,} tasks" if shown < tasks else several(tasks, "task")
    return (
        f"{which} in the last {duration(seconds)}: thick bars are active tasks, thin ones standbys, pale ones warm-ups."
    )


def _cut_names(names: Mapping[str, str]) -> dict[str, str]:
    return {member: _cut(visible(name)) for member, name in names.items()}


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
