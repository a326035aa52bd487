"""Quotas of clients: how much users, client ids and addresses may do."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kohort.client.administration.node_lookup import any_node, controller
from kohort.client.administration.request_router import Failure, Node, RequestRouter
from kohort.client.errors import kafka_error, raise_for
from kohort.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kohort.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

__all__ = ["DEFAULT", "Default", "QuotaEntity", "Quotas"]


class Default(enum.Enum):
    """The type of `DEFAULT`."""

    DEFAULT = "default"


DEFAULT: Final = Default.DEFAULT
"""In place of a name: all users, client ids or addresses that have no quotas by name, each for itself."""


class QuotaEntity(NamedTuple):
    """Whom quotas are for: a user, a client id, a client id of a user, or an address; by name or `DEFAULT`."""

    user: str | Default | None = None
    client_id: str | Default | None = None
    ip: str | Default | None = None


ALL: Final = QuotaEntity()

_TYPES: Final = dict(zip(QuotaEntity._fields, ("user", "client-id", "ip"), strict=True))
"""Kafka's names of the parts."""

_EXACT: Final = 0
_DEFAULT: Final = 1

Entry = AlterClientQuotasRequest.Entry
Component = DescribeClientQuotasRequest.Component


class Quotas:
    """Quotas of clients: `Admin.quotas`. Errors and `timeout_ms` as in `Topics`.

    Quotas are, for users and client ids, `producer_byte_rate` and `consumer_byte_rate` (bytes a second),
    `request_percentage` (of a thread's time) and `controller_mutation_rate` (partitions a second); for addresses
    `connection_creation_rate` (connections a second).
    """

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(
        self, wanted: QuotaEntity = ALL, *, exactly: bool = False, timeout_ms: int | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Returns the quotas by entity, sorted.

        Args:
            wanted: parts that entities must have.
            exactly: whether they may have no others.
        """
        components = [
            Component(entity_type=kind, match_type=_EXACT if name is not None else _DEFAULT, match=name)
            for kind, name in _parts(wanted)
        ]
        request = DescribeClientQuotasRequest(components=components, strict=exactly)

        async def ask(node: Node, keys: Sequence[None]) -> Mapping[None, dict[QuotaEntity, dict[str, float]]]:
            answer = await node.ask(request, DescribeClientQuotasResponse)
            raise_for(answer.error_code, answer.error_message)
            return {None: {_entity(entry): _values(entry) for entry in answer.entries or ()}}

        outcomes = await self._router.ask_nodes([None], any_node, ask, self._router.deadline(timeout_ms))
        found = outcomes.checked()[None]
        return dict(sorted(found.items(), key=lambda item: _order(item[0])))

    async def set(
        self,
        entity: QuotaEntity,
        quotas: Mapping[str, float],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Sets quotas of an entity; its others stay.

        Raises:
            KafkaError: INVALID_REQUEST: there is no such quota, or entity, or the value can't be.
        """
        ops = [Entry.Op(key=key, value=float(value)) for key, value in quotas.items()]
        await self._alter(entity, ops, validate_only, timeout_ms)

    async def remove(self, entity: QuotaEntity, *keys: str, timeout_ms: int | None = None) -> dict[str, float]:
        """Removes quotas of an entity, all if none is named; returns those that there were."""
        known = (await self.describe(entity, exactly=True, timeout_ms=timeout_ms)).get(entity, {})
        removed = {key: value for key, value in known.items() if not keys or key in keys}
        if removed:
            await self._alter(entity, [Entry.Op(key=key, remove=True) for key in removed], False, timeout_ms)
        return removed

    async def _alter(
        self, entity: QuotaEntity, ops: Sequence[Entry.Op], validate_only: bool, timeout_ms: int | None
    ) -> None:
        parts = [Entry.Entity(entity_type=kind, entity_name=name) for kind, name in _parts(entity)]
        request = AlterClientQuotasRequest(entries=[Entry(entity=parts, ops=list(ops))], validate_only=validate_only)

        async def ask(node: Node, keys: Sequence[QuotaEntity]) -> Mapping[QuotaEntity, Failure | None]:
            answer = await node.ask(request, AlterClientQuotasResponse)
            (result,) = answer.entries
            return {entity: kafka_error(result.error_code, result.error_message) if result.error_code else None}

        (await self._router.ask_nodes([entity], controller, ask, self._router.deadline(timeout_ms))).checked()


def _parts(entity: QuotaEntity) -> list[tuple[str, str | None]]:
    """Kafka's types and names of an entity; None for the default."""
    return [
        (_TYPES[field], None if isinstance(name, Default) else name)
        for field, name in zip(entity._fields, entity, strict=True)
        if name is not None
    ]


def _entity(entry: DescribeClientQuotasResponse.Entry) -> QuotaEntity:
    named = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in entry.entity}
    return QuotaEntity(*(named.get(kind) for kind in _TYPES.values()))


def _values(entry: DescribeClientQuotasResponse.Entry) -> dict[str, float]:
    return {value.key: value.value for value in sorted(entry.values, key=lambda each: each.key)}


def _order(entity: QuotaEntity) -> list[tuple[int, str]]:
    """Named ones by name, defaults after them; what isn't there last."""
    return [(2, "") if name is None else (1, "") if isinstance(name, Default) else (0, name) for name in entity]
