"""What belongs to one store of a streams application, and its reset: the others keep their state.

A store goes with its changelog, with a repartition topic of its own, with stores that are kept beside it (`BESIDE`),
and with what committed offsets say of all these. Copies on disks do no harm: they are of a changelog that is gone, and
cleared when they are opened.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.cli.terminal import Line
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.program.committed_metadata import Committed, committed_by, metadata, noted

if TYPE_CHECKING:
    from kohort.client.admin import Admin

BESIDE: Final = ("waiting", "rows", "sessions", "due")
"""What follows a store's name, after a hyphen, in the names of stores that are kept for it: they are no use alone."""


@dataclass(frozen=True, slots=True)
class StoreBelongings:
    """What belongs to a store.

    Attributes:
        store: its name.
        topics: its changelog and those of stores beside it, and the repartition topic of its rows, as far as they are
            there.
        told: offsets whose metadata tells of it, as they are without it.
        forgotten: offsets of the repartition topic, which go with it.
        known: the stores that any offset tells of.
        untold: topics whose offsets don't say what was made of them: a program would go on as if the store were there.
    """

    store: str
    topics: tuple[str, ...]
    told: Mapping[TopicPartition, OffsetAndMetadata]
    forgotten: tuple[TopicPartition, ...]
    known: tuple[str, ...]
    untold: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether nothing was found."""
        return not self.topics and not self.told and not self.forgotten


def store_belongings(
    application_id: str,
    store: str,
    *,
    topics: Collection[str],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
) -> StoreBelongings:
    """Tells what belongs to a store.

    Args:
        topics: all topics of the cluster.
        committed: what the application's group has committed.
    """
    repartition = f"{application_id}-{store}-repartition"
    stores = (store, *(f"{store}-{each}" for each in BESIDE))
    own = (*(f"{application_id}-{each}-changelog" for each in stores), repartition)
    said = {at: committed_by(each.metadata) for at, each in committed.items()}
    known = {name for each in said.values() if each is not None for name in each.formats or () if name}
    told = {
        at: committed[at]._replace(metadata=_without(each, stores))
        for at, each in said.items()
        if each is not None and at.topic != repartition and not {*stores}.isdisjoint(each.formats or ())
    }
    return StoreBelongings(
        store,
        tuple(topic for topic in own if topic in topics),
        told,
        tuple(at for at in said if at.topic == repartition and at.topic in topics),
        tuple(sorted(known)),
        tuple(
            sorted(
                {
                    at.topic
                    for at, each in said.items()
                    if each is not None and each.formats is None and at.topic != repartition
                }
            )
        ),
    )


async def find_store(admin: Admin, application_id: str, store: str) -> StoreBelongings:
    """Looks up what belongs to a store."""
    topics = await admin.topics.list()
    committed = await admin.group_offsets.committed(application_id)
    return store_belongings(application_id, store, topics=topics, committed=committed)


async def reset_store(admin: Admin, application_id: str, found: StoreBelongings) -> None:
    """Removes what belongs to a store of a group without members.

    What tells of it goes last: as long as it is there, another try finds the store.
    """
    if found.forgotten:
        await admin.group_offsets.delete(application_id, found.forgotten)
    if found.topics:
        await admin.topics.delete(*found.topics)
    if found.told:
        await admin.group_offsets.alter(application_id, found.told)


def store_lines(found: StoreBelongings) -> list[Line]:
    """A line for each thing that goes."""
    lines: list[Line] = [[("topic            ", ""), (topic, "")] for topic in found.topics]
    if found.told or found.forgotten:
        lines.append([("store            ", ""), (found.store, ""), ("  in the group's offsets, which stay", "dim")])
    return lines


def store_as_json(application_id: str, found: StoreBelongings, *, done: bool) -> dict[str, Any]:
    return {"application_id": application_id, "store": found.store, "topics": list(found.topics), "done": done}


def _without(said: Committed, stores: Collection[str]) -> str:
    formats = {name: each for name, each in (said.formats or {}).items() if name not in stores}
    return metadata(said.stream_time, said.program, said.until, noted(formats))
