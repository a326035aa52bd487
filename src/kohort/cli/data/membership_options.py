"""How `kohort consume` reads: alone or as a member of a group, and with which isolation level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kohort.cli.data.selection import Selection
from kohort.cli.terminal import fail

ISOLATION: Final = ("read_uncommitted", "read_committed")
PROTOCOLS: Final = ("classic", "consumer")


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipOptions:
    """The group, if any, its protocol, and whether its offsets are committed."""

    group: str | None
    group_protocol: str
    isolation: str
    no_commit: bool

    @property
    def commits(self) -> bool:
        return self.group is not None and not self.no_commit

    def arguments(self, selection: Selection) -> dict[str, Any]:
        """Arguments of the consumer; the command ends if a group can't read the selection."""
        if self.isolation not in ISOLATION:
            fail(f"--isolation {self.isolation}: one of {', '.join(ISOLATION)} is wanted")
        if self.group_protocol not in PROTOCOLS:
            fail(f"--group-protocol {self.group_protocol}: one of {', '.join(PROTOCOLS)} is wanted")
        by_number = isinstance(selection.start, int)
        by_time = selection.start_time is not None or selection.end_time is not None
        if self.group is not None and (selection.partitions or by_time or by_number):
            fail("--group excludes --partition, --from, --to and a number as --offset: they are up to the group")
        return {
            "group_id": self.group,
            "group_protocol": self.group_protocol,
            "isolation_level": self.isolation,
            "enable_auto_commit": False,
            "allow_auto_create_topics": False,
            "auto_offset_reset": "none" if by_number else selection.start,
        }
