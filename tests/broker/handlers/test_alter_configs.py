"""AlterConfigs: all settings of a resource are replaced."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.alter_configs import AlterConfigsRequest
from tests.broker.handlers.configs import LOGGER, TOPIC
from tests.broker.handlers.conftest import Ask


def replace(ask: Ask, kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False) -> Any:
    values = [AlterConfigsRequest.Resource.Config(name=key, value=value) for key, value in configs]
    resource = AlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=values)
    return ask(AlterConfigsRequest(resources=[resource], validate_only=validate_only)).responses[0]


def test_what_is_not_named_goes_back_to_its_default(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1, {"retention.ms": "1", "segment.ms": "2"})
    assert replace(ask, TOPIC, "there", ("retention.ms", "3")).error_code == ErrorCode.NONE
    assert topic.configs == {"retention.ms": "3"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (TOPIC, "there", [("retention.ms", None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "there", [("retention.ms", "1"), ("retention.ms", "1")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "there", [("retention.ms", "soon")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "absent", [], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (LOGGER, "1", [("kohort", "INFO")], ErrorCode.INVALID_REQUEST),
        (99, "1", [], ErrorCode.INVALID_REQUEST),
    ],
)
def test_replacements_that_are_refused(
    kind: int, name: str, configs: list[tuple[str, str | None]], code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    topic = broker.topics.create("there", 1, {"segment.ms": "2"})
    assert replace(ask, kind, name, *configs).error_code == code
    assert topic.configs == {"segment.ms": "2"}


def test_a_replacement_that_is_only_checked(ask: Ask, broker: Broker) -> None:
    topic = broker.topics.create("there", 1, {"segment.ms": "2"})
    assert replace(ask, TOPIC, "there", validate_only=True).error_code == ErrorCode.NONE
    assert topic.configs == {"segment.ms": "2"}
