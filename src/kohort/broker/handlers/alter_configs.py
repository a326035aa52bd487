"""AlterConfigs: replaces all that is set for resources. IncrementalAlterConfigs has taken its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kohort.broker.admin.config_changes import Changes, alter_resource, check_distinct, check_given, config_resource
from kohort.broker.context import Context
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Resource = AlterConfigsRequest.Resource
Outcome = AlterConfigsResponse.ResourceResponse


def handle(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    """Replace each resource's settings, or only check them; what isn't named goes back to its default."""
    counts = Counter((each.resource_type, each.resource_name) for each in request.resources)
    outcomes = []
    for resource in request.resources:
        outcome = Outcome(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            check_distinct(counts, resource.resource_type, resource.resource_name)
            _replace(resource, request.validate_only, context)
        except KafkaError as error:
            outcome.error_code, outcome.error_message = error.code, error.detail
        outcomes.append(outcome)
    return AlterConfigsResponse(responses=outcomes)


def _replace(resource: Resource, validate_only: bool, context: Context) -> None:
    check_given((config.name, config.value is None) for config in resource.configs)

    def decide(current: Mapping[str, str]) -> Changes:
        return {**dict.fromkeys(current), **{config.name: config.value for config in resource.configs}}

    kind = config_resource(resource.resource_type)
    alter_resource(context, kind, resource.resource_name, decide, validate_only)
