"""The pages of a streams group's placement: why its tasks are where they are, and what if."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from kohort.client.administration.group_types import GroupDescription, GroupType
from kohort.client.placed_group import NotPlaceableError
from kohort.console import placement_words as words
from kohort.console.cluster_reader import ClusterReader
from kohort.console.group_list import Choice
from kohort.console.links import placement_link
from kohort.console.paging import page_of
from kohort.console.placing import Placing
from kohort.console.record_ranges import ChoiceError
from kohort.console.visit import MissingError
from kohort.console.watcher import Watcher
from kohort.console.what_if_form import MOST_INSTANCES, WhatIf
from kohort.coordinator.placement.explanation import Explanation
from kohort.coordinator.placement.model import Group
from kohort.coordinator.placement.outcome import InfeasibleError
from kohort.coordinator.placement.what_if import MOST_STANDBYS
from kohort.plurals import several
from kohort.similar_names import did_you_mean
from kohort.streams.tasks import TaskId

MOST_NAMES: Final = 200
"""Members and processes that the form proposes."""

MOST_PLACES: Final = 500
"""Other places of a task that are listed."""

Page = Callable[..., web.Response]


class PlacementPages:
    """Answers for `/group/placement`.

    Args:
        watcher: knows which groups there are.
        reader: asks the brokers for groups.
        page: renders a template by its name, with values.
    """

    def __init__(self, watcher: Watcher, reader: ClusterReader, page: Page) -> None:
        self._watcher = watcher
        self._reader = reader
        self._page = page
        self._placing = Placing()

    def routes(self) -> Sequence[web.RouteDef]:
        """What is answered."""
        return [web.get("/group/placement", self._placement)]

    async def _placement(self, request: web.Request) -> web.Response:
        group_id, task = request.query.get("id", ""), request.query.get("task")
        what_if = WhatIf.of(request.query)
        await self._watcher.look_at(group_id)
        report = self._watcher.report(group_id)
        if report is None:
            raise MissingError(f"There is no group {group_id!r}, or it can't be read.")
        if report.group.type is not GroupType.STREAMS:
            return self._message(404, "Not found", f"{group_id!r} is no streams group: it has no tasks to place.")
        try:
            group, notes = await self._reader.placed(group_id)
        except NotPlaceableError as error:
            return self._message(404, "Nothing to place", f"{error}.")
        names = words.Names.of(report.group, group.rack_tags)
        if task is not None:
            return await self._task(report.group, group, names, task)
        return await self._whole(group_id, group, names, notes, what_if, Choice.of(request.query).page)

    async def _whole(
        self, group_id: str, group: Group, names: words.Names, notes: list[str], what_if: WhatIf, number: int
    ) -> web.Response:
        problem, result = "", None
        processes = {member.process for member in group.members} | {member.id for member in group.members}
        try:
            assignor, comparison = await self._placing.compare(group, what_if.changes)
            (outcome,) = comparison.outcomes.values()
            columns, metrics = words.metric_rows(comparison)
            result = {
                "summary": _summary(assignor, len(outcome.moves), changed=bool(what_if.changes)),
                "columns": columns,
                "metrics": metrics,
                "moves": words.move_rows(outcome, names),
                "more_moves": max(0, len(outcome.moves) - words.MOST_MOVES),
                "members": words.member_rows(outcome, comparison.now, names),
            }
        except InfeasibleError as error:
            problem = f"That can't be placed: {error}."
        except ValueError as error:
            missing = what_if.remove if what_if.remove not in processes else ""
            meant = await asyncio.to_thread(did_you_mean, missing, processes)
            raise ChoiceError(f"{error}; {meant}" if meant else str(error)) from None

        def tasks() -> dict[str, Any]:
            explanation = Explanation(group)
            page = page_of(explanation.tasks(), number)
            return {"page": page, "tasks": words.task_rows(group_id, explanation, page.items, names)}

        return self._page(
            "placement",
            here="groups",
            group_id=group_id,
            notes=notes,
            problem=problem,
            what_if=what_if,
            result=result,
            known=sorted(processes - {""})[:MOST_NAMES],
            standbys=group.standbys,
            rack_tags=group.rack_tags,
            most_instances=MOST_INSTANCES,
            most_standbys=MOST_STANDBYS,
            columns=words,
            query=lambda number: urlencode({"id": group_id, **what_if.fields, "page": number}),
            **await asyncio.to_thread(tasks),
        )

    async def _task(self, description: GroupDescription, group: Group, names: words.Names, text: str) -> web.Response:
        try:
            task = TaskId.parse(text)
        except ValueError as error:
            raise ChoiceError(str(error)) from None
        if not any(each.id == task.subtopology and task.partition < each.partitions for each in group.subtopologies):
            return self._message(404, "Not found", f"The group has no task {text!r}.")

        def found() -> dict[str, Any]:
            explanation = Explanation(group)
            return {
                "sentences": words.sentences(explanation, task, names, description),
                "places": words.place_rows(explanation, task, names, MOST_PLACES),
            }

        return self._page(
            "placement_task",
            here="groups",
            group_id=description.group_id,
            task=str(task),
            back=placement_link(description.group_id),
            columns=words,
            **await asyncio.to_thread(found),
        )

    def _message(self, status: int, title: str, text: str) -> web.Response:
        response = self._page("message", title=title, text=text, here="")
        response.set_status(status)
        return response


def _summary(assignor: str, moves: int, *, changed: bool) -> str:
    when = "After these changes" if changed else "Placed anew, without a change"
    by = "" if assignor == "optimal" else " (by sticky: optimal takes OR-Tools, or more time than a page has)"
    return f"{when}, {several(moves, 'task') if moves else 'no task'} would move{by}."
