"""The pages of changes: their forms, what will happen, and what has happened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from kohort.client.errors import ClosedError, PartialFailureError, RequestTimeoutError
from kohort.console.audit import AuditLog
from kohort.console.changes import CHANGES
from kohort.console.changes.fields import Fields
from kohort.console.changes.group_changes import CALLED, TARGETS, with_members
from kohort.console.changes.pending import PendingPlans, Shown
from kohort.console.changes.plan import Access, Change, Plan
from kohort.console.changes.produce import FORMS
from kohort.console.cluster_reader import ClusterError, explain
from kohort.console.forms import fields_of
from kohort.console.links import group_link, topic_link
from kohort.console.record_ranges import ChoiceError
from kohort.console.visit import VISIT, RefusedError, Visit
from kohort.console.words import ended

__all__ = ["ChangePages"]

log = logging.getLogger("kohort.console")

MOST_MEMBERS: Final = 500
"""Members that a form offers."""

MOST_RESULTS: Final = 200
"""Visitors the last of whose results is kept."""

_GONE: Final = frozenset({"delete-group", "delete-topic"})
_CLOSE_S: Final = 10.0


class ChangePages:
    """Shows forms and plans, and does what is confirmed.

    Args:
        page: makes a page of a template and its values, with a status.
        audit: is told of all that is done, and of what isn't.
        form_fits: whether a form's token is the visitor's.
    """

    def __init__(
        self, page: Callable[..., web.Response], audit: AuditLog, form_fits: Callable[[str, str], bool]
    ) -> None:
        self._page = page
        self._audit = audit
        self._form_fits = form_fits
        self._pending = PendingPlans(lambda: asyncio.get_running_loop().time())
        self._results: dict[str, tuple[str, Callable[[], web.Response]]] = {}
        self._working: set[asyncio.Task[web.Response]] = set()

    async def close(self) -> None:
        """Waits for what is being done, for a while."""
        if self._working:
            await asyncio.wait(self._working, timeout=_CLOSE_S)

    async def forms(self, request: web.Request) -> web.Response:
        """What can be done to a group or a topic; or the form of a new topic."""
        access = _access(VISIT.get())
        group_id, topic = request.query.get("group"), request.query.get("topic")
        if group_id is not None:
            group = (await access.admin.groups.describe(group_id))[group_id]
            members = group.members[:MOST_MEMBERS]
            more = len(group.members) - len(members)
            return self._page(
                "change_group",
                here="groups",
                group=group,
                members=members,
                more=more,
                targets=TARGETS,
                called=CALLED,
                blocked=with_members(group),
            )
        if topic is not None:
            found = (await access.admin.topics.describe(topic))[topic]
            return self._page("change_topic", here="topics", topic=found, content_forms=FORMS)
        return self._page("new_topic", here="topics")

    async def plan(self, request: web.Request) -> web.Response:
        """Shows what a change would do."""
        visit, fields = VISIT.get(), await self._form(request)
        change = CHANGES.get(fields.text("action"))
        if change is None:
            raise ChoiceError(f"the console can't do {fields.text('action')!r}")
        try:
            plan = await change.plan(_access(visit), fields)
        except ChoiceError as error:
            return self._page(
                "message",
                400,
                here=_here(change.action),
                title="That can't be done",
                text=ended(str(error)),
                back=_form_link(fields),
            )
        except ClusterError as error:
            target = fields.raw("group") or fields.raw("topic") or fields.raw("name")
            self._refused(visit, explain(error), change.action, target)
            raise
        return self._shown(visit, change.action, plan, fields)

    def _shown(self, visit: Visit, action: str, plan: Plan, fields: Fields, *, changed: bool = False) -> web.Response:
        token = "" if plan.blocked else self._pending.keep(visit.visitor, Shown(plan, fields))
        return self._page(
            "plan",
            409 if changed else 200,
            here=_here(action),
            plan=plan,
            token=token,
            changed=changed,
            back=_back(plan),
        )

    async def confirm(self, request: web.Request) -> web.Response:
        """Does what was shown, unless it would be something else by now."""
        visit, fields = VISIT.get(), await self._form(request)
        shown = self._pending.take(visit.visitor, fields.text("plan"))
        if shown is None:
            raise RefusedError(
                "This was done already, or has waited for too long; nothing is done now. Look again.", 409
            )
        task = asyncio.create_task(self._do(visit, CHANGES[shown.plan.action], shown, fields.text("plan")))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        if (session := visit.session) is not None:
            session.hold()  # somebody who logs out meanwhile keeps the connections for it
            task.add_done_callback(lambda _: session.release())
        return await asyncio.shield(task)  # whoever goes away meanwhile, it is done whole, and told of

    async def result(self, request: web.Request) -> web.Response:
        """What became of a change: a page that may be loaded again, without doing anything again."""
        token, page = self._results.get(VISIT.get().visitor, ("", None))
        if page is None or token != request.query.get("plan"):
            text = "What became of this isn't kept any more: look at the group or the topic."
            return self._page("message", 404, here="", title="Not kept", text=text)
        return page()

    def _to_result(self, visit: Visit, token: str, page: Callable[[], web.Response]) -> web.Response:
        """Keeps the page of a result, the last of each visitor, and leads there; or shows it to who has logged out."""
        if visit.session is not None and not visit.session.is_open:
            return page()
        self._results.pop(visit.visitor, None)
        self._results[visit.visitor] = token, page
        while len(self._results) > MOST_RESULTS:
            del self._results[next(iter(self._results))]
        return web.Response(status=303, headers={"Location": f"/change/done?{urlencode({'plan': token})}"})

    async def _do(self, visit: Visit, change: Change, shown: Shown, token: str) -> web.Response:
        plan, access = shown.plan, _access(visit)
        about = {"action": change.action, "target": plan.target}
        try:
            other = await change.other(access, shown.fields, plan)
        except (*ClusterError, ChoiceError) as error:
            self._refused(visit, str(error) if isinstance(error, ChoiceError) else explain(error), **about)
            raise
        if other is not None:
            self._refused(visit, "changed since it was shown", **about)
            return self._shown(visit, change.action, other, shown.fields, changed=True)
        try:
            self._audit.write(visit.who, "begun", **about, plan=plan.told)
        except OSError as error:
            why = f"The audit log can't be written ({error.strerror or error}), so nothing is done."
            raise RefusedError(why, 503) from None
        try:
            done = await change.do(access, plan)
        except ClusterError as error:
            unwritten = self._tell(visit, "failed", **about, why=explain(error))
            page = partial(
                self._page,
                "message",
                502,
                here=_here(change.action),
                title="Not done",
                text=" ".join(filter(None, (explain(error), _doubt(error), unwritten))),
            )
            return self._to_result(visit, token, page)
        except BaseException as error:
            self._tell(visit, "failed", **about, why=f"{type(error).__name__}: it may have been done or not")
            raise
        finally:
            if visit.desk is not None:
                visit.desk.growth.changed()
        text = f"{done.text} {self._tell(visit, 'done', **about, after=done.told)}".strip()
        gone = plan.action in _GONE
        page = partial(self._page, "done", here=_here(change.action), text=text, back=_back(plan), gone=gone)
        return self._to_result(visit, token, page)

    def _tell(self, visit: Visit, result: str, **told: Any) -> str:
        """Writes down how a change has ended; returns what the page says if that can't be: the change has been made."""
        try:
            self._audit.write(visit.who, result, **told)
        except OSError as error:
            log.error("the audit log can't be written: %s", error)
            return f"The audit log doesn't say so: it can't be written ({error.strerror or error})."
        return ""

    def _refused(self, visit: Visit, why: str, action: str, target: str) -> None:
        try:
            self._audit.refused(visit.who, why, action=action, target=target)
        except OSError as error:  # nothing is done, anyway
            log.error("the audit log can't be written: %s", error)

    async def _form(self, request: web.Request) -> Fields:
        """The fields of a form that was shown to who sends it."""
        fields = await fields_of(request)
        if not self._form_fits(VISIT.get().visitor, fields.text("form_token")):
            raise RefusedError("This form is an old one, or wasn't shown to you. Load its page again.")
        return fields


def _access(visit: Visit) -> Access:
    if visit.desk is None or visit.desk.access is None:
        raise RefusedError("Nothing is changed here.")
    return visit.desk.access


def _here(action: str) -> str:
    change = action.rpartition("-")[2]
    return "groups" if action in ("reset-offsets", "remove-members") or change == "group" else "topics"


def _form_link(fields: Fields) -> str:
    """The page that has the form."""
    target = {name: fields.raw(name) for name in ("group", "topic") if fields.raw(name)}
    if fields.text("action") == "reset-offsets":
        target.pop("topic", None)  # a field of the group's form
    return f"/change?{urlencode(target)}" if target else "/change"


def _back(plan: Plan) -> tuple[str, str]:
    """Where the page of what was changed is, and how it is called."""
    if _here(plan.action) == "groups":
        return group_link(plan.target), plan.target
    return topic_link(plan.target), plan.target


def _doubt(error: Exception) -> str:
    if isinstance(error, PartialFailureError) and error.done:
        return "The rest is done."
    if isinstance(error, RequestTimeoutError | ConnectionError | ClosedError):
        return "It may have been done or not: look."
    return ""
