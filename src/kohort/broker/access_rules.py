"""The access rules of a cluster: added, removed, kept in the metadata log, and looked up."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Final

from kohort.broker.config import Settings
from kohort.broker.turns import Slices
from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.stored.cluster_metadata import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)
from kohort.security.acls import Acl, AclFilter
from kohort.security.standard_authorizer import StandardAuthorizer

__all__ = ["MAX_CHANGES", "AccessRules", "configured_rules"]

MAX_CHANGES: Final = 10_000
"""Rules that one request may add or remove, as in Kafka."""

_PATTERNS_PER_SLICE: Final = 500
_EXACT: Final = (PatternType.LITERAL, PatternType.PREFIXED)


class AccessRules:
    """The rules, and the authorizer that decides by them.

    Args:
        append: appends records to the metadata log, as one batch; raises KafkaError.
        new_id: makes ids of rules.
    """

    def __init__(
        self,
        authorizer: StandardAuthorizer,
        append: Callable[[list[MetadataRecord]], None],
        new_id: Callable[[], uuid.UUID],
    ) -> None:
        self.authorizer: Final = authorizer
        self._append = append
        self._new_id = new_id
        self._by_id: dict[uuid.UUID, Acl] = {}
        self._ids: dict[tuple[ResourceType, PatternType, str], dict[Acl, uuid.UUID]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def matching(self, wanted: AclFilter) -> Slices[list[Acl]]:
        """The rules that match a filter, those of a pattern one after the other.

        Costs O(rules of the pattern) for a filter that names one, else O(rules).
        """
        if wanted.kind is not ResourceType.ANY and wanted.name is not None and wanted.pattern in _EXACT:
            same = self._ids.get((wanted.kind, wanted.pattern, wanted.name), {})
            return list(filter(wanted.matches_entry, same))
        found: list[Acl] = []
        for number, (pattern, acls) in enumerate(list(self._ids.items())):
            if wanted.matches_pattern(*pattern):
                found += filter(wanted.matches_entry, acls)
            if number % _PATTERNS_PER_SLICE == 0:
                yield
        return found

    def add(self, acls: Sequence[Acl]) -> int:
        """Adds rules, which must be without problems; those that are there already stay. How many are new.

        Raises:
            KafkaError: INVALID_REQUEST for too many, or KAFKA_STORAGE_ERROR; nothing is added.
        """
        new = [acl for acl in dict.fromkeys(acls) if acl not in self._ids.get(_pattern(acl), {})]
        self._commit([
            AccessControlEntryRecord(
                id=self._new_id(),
                resource_type=acl.kind,
                resource_name=acl.name,
                pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in new
        ])  # fmt: skip
        return len(new)

    def remove(self, acls: Sequence[Acl]) -> None:
        """Removes rules; those that aren't there are passed over.

        Raises:
            KafkaError: INVALID_REQUEST for too many, or KAFKA_STORAGE_ERROR; nothing is removed.
        """
        ids = (self._ids.get(_pattern(acl), {}).get(acl) for acl in dict.fromkeys(acls))
        self._commit([RemoveAccessControlEntryRecord(id=which) for which in ids if which is not None])

    def replay(self, record: MetadataRecord) -> None:
        """Applies a record of the metadata log.

        Raises:
            OSError: a rule isn't understood; to leave it out could allow what it denies.
        """
        match record:
            case AccessControlEntryRecord():
                acl = _acl(record)
                self._by_id[record.id] = acl
                self._ids.setdefault(_pattern(acl), {})[acl] = record.id
                self.authorizer.add(acl)
            case RemoveAccessControlEntryRecord():
                removed = self._by_id.pop(record.id, None)
                if removed is not None:
                    same = self._ids[_pattern(removed)]
                    del same[removed]
                    if not same:
                        del self._ids[_pattern(removed)]
                    self.authorizer.remove(removed)

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        if len(records) > MAX_CHANGES:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"At most {MAX_CHANGES} rules can be changed at once, not {len(records)}."
            )
        if records:
            self._append(list(records))
            for record in records:
                self.replay(record)


def _acl(record: AccessControlEntryRecord) -> Acl:
    try:
        return Acl(
            ResourceType(record.resource_type),
            record.resource_name,
            PatternType(record.pattern_type),
            record.principal,
            record.host,
            Operation(record.operation),
            Permission(record.permission_type),
        )
    except ValueError as error:
        raise OSError(
            f"the metadata log has an access rule that isn't understood: {record}: {error}. To leave it out could "
            "allow what it denies: start the version of the server that wrote it"
        ) from None


def _pattern(acl: Acl) -> tuple[ResourceType, PatternType, str]:
    return acl.kind, acl.pattern, acl.name


def configured_rules(
    settings: Settings, append: Callable[[list[MetadataRecord]], None], new_id: Callable[[], uuid.UUID]
) -> AccessRules | None:
    """The rules of a broker whose configuration names an authorizer, which is Kafka's StandardAuthorizer."""
    if not settings.text("authorizer.class.name"):
        return None
    users = [user for part in settings.text("super.users").split(";") if (user := part.strip())]
    authorizer = StandardAuthorizer(users, allow_without_rules=settings.flag("allow.everyone.if.no.acl.found"))
    return AccessRules(authorizer, append, new_id)
