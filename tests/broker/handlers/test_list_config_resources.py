"""ListConfigResources: topics, brokers, groups and client metrics with settings."""

from __future__ import annotations

import pytest

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.broker.handlers.configs import (
    GROUP,
    METRICS,
    SET,
    edit,
)
from tests.broker.handlers.conftest import Ask


@pytest.mark.parametrize(
    ("version", "kinds", "resources"),
    [
        (0, (), [("all", 16)]),
        (1, (), [("mine", 32), ("all", 16), ("1", 8), ("1", 4), ("there", 2)]),
        (1, (2,), [("there", 2)]),
        (1, (4, 8, 4), [("1", 8), ("1", 4)]),
    ],
)
def test_resources_are_listed(
    version: int, kinds: tuple[int, ...], resources: list[tuple[str, int]], ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    edit(ask, GROUP, "mine", ("consumer.session.timeout.ms", SET, "50000"))
    edit(ask, METRICS, "all", ("metrics", SET, "*"))
    listed = ask(ListConfigResourcesRequest(resource_types=kinds), version).config_resources
    assert [(resource.resource_name, resource.resource_type) for resource in listed] == resources


def test_types_that_there_are_not(ask: Ask) -> None:
    response = ask(ListConfigResourcesRequest(resource_types=(2, 99)))
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
