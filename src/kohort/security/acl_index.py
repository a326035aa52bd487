"""Rules by the resources that they cover, so that a decision costs the same however many rules there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.security.acls import EVERYONE, WILDCARD, Acl
from kohort.security.addresses import spellings

__all__ = ["AclIndex"]

_LITERAL: Final = PatternType.LITERAL
_PREFIXED: Final = PatternType.PREFIXED

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Who is allowed one of these may do that as well. Denials imply nothing."""


class _Entry(NamedTuple):
    """A rule without its resources."""

    principal: str
    permission: Permission
    operation: Operation
    host: str


Pattern = tuple[ResourceType, PatternType, str]


class AclIndex:
    """A set of rules. A decision looks at the rules for the name, for the wildcard, and for each length of prefix.

    Costs: a change O(1); a decision O(lengths of prefixes that there are for the type); `allowed_on_any` O(patterns
    of the type).
    """

    def __init__(self) -> None:
        self._entries: dict[Pattern, set[_Entry]] = {}
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {kind: Counter() for kind in ResourceType}

    def add(self, acl: Acl) -> None:
        """Adds a rule; one that is there already changes nothing."""
        pattern = (acl.kind, acl.pattern, acl.name)
        entries = self._entries.get(pattern)
        if entries is None:
            entries = self._entries[pattern] = set()
            if acl.pattern is _PREFIXED:
                self._prefix_lengths[acl.kind][len(acl.name)] += 1
        entries.add(_Entry(acl.principal, acl.permission, acl.operation, acl.host))

    def remove(self, acl: Acl) -> None:
        """Removes a rule; one that isn't there changes nothing."""
        pattern = (acl.kind, acl.pattern, acl.name)
        entries = self._entries.get(pattern)
        if entries is None:
            return
        entries.discard(_Entry(acl.principal, acl.permission, acl.operation, acl.host))
        if not entries:
            del self._entries[pattern]
            if acl.pattern is _PREFIXED:
                lengths = self._prefix_lengths[acl.kind]
                lengths[len(acl.name)] -= 1
                if not lengths[len(acl.name)]:
                    del lengths[len(acl.name)]

    def decide(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool | None:
        """Whether an operation is allowed; None if there is no rule about the resource at all."""
        denials = _denials(principal, host, operation)
        grants = _grants(principal, host, operation)
        decision: bool | None = None
        for entries in self._covering(kind, name):
            if not entries.isdisjoint(denials):
                return False
            decision = bool(decision) or not entries.isdisjoint(grants)
        return decision

    def allowed_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether there can be a resource of a type on which an operation is allowed."""
        denials = _denials(principal, host, operation)
        grants = _grants(principal, host, operation, implied=False)
        denied: dict[PatternType, set[str]] = {_LITERAL: set(), _PREFIXED: set()}
        granted: list[tuple[PatternType, str]] = []
        for (of, pattern, name), entries in self._entries.items():
            if of is kind:
                if not entries.isdisjoint(denials):
                    denied[pattern].add(name)
                if not entries.isdisjoint(grants):
                    granted.append((pattern, name))
        if WILDCARD in denied[_LITERAL]:
            return False
        return any(
            (pattern, name) == (_LITERAL, WILDCARD)
            or not (
                (pattern is _LITERAL and name in denied[_LITERAL])
                or any(name[:length] in denied[_PREFIXED] for length in range(1, len(name) + 1))
            )
            for pattern, name in granted
        )

    def _covering(self, kind: ResourceType, name: str) -> Iterator[set[_Entry]]:
        """The entries of each pattern that covers a resource."""
        found = self._entries.get
        yield from filter(None, (found((kind, _LITERAL, name)), found((kind, _LITERAL, WILDCARD))))
        for length in self._prefix_lengths[kind]:
            if length <= len(name) and (entries := found((kind, _PREFIXED, name[:length]))):
                yield entries


def _denials(principal: str, host: str, operation: Operation) -> set[_Entry]:
    return _entries(principal, host, Permission.DENY, (operation, Operation.ALL))


def _grants(principal: str, host: str, operation: Operation, *, implied: bool = True) -> set[_Entry]:
    others = _IMPLIED_BY.get(operation, ()) if implied else ()
    return _entries(principal, host, Permission.ALLOW, (operation, Operation.ALL, *others))


def _entries(principal: str, host: str, permission: Permission, operations: tuple[Operation, ...]) -> set[_Entry]:
    return {
        _Entry(who, permission, operation, where)
        for who in (principal, EVERYONE)
        for operation in operations
        for where in (*spellings(host), WILDCARD)
    }
