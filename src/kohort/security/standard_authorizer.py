"""Decisions of Kafka's StandardAuthorizer: super users, rules, and what counts where there is no rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.protocol.access_types import Operation, ResourceType
from kohort.security.acl_index import AclIndex
from kohort.security.acls import Acl

__all__ = ["StandardAuthorizer"]

CACHED_DECISIONS: Final = 10_000
CACHED_NAME: Final = 255
"""Characters of the longest name whose decisions are cached, so that the cache has a bound in bytes."""


class StandardAuthorizer:
    """Decides by rules: a denial counts before any permission, and what no rule allows is denied.

    Args:
        super_users: principals that are allowed everything, as "User:alice".
        allow_without_rules: whether everyone may do everything to a resource that no rule is about.
    """

    def __init__(self, super_users: Iterable[str] = (), *, allow_without_rules: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._default = allow_without_rules
        self._index = AclIndex()
        self._cache: dict[tuple[str, str, Operation, ResourceType, str], bool] = {}

    def add(self, acl: Acl) -> None:
        """Adds a rule, which counts from now on."""
        self._index.add(acl)
        self._cache.clear()

    def remove(self, acl: Acl) -> None:
        """Removes a rule."""
        self._index.remove(acl)
        self._cache.clear()

    def allowed(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether `principal` ("User:alice") from `host` is allowed `operation` on the resource."""
        if principal in self._super_users:
            return True
        asked = (principal, host, operation, kind, name)
        found = self._cache.get(asked)
        if found is None:
            decision = self._index.decide(*asked)
            found = self._default if decision is None else decision
            if len(name) <= CACHED_NAME:
                if len(self._cache) >= CACHED_DECISIONS:
                    self._cache.clear()
                self._cache[asked] = found
        return found

    def allowed_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether `principal` from `host` is allowed `operation` on any resource of a type, be it there or not."""
        # A name that nobody has a rule about shows what is true without rules, as in Kafka.
        if self.allowed(principal, host, operation, kind, "hardcode"):
            return True
        return self._index.allowed_on_any(principal, host, operation, kind)
