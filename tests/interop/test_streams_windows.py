"""Windows with a grace in Kafka Streams: what the fold that the pipeline is compared with says, of the same records."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from ..spark.jobs.windowed import GRACE, SIZE, SLIDE, counted, walk
from ..waiting import eventually
from .streams_apps import WITHIN, Fleet
from .streams_words import Output

pytestmark = pytest.mark.long

PARTITIONS = 2


@pytest.mark.parametrize("seed", ["close", "update", "retention"])
@pytest.mark.parametrize(("topology", "slide"), [("tumbling", SIZE), ("hopping", SLIDE)])
def test_kafka_streams_counts_what_the_pipeline_does(fleet: Fleet, topology: str, slide: int, seed: str) -> None:
    """The records are those of `tests/pipeline/test_lateness.py`: the same windows and counts, as many late records."""
    application = f"{topology}-{seed}"
    source, target = fleet.topic(f"{application}-in", PARTITIONS), fleet.topic(f"{application}-out", 2)
    records = [walk(f"{seed} {at}", [f"{name}{at}" for name in "abc"]) for at in range(PARTITIONS)]
    producer = Producer({"bootstrap.servers": fleet.server.bootstrap})
    for partition, mine in enumerate(records):
        for key, time in mine:
            producer.produce(source, b"", key=key, partition=partition, timestamp=time)
    assert producer.flush(60) == 0
    folded = [counted(mine, SIZE, slide, GRACE) for mine in records]
    expected = {f"{key}@{start}": n for counts, _ in folded for (key, start), n in counts.items()}
    late = sum(number for _, number in folded)
    assert late > 0
    # Each record is counted in each of its windows, or late there.
    instance = fleet.start(application, topology, source=source, target=target)
    output = Output(fleet.server.bootstrap, target, 2)
    try:
        eventually(
            lambda: sum(map(len, output.read().values())) >= sum(expected.values()),
            within=WITHIN,
            what="all records are counted",
        )
        assert output.counts() == expected
        eventually(lambda: instance.dropped() == late, within=WITHIN, what=f"{late} records are late")
    finally:
        output.close()
