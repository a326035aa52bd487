"""Validation of changes at run time: of the broker, topics, groups and client metrics. Errors are for the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.client_metrics_keys import CLIENT_METRICS_KEYS
from kohort.broker.config.errors import nearest
from kohort.broker.config.group_keys import GROUP_KEYS, GROUP_LIMITS
from kohort.broker.config.ignored_keys import IGNORED_REASONS, REFUSED
from kohort.broker.config.inert_keys import THREAD_KEYS
from kohort.broker.config.keys import Change, Key, Value
from kohort.broker.config.security_keys import listener_key
from kohort.broker.config.settings import Settings
from kohort.broker.config.topic_keys import BROKER_KEY_OF, TOPIC_KEYS
from kohort.broker.config.validation import group_bound_problems, problem_with
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.regex import full_matches

_MATCHABLE: Final = frozenset(
    {
        "client_id", "client_instance_id", "client_software_name", "client_software_version", "client_source_address",
        "client_source_port",
    }
)  # fmt: skip
"""Match parameters of a client metrics subscription."""


def check_broker_changes(changes: Mapping[str, str | None], *, all_brokers: bool) -> None:
    """Checks changes of a broker's values at run time, for all brokers or one; None removes a value.

    Raises:
        KafkaError: INVALID_REQUEST, as in Kafka.
    """
    for name, text in changes.items():
        problem = _broker_problem(name, text, all_brokers)
        if problem:
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)


def _broker_problem(name: str, text: str | None, all_brokers: bool) -> str | None:
    key = BROKER_KEYS.get(name)
    if key is None:
        why = IGNORED_REASONS.get(name) or REFUSED.get(name)
        if why:
            return f"{name} can't be changed here, for {why}"
        if listener_key(name):
            return f"{name} can't be changed while the broker runs; certificates are read again when their files change"
        return f"{name} is no key of a broker{nearest(name, BROKER_KEYS, BROKER_KEY_OF)}"
    if key.change is Change.NEVER:
        return f"{name} can't be changed while the broker runs"
    if key.change is Change.BROKER and all_brokers:
        return f"{name} can't be set for all brokers at once, only for one"
    problem = problem_with(key, text) if text is not None else None
    return f"{name}: {problem}" if problem else None


def check_broker_settings(before: Settings, after: Settings) -> None:
    """Checks what would be in force at run time.

    Values for groups keep to the broker's own bounds; thread counts change by at most the factor 2, as in Kafka.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    problems = group_bound_problems(after.int)
    if problems:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "; ".join(problems))
    for name in THREAD_KEYS:
        old, new = before.int(name), after.int(name)
        if new == old:
            continue
        if new < max(1, old // 2):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name}={new}: at least half of the current {old} is needed")
        if new > old * 2:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name}={new}: at most double the current {old} is possible")


def check_topic_configs(configs: Mapping[str, str]) -> None:
    """Checks a topic's configuration.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    values = _values(TOPIC_KEYS, "topic", configs)
    low, high = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise _invalid(f"min.compaction.lag.ms is {low}, more than max.compaction.lag.ms, which is {high}")


def check_group_configs(configs: Mapping[str, str], settings: Settings) -> None:
    """Checks a group's configuration, with the bounds of the broker's configuration.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    limit = settings.int
    values = _values(GROUP_KEYS, "group", configs)
    for name, value in values.items():
        if name not in GROUP_LIMITS or not isinstance(value, int):
            continue
        low, high = GROUP_LIMITS[name]
        if low is not None and value < limit(low):
            raise _invalid(f"{name} is {value}, but {low} allows no less than {limit(low)}")
        if high is not None and value > limit(high):
            raise _invalid(f"{name} is {value}, but {high} allows no more than {limit(high)}")
    assignor, assignors = values.get("streams.assignor.name"), settings.names("group.streams.assignors")
    if assignor is not None and assignor not in assignors:
        raise _invalid(f"streams.assignor.name is {assignor!r}, but group.streams.assignors has {', '.join(assignors)}")
    for kind in ("consumer", "streams", "share"):
        keys = (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
        session, heartbeat = (values.get(key, limit(f"group.{key}")) for key in keys)
        if isinstance(session, int) and isinstance(heartbeat, int) and session <= heartbeat:
            raise _invalid(f"{keys[0]} must be more than {keys[1]}")


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Checks a client metrics subscription.

    Raises:
        KafkaError: INVALID_CONFIG for `match`, INVALID_REQUEST for the rest, as in Kafka.
    """
    for name, text in configs.items():
        if name not in CLIENT_METRICS_KEYS:
            hint = nearest(name, CLIENT_METRICS_KEYS)
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is no key of a client-metrics subscription{hint}")
        problem = problem_with(CLIENT_METRICS_KEYS[name], text)
        if problem:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name}: {problem}")
    for pattern in filter(None, map(str.strip, configs.get("match", "").split(","))):
        name, equals, expression = pattern.partition("=")
        if not equals or name.strip() not in _MATCHABLE or not _compiles(expression.strip()):
            raise _invalid(f"match: {pattern!r} isn't PARAMETER=REGEX, with one of {', '.join(sorted(_MATCHABLE))}")


def _values(keys: Mapping[str, Key], kind: str, configs: Mapping[str, str]) -> dict[str, Value]:
    values = {}
    for name, text in configs.items():
        if name not in keys:
            raise _invalid(f"{name} is no key of a {kind}{nearest(name, keys)}")
        problem = problem_with(keys[name], text)
        if problem:
            raise _invalid(f"{name}: {problem}")
        values[name] = keys[name].parse(text)
    return values


def _compiles(expression: str) -> bool:
    try:
        full_matches(expression, ())
    except ValueError:
        return False
    return True


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, detail)
