"""What stops a subtopology, an instance, or the application."""

from __future__ import annotations

from kohort.spark.errors import ApplicationError


def unreadable(record: object) -> ApplicationError:
    """What is raised at a bad record, where the application is to stop: `record` says which, and what is wrong."""
    return ApplicationError(
        f"a record can't be taken: {record}. To go past such records say on_error=Drop() or DeadLetter(…); or mend what"
        " the program says of the topic"
    )


class RestartFromCommittedError(Exception):
    """Whether a transaction counts isn't known: its tasks have to begin from what is committed."""
