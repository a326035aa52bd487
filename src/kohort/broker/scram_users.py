"""The users of SCRAM: their credentials are set, kept in the metadata log, and looked up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.stored.cluster_metadata import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kohort.security.sasl.scram import MAX_ITERATIONS, ScramCredential, ScramMechanism, Shape, shape_of

__all__ = ["ScramUsers", "UserChange"]


class UserChange(NamedTuple):
    """A user's new credential of a mechanism, by Kafka's number; None removes the one there is."""

    name: str
    mechanism: int
    credential: ScramCredential | None


class ScramUsers:
    """The users.

    Args:
        append: appends records to the metadata log, as one batch; raises KafkaError.
    """

    def __init__(self, append: Callable[[list[MetadataRecord]], None]) -> None:
        self._append = append
        self._credentials: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        self._shapes: dict[ScramMechanism, Counter[Shape]] = {mechanism: Counter() for mechanism in ScramMechanism}

    def __iter__(self) -> Iterator[str]:
        """The names of all users."""
        return iter(self._credentials)

    def find(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
        """A user's credential; None if there is none."""
        return self._credentials.get(name, {}).get(mechanism)

    def of(self, name: str) -> Mapping[ScramMechanism, ScramCredential]:
        """All credentials of a user."""
        return self._credentials.get(name, {})

    def usual_shape(self, mechanism: ScramMechanism) -> Shape:
        """The shape of most users' credentials; that of Kafka's tools without any."""
        return max(self._shapes[mechanism].items(), key=_count, default=(Shape(mechanism.min_iterations), 0))[0]

    def alter(self, changes: Iterable[UserChange]) -> dict[str, KafkaError | None]:
        """Makes changes, at most one of each user; returns why those of some users can't be.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        by_name: dict[str, UserChange] = {}
        results: dict[str, KafkaError | None] = {}
        for change in changes:
            twice = change.name in by_name
            by_name[change.name] = change
            if not results.get(change.name):
                results[change.name] = _TWICE if twice else self._problem(change)
        records = [_record(change) for name, change in by_name.items() if results[name] is None]
        if records:
            self._append(records)
            for record in records:
                self.replay(record)
        return results

    def replay(self, record: MetadataRecord) -> None:
        """Applies a record of the metadata log."""
        if not isinstance(record, (UserScramCredentialRecord, RemoveUserScramCredentialRecord)):
            return
        mechanism = ScramMechanism.numbered(record.mechanism)
        if mechanism is None:  # of a newer version of Kafka
            return
        credentials, shapes = self._credentials.setdefault(record.name, {}), self._shapes[mechanism]
        if (before := credentials.pop(mechanism, None)) is not None:
            shapes[shape_of(before)] -= 1
            shapes += Counter()  # which takes away what is 0
        if isinstance(record, UserScramCredentialRecord):
            made = credentials[mechanism] = ScramCredential(
                bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
            )
            shapes[shape_of(made)] += 1
        if not credentials:
            del self._credentials[record.name]

    def _problem(self, change: UserChange) -> KafkaError | None:
        mechanism = ScramMechanism.numbered(change.mechanism)
        if not change.name:
            return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The user's name is empty.")
        if mechanism is None:
            return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"There is no mechanism {change.mechanism}.")
        if change.credential is None:
            known = self.find(mechanism, change.name) is not None
            return None if known else KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "The user has no such credential.")
        if not mechanism.min_iterations <= change.credential.iterations <= MAX_ITERATIONS:
            return KafkaError(
                ErrorCode.UNACCEPTABLE_CREDENTIAL,
                f"Iterations must be from {mechanism.min_iterations} to {MAX_ITERATIONS}.",
            )
        return None


def _count(item: tuple[Shape, int]) -> int:
    return item[1]


_TWICE = KafkaError(ErrorCode.DUPLICATE_RESOURCE, "A user can't be changed twice in one request.")


def _record(change: UserChange) -> MetadataRecord:
    if change.credential is None:
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.credential.salt,
        stored_key=change.credential.stored_key,
        server_key=change.credential.server_key,
        iterations=change.credential.iterations,
    )
