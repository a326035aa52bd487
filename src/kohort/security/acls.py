"""Access rules (ACLs), and filters that find them."""

from __future__ import annotations

from typing import Final, NamedTuple

from kohort.protocol.access_types import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

__all__ = ["EVERYONE", "WILDCARD", "Acl", "AclFilter"]

WILDCARD: Final = "*"
"""A literal name that stands for every resource of a type, and the host that stands for all."""

EVERYONE: Final = "User:*"


class Acl(NamedTuple):
    """A rule: who may or may not do what to which resources, from where."""

    kind: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def problem(self) -> str | None:
        """Why there can't be such a rule; None if there can."""
        if self.kind is ResourceType.ANY:
            return "A rule is about one type of resource, not ANY."
        if self.kind is ResourceType.CLUSTER and self.name != CLUSTER_NAME:
            return f"The only resource of type CLUSTER is {CLUSTER_NAME}."
        if not self.name:
            return "The resource's name is empty."
        if self.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
            return f"A rule's pattern is LITERAL or PREFIXED, not {self.pattern.name}."
        if self.operation is Operation.ANY:
            return "A rule is about one operation, or ALL; not ANY."
        if self.permission is Permission.ANY:
            return "A rule allows or denies; its permission can't be ANY."
        if ":" not in self.principal:
            return "The principal has no type: User:alice is one with it."
        return None


class AclFilter(NamedTuple):
    """Which rules are wanted; None and ANY match everything.

    A pattern of type MATCH finds all the rules that cover the name: itself, its prefixes, and the wildcard.
    """

    kind: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether a rule is wanted."""
        return self.matches_pattern(acl.kind, acl.pattern, acl.name) and self.matches_entry(acl)

    def matches_pattern(self, kind: ResourceType, pattern: PatternType, name: str) -> bool:
        """Whether rules about these resources are wanted."""
        if self.kind not in (ResourceType.ANY, kind):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is not PatternType.MATCH:
            return self.name == name
        if pattern is PatternType.PREFIXED:
            return self.name.startswith(name)
        return name in (self.name, WILDCARD)

    def matches_entry(self, acl: Acl) -> bool:
        """Whether a rule is wanted, whatever resources it is about."""
        return (
            self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )
