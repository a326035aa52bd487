"""Quotas of users, client ids and addresses: set, kept in the metadata log, and looked up.

An entity is named by its parts: a user, a client id, both, or an address; a part without a name is the default of its
type. `throttling` holds clients to them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.stored.cluster_metadata import ClientQuotaRecord, MetadataRecord

__all__ = ["MAX_CHANGES", "ClientQuotas", "Entity", "EntityFilter", "QuotaChange"]

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)

MAX_CHANGES: Final = 10_000
"""Quotas that one request may change, as in Kafka."""

_WHOLE: Final[Mapping[str, int | None]] = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
"""The quotas of users and client ids, with the largest value of those that are whole numbers."""

_WHOLE_OF_ADDRESSES: Final[Mapping[str, int | None]] = {"connection_creation_rate": 2**31 - 1}

Entity = frozenset[tuple[str, str | None]]
"""The parts of an entity's name: type and name, None for the default of the type."""


class QuotaChange(NamedTuple):
    """New values for quotas of an entity; None removes one."""

    entity: Entity
    values: Sequence[tuple[str, float | None]]


class EntityFilter(NamedTuple):
    """Which entities are wanted.

    Attributes:
        exact: parts that an entity must have; name None is the default of the type.
        present: types that an entity must have, whatever the name.
        strict: whether an entity may have no other types.
    """

    exact: Mapping[str, str | None]
    present: frozenset[str] = frozenset()
    strict: bool = False

    def matches(self, entity: Entity) -> bool:
        if self.strict and len(entity) != len(self.exact) + len(self.present):
            return False
        return entity >= self.exact.items() and self.present <= {kind for kind, _ in entity}


class ClientQuotas:
    """The quotas of a cluster's clients.

    Args:
        append: appends records to the metadata log, as one batch; raises KafkaError.

    Attributes:
        version: grows with each change.
    """

    def __init__(self, append: Callable[[list[MetadataRecord]], None]) -> None:
        self._append = append
        self._quotas: dict[Entity, dict[str, float]] = {}
        self.version = 0

    def matching(self, wanted: EntityFilter) -> Iterator[tuple[Entity, dict[str, float]]]:
        """Yields the entities that match, with their quotas."""
        return ((entity, dict(quotas)) for entity, quotas in self._quotas.items() if wanted.matches(entity))

    def alter(
        self, changes: Sequence[QuotaChange], *, validate_only: bool = False
    ) -> dict[Entity, tuple[ErrorCode, str | None]]:
        """Changes quotas, of each entity all or none; returns what became of each.

        Raises:
            KafkaError: POLICY_VIOLATION if there are too many changes, or KAFKA_STORAGE_ERROR.
        """
        if sum(max(1, len(change.values)) for change in changes) > MAX_CHANGES:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"At most {MAX_CHANGES} quotas can be changed at once.")
        results: dict[Entity, tuple[ErrorCode, str | None]] = {}
        records: list[MetadataRecord] = []
        for entity, values in changes:
            problem = "The entity is in the request twice." if entity in results else _problem(entity, values)
            if problem is None:
                records += self._records(entity, values)
            results[entity] = (ErrorCode.NONE, None) if problem is None else (ErrorCode.INVALID_REQUEST, problem)
        if records and not validate_only:
            self._append(records)
            for record in records:
                self.replay(record)
        return results

    def replay(self, record: MetadataRecord) -> None:
        """Applies a record of the metadata log."""
        if not isinstance(record, ClientQuotaRecord):
            return
        self.version += 1
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        quotas = self._quotas.setdefault(entity, {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            del self._quotas[entity]

    def _records(self, entity: Entity, values: Sequence[tuple[str, float | None]]) -> Iterator[ClientQuotaRecord]:
        """Those for the values that change something."""
        current = self._quotas.get(entity, {})
        parts = [
            ClientQuotaRecord.Entity(entity_type=kind, entity_name=name) for kind, name in sorted(entity, key=_kind)
        ]
        for key, value in values:
            if value is None and key in current:
                yield ClientQuotaRecord(entity=parts, key=key, remove=True)
            elif value is not None and value != current.get(key):
                yield ClientQuotaRecord(entity=parts, key=key, value=value)


def _kind(part: tuple[str, str | None]) -> str:
    return part[0]


def _problem(entity: Entity, values: Sequence[tuple[str, float | None]]) -> str | None:
    """Why quotas of an entity can't be set so; None if they can."""
    names = dict(entity)
    if not names:
        return "The entity has no parts."
    for kind, name in names.items():
        if kind not in TYPES:
            return f"There is no type of entity {shown(kind)}, only {', '.join(TYPES)}."
        if name == "":
            return f"The name of the {kind} is empty."
    if IP in names and len(names) > 1:
        return "An ip doesn't go together with a user or client-id."
    if not _is_address(names.get(IP)):
        return f"{shown(names[IP])} is no IP address."
    keys = [key for key, _ in values]
    if len(set(keys)) < len(keys):
        return "A quota is in the request twice."
    limits = _WHOLE_OF_ADDRESSES if IP in names else _WHOLE
    return next((problem for key, value in values if (problem := _value_problem(limits, key, value))), None)


def _value_problem(limits: Mapping[str, int | None], key: str, value: float | None) -> str | None:
    if value is None:
        return None  # what isn't there can be removed, too
    if key not in limits:
        return f"There is no quota {shown(key)} of this entity, only {', '.join(limits)}."
    if not value > 0:
        return f"{key} must be greater than 0."
    largest = limits[key]
    if largest is None:
        return None
    if value > largest:
        return f"{key} is at most {largest}."
    return None if abs(value % 1.0) <= 1e-6 else f"{key} must be a whole number."


def _is_address(name: str | None) -> bool:
    """Whether an ip's name is an address, or None for the default. Host names aren't resolved: that could take long."""
    if name is None:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
