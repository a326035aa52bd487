"""How `kohort consume` reads as a member of a share group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.cli.terminal import fail

if TYPE_CHECKING:
    from kohort.client.sharing.acknowledgements import AcknowledgeType

TYPES: Final = ("accept", "release", "reject")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOptions:
    """The share group, and what it is told about records that were written."""

    group: str
    acknowledge: str

    def arguments(self, excluded: Mapping[str, object]) -> dict[str, Any]:
        """Arguments of the share consumer; the command ends if options were given that it can't have.

        Args:
            excluded: options of other ways to read, with what was given for them.
        """
        if self.acknowledge not in TYPES:
            fail(f"--acknowledge {self.acknowledge}: one of {', '.join(TYPES)} is wanted")
        if given := [name for name, value in excluded.items() if value]:
            fail(
                f"--share-group excludes {', '.join(given)}: what is read is up to the group. Where it begins: "
                f"kohort configs alter group {self.group} --set share.auto.offset.reset=earliest"
            )
        return {"group_id": self.group, "share_acknowledgement_mode": "explicit"}

    @property
    def type(self) -> AcknowledgeType:
        """What is said about records that were written."""
        from kohort.client.sharing.acknowledgements import AcknowledgeType

        return AcknowledgeType[self.acknowledge.upper()]
