"""The index of all messages by name: requests, responses, headers, embedded protocols, coordinator records."""

from __future__ import annotations

import difflib
from functools import cache

from kohort.protocol.message import Message
from kohort.protocol.messages import API_NAMES, api, apis, control_records
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kohort.protocol.messages.default_principal_data import DefaultPrincipalData
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.messages.streams_assignment import StreamsAssignment
from kohort.protocol.messages.streams_subscription import StreamsSubscription
from kohort.protocol.stored import record_types

__all__ = ["all_messages", "find_message"]


@cache
def all_messages() -> dict[str, type[Message]]:
    """Returns all messages by name ("HeartbeatRequest"): APIs by key, then headers, then data."""
    found: list[type[Message]] = [message for entry in apis() for message in (entry.request, entry.response)]
    found += [
        RequestHeader,
        ResponseHeader,
        ConsumerProtocolSubscription,
        ConsumerProtocolAssignment,
        StreamsSubscription,
        StreamsAssignment,
        DefaultPrincipalData,
        control_records.ControlRecordTypeSchema,
        control_records.EndTxnMarker,
        control_records.LeaderChangeMessage,
        control_records.SnapshotHeaderRecord,
        control_records.SnapshotFooterRecord,
        control_records.KRaftVersionRecord,
        control_records.VotersRecord,
    ]
    found += [message for record in record_types() for message in (record.key, record.value)]
    return {message.__name__: message for message in found}


def find_message(name: str, *, response: bool = False) -> type[Message]:
    """Finds a message by its own name, or its API's name or key, in any case; `response` selects an API's response.

    Raises:
        KeyError: there is no such message; the text suggests one.
    """
    name = {str(key): each for key, each in API_NAMES.items()}.get(name, name)
    try:
        entry = api(name)  # loads one module; the index loads all
    except KeyError:
        pass
    else:
        return entry.response if response else entry.request
    if found := _by_lower_name().get(name.lower()):
        return found
    names = {message.__message__.api.lower(): message.__message__.api for message in all_messages().values()}
    names |= {own.lower(): own for own in all_messages()}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {names[close[0]]}?" if close else ""
    raise KeyError(f"there is no message {name!r}{hint}")


@cache
def _by_lower_name() -> dict[str, type[Message]]:
    return {own.lower(): message for own, message in all_messages().items()}
