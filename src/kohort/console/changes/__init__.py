"""What the console changes, each in two steps: a plan, which is shown, and then exactly that.

`plan` has what they share, `fields` what their forms say, `group_changes`, `topic_changes` and `produce` what they do;
`pending` keeps plans that were shown until they are confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.console.changes.group_changes import DeleteGroup, RemoveMembers, ResetOffsets
from kohort.console.changes.plan import Change
from kohort.console.changes.produce import Produce
from kohort.console.changes.topic_changes import AddPartitions, AlterSettings, CreateTopic, DeleteRecords, DeleteTopic

__all__ = ["CHANGES"]

CHANGES: Final[Mapping[str, Change]] = {
    each.action: each
    for each in (
        ResetOffsets(),
        RemoveMembers(),
        DeleteGroup(),
        CreateTopic(),
        Produce(),
        AddPartitions(),
        AlterSettings(),
        DeleteRecords(),
        DeleteTopic(),
    )
}
"""By the name that forms give."""
