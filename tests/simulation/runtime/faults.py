"""What goes wrong by itself, and how likely: with requests, with jobs and stores, and with the process at any step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random


@dataclass
class Faults:
    """Probabilities, for each time that it could happen.

    Attributes:
        lost, answer_lost: of a request.
        late: of a request or its answer, by up to `late_ms`.
        refused: of a request: the broker says that it can't now.
        crash: at each step of an effect, before and after it; twenty times that while an epoch is sent and committed.
        job, commit, store, open: a job fails; a commit is refused; a store can't be written, or opened.
        fenced: somebody takes a producer for dead as it commits, and fences it: before that counts, or after.
        fatal: the brokers refuse records for good.
        stale_ends: the brokers say an end that was.
    """

    lost: float = 0.01
    answer_lost: float = 0.015
    late: float = 0.02
    late_ms: int = 5_000
    refused: float = 0.01
    crash: float = 0.0005
    job: float = 0.03
    commit: float = 0.01
    store: float = 0.01
    open: float = 0.02
    fenced: float = 0.01
    fatal: float = 0.0005
    stale_ends: float = 0.005

    def of_request(self, rng: Random) -> str:
        """What becomes of a request."""
        draw = rng.random()
        for fate in ("lost", "answer_lost", "late", "refused"):
            draw -= getattr(self, fate)
            if draw < 0:
                return fate
        return "smooth"

    def drawn(self, rng: Random) -> Faults:
        """Some of them more likely, others not at all: in the company of all others each is rare."""
        likely = {name: getattr(self, name) * rng.choice((0, 1, 1, 4)) for name in vars(self) if name != "late_ms"}
        return replace(self, **likely)


NONE = Faults(**{name: 1 if name == "late_ms" else 0 for name in vars(Faults())})
