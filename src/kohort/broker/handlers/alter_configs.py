"""AlterConfigs: replaces the configurations of resources; superseded by IncrementalAlterConfigs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.broker.admin.config_changes import Changes, alter_each, alter_resource, check_keys, config_resource
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices
from kohort.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

SERVED: Final = Served(AlterConfigsRequest, versions=(0, 2), max_items=ONE_STEP)

Resource = AlterConfigsRequest.Resource
Outcome = AlterConfigsResponse.ResourceResponse


def handle(request: AlterConfigsRequest, context: Context) -> Slices[AlterConfigsResponse]:
    """Replaces each resource's configuration, or only validates it; keys left out get their defaults."""
    outcomes = yield from alter_each(
        request.resources, Outcome, lambda resource: _replace(resource, request.validate_only, context)
    )
    return AlterConfigsResponse(responses=outcomes)


def _replace(resource: Resource, validate_only: bool, context: Context) -> None:
    check_keys((config.name, config.value is None) for config in resource.configs)

    def decide(current: Mapping[str, str]) -> Changes:
        return {**dict.fromkeys(current), **{config.name: config.value for config in resource.configs}}

    kind = config_resource(resource.resource_type)
    alter_resource(context, kind, resource.resource_name, decide, validate_only)
