"""Requests that change and describe configurations."""

from __future__ import annotations

from typing import Any

from kohort.protocol.messages.describe_configs import DescribeConfigsRequest
from kohort.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.broker.handlers.conftest import Ask

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Edit = tuple[str, int, str | None]


def edit(ask: Ask, kind: int, name: str, *edits: Edit, version: int | None = None, validate_only: bool = False) -> Any:
    configs = [
        IncrementalAlterConfigsRequest.Resource.Config(name=key, config_operation=operation, value=value)
        for key, operation, value in edits
    ]
    resource = IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return ask(request, version).responses[0]


def describe(ask: Ask, kind: int, name: str, *keys: str, synonyms: bool = False, docs: bool = False) -> Any:
    wanted = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=synonyms, include_documentation=docs)
    return ask(request).results[0]
