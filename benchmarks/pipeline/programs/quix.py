"""quixstreams; it runs in a virtual environment of its own, so nothing of this project can be imported here.

Usage: quix.py OPTIONS, JSON: servers, application, source, results, directory.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from quixstreams import Application, State


class Started:
    """Tells once that the first record is here."""

    told = False

    @classmethod
    def tell(cls) -> None:
        """The first call counts."""
        if not cls.told:
            cls.told = True
            print(f"started {time.time()}", flush=True)


def known(flight: dict[str, Any]) -> bool:
    Started.tell()
    return flight["dep_delay"] is not None


def aggregated(flight: dict[str, Any], state: State) -> dict[str, Any]:
    """The group's aggregates, with this flight's delay in them."""
    delay = flight["dep_delay"]
    n, total, worst = state.get("delays", (0, 0, delay))
    n, total, worst = n + 1, total + delay, max(worst, delay)
    state.set("delays", (n, total, worst))
    window = flight["time_hour"].replace("Z", ".000Z")
    return {"origin": flight["origin"], "window": window, "n": n, "mean": total / n, "worst": worst}


def main(servers: str, application: str, source: str, results: str, directory: str, **_: object) -> None:
    app = Application(
        broker_address=servers,
        consumer_group=application,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=0.5,
        state_dir=f"{directory}/state",
        consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000},
        loglevel="WARNING",
    )
    flights = app.dataframe(app.topic(source, value_deserializer="json"))
    flights = flights.filter(known)
    flights = flights.group_by(lambda flight: flight["origin"] + "|" + flight["time_hour"], name="origin-hour")
    flights.apply(aggregated, stateful=True).to_topic(app.topic(results, value_serializer="json"))
    app.run()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
