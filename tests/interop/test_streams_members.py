"""Instances of Kafka Streams that join and leave: who has which task, and how soon."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..waiting import eventually
from .streams_apps import WITHIN, Fleet, Instance, share, tasks
from .streams_words import Lines, Output

NewName = Callable[[], str]
ALL = tasks(_0=3, _1=3)


def test_one_that_is_closed_leaves_at_once(fleet: Fleet, new_name: NewName) -> None:
    application, source, target = new_name(), fleet.topic(new_name(), 3), fleet.topic(new_name())
    fleet.configure(application, streams__session__timeout__ms="60000")
    a, b = (fleet.start(application, "word-count", source=source, target=target) for _ in range(2))
    eventually(lambda: share([a, b], ALL), within=WITHIN, what="two share the tasks")
    a.close()
    eventually(lambda: share([b], ALL), within=30, what="one has all, long before the session of the other ends")


def test_threads_of_one_instance_share_its_tasks(fleet: Fleet, new_name: NewName) -> None:
    source, target = fleet.topic(new_name(), 4), fleet.topic(new_name())
    configs = {"num.stream.threads": "2"}
    instance = fleet.start(new_name(), "word-count", source=source, target=target, configs=configs)
    four = sorted(tasks(_0=4, _1=4))

    def evenly() -> bool:
        told = instance.told("tasks")
        shares = told[-1]["by thread"] if told else []
        return [len(s) for s in shares] == [4, 4] and sorted(t for s in shares for t in s) == four

    eventually(evenly, within=WITHIN, what="each thread has half of them")


@pytest.mark.long
def test_an_application_changes_its_protocol_and_goes_on(fleet: Fleet, new_name: NewName) -> None:
    application, source, target = new_name(), fleet.topic(new_name(), 3), fleet.topic(new_name())
    lines, output = Lines(fleet.server.bootstrap, source, 3), Output(fleet.server.bootstrap, target, 1)
    for protocol in ("classic", "streams", "classic"):
        configs = {"group.protocol": protocol}
        instance = fleet.start(
            application, "word-count", source=source, target=target, directory="kept", configs=configs
        )
        lines.write(20)
        eventually(lambda: output.counts() == lines.counts(), within=WITHIN, what=f"all is counted, {protocol}")
        instance.close(leave=protocol == "classic")
    output.close()


@pytest.mark.long
def test_kafka_streams_that_never_tells_its_offsets(fleet: Fleet, new_name: NewName) -> None:
    """Kafka Streams before 4.4: what it has restored is not known, so nothing may wait for it."""
    application, source, target = new_name(), fleet.topic(new_name(), 3), fleet.topic(new_name())
    lines, output = Lines(fleet.server.bootstrap, source, 3), Output(fleet.server.bootstrap, target, 1)

    def start(*, older: bool) -> Instance:
        process = fleet.process(older=True) if older else None
        return fleet.start(application, "word-count", process=process, source=source, target=target)

    a = start(older=True)
    lines.write(30)
    eventually(lambda: output.counts() == lines.counts(), within=WITHIN, what="all is counted")
    b = start(older=False)
    eventually(lambda: share([a, b], ALL), within=WITHIN, what="an older and a newer one share the tasks")
    lines.write(30)
    eventually(lambda: output.counts() == lines.counts(), within=WITHIN, what="all is counted, and once")
    output.close()
