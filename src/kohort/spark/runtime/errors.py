"""What stops a subtopology, an instance, or the application."""

from __future__ import annotations

from kohort.spark.errors import ApplicationError


def unreadable(record: object, *, of_group: bool = True) -> ApplicationError:
    """What is raised at a bad record, where the application is to stop: `record` says which, and what is wrong.

    Args:
        of_group: whether the group has an offset of its topic, by which it is skipped; not of a global table's.
    """
    skip = (
        "; or stop all instances and skip it: kohort groups reset-offsets GROUP --topic TOPIC:PARTITION --to-offset N, "
        "with the offset after it"
    )
    return ApplicationError(
        f"a record can't be taken: {record}. To go past such records say on_error=Drop() or DeadLetter(…); or mend what"
        f" the program says of the topic{skip if of_group else ''}"
    )


class RestartFromCommittedError(Exception):
    """Whether a transaction counts isn't known: its tasks have to begin from what is committed."""
