"""Validation of the broker's values at start-up."""

from __future__ import annotations

from collections.abc import Callable

from kohort.broker.config.broker_keys import BROKER_KEYS
from kohort.broker.config.errors import nearest
from kohort.broker.config.group_keys import GROUP_LIMITS
from kohort.broker.config.ignored_keys import IGNORED_KEYS, IGNORED_PREFIXES, IGNORED_REASONS, REFUSED, REMOVED
from kohort.broker.config.inert_keys import INERT_REASONS
from kohort.broker.config.keys import Key
from kohort.broker.config.security_keys import SECURITY_KEYS, ListenerKey, listener_key
from kohort.broker.config.topic_keys import BROKER_KEY_OF


def check_at_start(name: str, text: str) -> tuple[str | None, str | None]:
    """Returns the problem with a broker's value at start-up, and a note for the operator; None for neither."""
    key = BROKER_KEYS.get(name)
    if key is not None:
        why = INERT_REASONS.get(name)
        return problem_with(key, text), f"without effect, for {why}" if why else None
    if name in REFUSED:
        unset = text.strip().lower() in ("", "false")
        return (None if unset else f"it isn't supported: {REFUSED[name]}"), None
    ignored = IGNORED_KEYS.get(name)
    if ignored is not None:
        problem = problem_with(ignored, text) if text.strip() else None
        return problem, f"without effect, for {IGNORED_REASONS[name]}"
    if name in REMOVED:
        return None, "without effect; Kafka doesn't know it any more either"
    if name.startswith(IGNORED_PREFIXES):
        return None, "without effect; settings of plugins aren't used"
    if own := listener_key(name):
        return _check_of_listener(own, text)
    return f"there is no such key{nearest(name, (*BROKER_KEYS, *IGNORED_KEYS), BROKER_KEY_OF)}", None


def _check_of_listener(own: ListenerKey, text: str) -> tuple[str | None, str | None]:
    if own.listener != own.listener.lower():
        return "the listener's name goes in lower case here", None
    if own.key is not None:
        return problem_with(own.key, text), None
    if own.rest in IGNORED_KEYS or own.rest in BROKER_KEYS.keys() - SECURITY_KEYS.keys():
        return None, f"without effect: {own.rest} is the same for all listeners here, or isn't used"
    return f"{own.rest} is no key of a listener{nearest(own.rest, SECURITY_KEYS)}", None


def group_bound_problems(value_of: Callable[[str], int]) -> list[str]:
    """Returns the problems of the broker's own group values with the bounds it sets."""
    problems = []
    for name, bounds in GROUP_LIMITS.items():
        key = f"group.{name}"
        if key not in BROKER_KEYS:
            continue
        low, high = bounds
        value = value_of(key)
        if low is not None and value < value_of(low):
            problems.append(f"{key} is {value}, but {low} allows no less than {value_of(low)}: set that, too")
        if high is not None and value > value_of(high):
            problems.append(f"{key} is {value}, but {high} allows no more than {value_of(high)}: set that, too")
    for kind in ("consumer", "streams", "share"):
        session, heartbeat = f"group.{kind}.session.timeout.ms", f"group.{kind}.heartbeat.interval.ms"
        if value_of(session) <= value_of(heartbeat):
            problems.append(f"{session} must be more than {heartbeat}")
    return problems


def problem_with(key: Key, text: str) -> str | None:
    """Why a text can't be the value of a key; None if it can."""
    try:
        key.parse(text)
    except ValueError as error:
        shown = "the value" if key.sensitive else repr(text)
        return f"{shown} can't be: {error}"
    return None
