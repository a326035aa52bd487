"""Client metrics subscriptions: the cache of clients."""

from __future__ import annotations

from uuid import UUID

from kohort.broker.client_telemetry import MAX_CLIENTS, ClientTelemetry
from tests.broker.handlers.conftest import NOW
from tests.broker.handlers.telemetry import CLIENT


def test_a_client_that_was_forgotten_may_push() -> None:
    telemetry = ClientTelemetry(list, 100, lambda: CLIENT)
    ids = [UUID(int=number) for number in range(2, MAX_CLIENTS + 3)]
    subscriptions = [telemetry.subscribe(client, {}, NOW).subscription_id for client in ids]
    telemetry.push(ids[0], {}, NOW + 1, subscription_id=subscriptions[0], terminating=False, compression=0, size=1)
    assert telemetry.pushes == 1


def test_ids_that_are_taken_are_not_given_again() -> None:
    ids = iter([CLIENT, CLIENT, UUID(int=5)])
    telemetry = ClientTelemetry(list, 100, lambda: next(ids))
    telemetry.subscribe(telemetry.new_id(), {}, NOW)
    assert telemetry.new_id() == UUID(int=5)
