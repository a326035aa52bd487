"""A worker's epochs in virtual time: what is written and acknowledged, whatever fails."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import pyarrow as pa
import pytest

from kohort.spark.errors import ApplicationError
from kohort.spark.program.compiled import ToTopic
from kohort.spark.program.queues import QueueSettings
from kohort.spark.queues import worker as worker_module
from kohort.spark.queues.beside_loop import beside_loop
from kohort.spark.queues.counts import QueueCounts
from kohort.spark.queues.settlement import ACCEPT, REJECT, RELEASE
from kohort.spark.queues.worker import MOST_FAILED_EPOCHS, QueueWorker

from .fakes import FakeConsumer, FakeWork, acquired, job, queue
from .virtual_time import at_once, run

SENT = dict[str, list[dict[str, Any]]]

JSON = ToTopic("out", None, "json", ("id",))
NO_NULLS = json.dumps({"type": "record", "name": "ids", "fields": [{"name": "id", "type": "long"}]})
AVRO = ToTopic("ids", None, "avro", ("id",), NO_NULLS)

LIMITED = QueueSettings(dead_letters="dead", processing_timeout_ms=10_000)


class World:
    """A worker with what it reads, does and writes."""

    def __init__(
        self,
        consumer: FakeConsumer,
        outcome: Callable[[int], str | None] = lambda _: "accept",
        *,
        work: FakeWork | None = None,
        settings: QueueSettings | None = None,
        took_s: float = 0.0,
        down: Collection[str] = (),
        largest: int = 1_000,
        functions: tuple[Any, ...] = (),
        outputs: tuple[ToTopic, ...] = (JSON,),
        beside: Callable[..., Awaitable[Any]] = at_once,
    ) -> None:
        self.consumer = consumer
        self.work = work or FakeWork(outcome, took_s)
        self.sent: SENT = {}
        self.down = down
        self.largest = largest
        self.slept: list[float] = []
        self.counts = QueueCounts("jobs")
        self.stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.worker = QueueWorker(
            queue(settings, functions=functions, outputs=outputs), consumer, self.work, self._send, self.counts, "run",
            sleep=self._sleep, clock=loop.time, beside=beside,
        )  # fmt: skip

    async def _send(self, topic: str, table: pa.Table) -> None:
        if topic in self.down:
            raise OSError("no broker")
        if any(len(each or b"") > self.largest for each in table["value"].to_pylist()):
            raise ValueError("a row is too large")
        self.sent.setdefault(topic, []).extend(table.to_pylist())

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(seconds)


def test_each_record_becomes_what_its_row_says() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), job(1), job(2), b"{", None))
        world = World(consumer, ["accept", "release", "reject"].__getitem__)
        assert await world.worker.epoch()
        assert consumer.outcomes == {0: ACCEPT, 1: RELEASE, 2: REJECT, 3: REJECT, 4: REJECT}
        assert [each["value"] for each in world.sent["out"]] == [b'{"id": 0}']
        assert [each["value"] for each in world.sent["dead"]] == [job(2), b"{", None]
        said = [{each["key"]: each["value"] for each in letter["headers"]} for letter in world.sent["dead"]]
        assert [each["__streams.errors.offset"] for each in said] == [b"2", b"3", b"4"]
        assert said[0]["__streams.errors.message"] == b"the program rejects it"
        assert said[2]["__streams.errors.message"] == b"the record has no value"
        assert (world.counts.in_flight, world.counts.epochs, world.counts.dead_letters) == (0, 1, 3)

    run(body())


def test_a_record_that_makes_the_job_fail_is_released_alone_and_rejected_at_its_last_delivery() -> None:
    def outcome(number: int) -> str:
        if number == 5:
            raise ValueError("torn")
        return "accept"

    async def body() -> None:
        consumer = FakeConsumer(acquired(*map(job, range(8))), acquired(job(5), first=5, delivery=4))
        world = World(consumer, outcome)
        await world.worker.epoch()
        assert consumer.outcomes == dict.fromkeys(range(8), ACCEPT) | {5: RELEASE}
        await world.worker.epoch()
        assert consumer.outcomes[5] == REJECT
        assert world.sent["dead"][0]["headers"][0]["value"] == b"given up at delivery 4 of 4: torn"

    run(body())


def test_where_all_fails_the_worker_pauses_longer_and_longer_and_then_stops() -> None:
    def outcome(_: int) -> str:
        raise OSError("the database is down")

    async def body() -> None:
        consumer = FakeConsumer(*(acquired(*map(job, range(100))) for _ in range(20)))
        world = World(consumer, outcome)
        with pytest.raises(
            ApplicationError, match="10 epochs in a row have failed, the last one: the database is down"
        ):
            await world.worker.run(world.stopping, 20.0)
        assert world.slept == [1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * (MOST_FAILED_EPOCHS - 6)]
        assert set(consumer.outcomes.values()) == {RELEASE}
        assert world.counts.failure == "the database is down"

    run(body())


@pytest.mark.parametrize(("delivery", "kind"), [(3, RELEASE), (4, REJECT)])
def test_what_cannot_be_written_is_released_and_rejected_at_its_last_delivery(delivery: int, kind: int) -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), job(1), delivery=delivery))
        world = World(consumer, ["accept", "reject"].__getitem__, down=["out"])
        await world.worker.epoch()
        assert consumer.outcomes == {0: kind, 1: REJECT}
        assert [each["value"] for each in world.sent["dead"]] == [job(0), job(1)][int(kind == RELEASE) :]
        assert world.slept == [1.0]

    run(body())


def test_without_their_dead_letters_records_stay_locked() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), job(1), delivery=4))
        world = World(consumer, ["accept", "reject"].__getitem__, down=["dead"])
        await world.worker.epoch()
        assert consumer.outcomes == {0: ACCEPT, 1: 0}
        assert world.slept == [1.0]

    run(body())


def test_a_dead_letter_that_is_too_large_goes_without_its_value() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(b"{" * 200, b"{"))
        world = World(consumer, lambda _: "accept", largest=100)
        await world.worker.epoch()
        assert consumer.outcomes == {0: REJECT, 1: REJECT}
        assert [(each["value"], each["headers"][3]["value"]) for each in world.sent["dead"]] == [
            (None, b"0"), (b"{", b"1"),
        ]  # fmt: skip

    run(body())


def test_a_function_gets_what_is_accepted_and_if_it_fails_all_is_released() -> None:
    calls: list[tuple[list[int], str]] = []

    def write(rows: pa.Table, batch_id: str) -> None:
        calls.append((rows["id"].to_pylist(), batch_id))
        if len(calls) == 2:
            raise OSError("no table")

    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), job(1)), acquired(job(0), first=2))
        world = World(consumer, ["accept", "reject"].__getitem__, functions=(write,))
        await world.worker.epoch()
        await world.worker.epoch()
        assert calls == [([0], "jobs-run-1"), ([0], "jobs-run-2")]
        assert consumer.outcomes == {0: ACCEPT, 1: REJECT, 2: RELEASE}

    run(body())


def test_a_row_that_a_format_cannot_hold_rejects_its_record_alone() -> None:
    called: list[int] = []

    def write(rows: pa.Table, batch_id: str) -> None:
        called.extend(rows["id"].to_pylist())

    async def body() -> None:
        consumer = FakeConsumer(acquired(job(1), b'{"id": null}', job(3)))
        world = World(consumer, functions=(write,), outputs=(JSON, AVRO))
        await world.worker.epoch()
        assert consumer.outcomes == {0: ACCEPT, 1: REJECT, 2: ACCEPT}
        assert [each["value"] for each in world.sent["out"]] == [b'{"id": 1}', b'{"id": 3}']
        assert [each["value"] for each in world.sent["ids"]] == [b"\x02", b"\x06"]
        (letter,) = world.sent["dead"]
        assert letter["value"] == b'{"id": null}'
        assert letter["headers"][0]["value"].startswith(b"can't be written to ids as avro: ")
        assert (called, world.slept) == ([1, 3], [])

    run(body())


def test_a_row_that_is_too_large_rejects_its_record_alone() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(1), job(2), job(10**15), job(4)))
        world = World(consumer, largest=12)
        await world.worker.epoch()
        assert consumer.outcomes == {0: ACCEPT, 1: ACCEPT, 2: REJECT, 3: ACCEPT}
        assert [each["value"] for each in world.sent["out"]] == [job(1), job(2), job(4)]
        (letter,) = world.sent["dead"]
        assert letter["headers"][0]["value"] == b"can't be written to out: a row is too large"

    run(body())


def test_a_job_that_takes_too_long_is_cancelled_and_not_tried_by_halves() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), job(1)))
        settings = QueueSettings(processing_timeout_ms=10_000)
        world = World(consumer, lambda _: "accept", settings=settings, took_s=60)
        await world.worker.epoch()
        assert (consumer.outcomes, world.work.jobs) == ({0: RELEASE, 1: RELEASE}, 1)
        assert asyncio.get_running_loop().time() == 10.0  # without a pause, in which the locks would end

    run(body())


def test_what_is_done_before_it_can_be_cancelled_counts() -> None:
    class Quick(FakeWork):
        """Hears that it is cancelled when it is done."""

        async def cancel(self) -> None:
            """It ends by itself."""

    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0)))
        world = World(consumer, settings=LIMITED, work=Quick(lambda _: "accept", took_s=12.0))
        await world.worker.epoch()
        assert (consumer.outcomes, [each["value"] for each in world.sent["out"]]) == ({0: ACCEPT}, [b'{"id": 0}'])

    run(body())


def test_a_record_that_hangs_is_given_up_alone() -> None:
    class Hanging(FakeWork):
        """Hangs at one record."""

        async def run(self, rows: pa.Table) -> pa.Table:
            self._took_s = 60.0 if 3 in rows["id"].to_pylist() else 0.0
            self._cancelled.clear()
            return await super().run(rows)

    class Broker(FakeConsumer):
        """Hands out released records again, in their order."""

        deliveries = dict.fromkeys(range(40), 0)

        async def acquire(self, most: int) -> pa.Table | None:
            left = [at for at in self.deliveries if self.outcomes.get(at, RELEASE) == RELEASE][:most]
            for at in left:
                self.deliveries[at] += 1
            self.asked.append(most)
            tables = [acquired(job(at), first=at, delivery=self.deliveries[at]) for at in left]
            return pa.concat_tables(tables) if tables else None

    async def body() -> None:
        consumer = Broker()
        settings = QueueSettings(dead_letters="dead", processing_timeout_ms=10_000, max_records=27)
        world = World(consumer, settings=settings, work=Hanging(lambda _: "accept"))
        while await world.worker.epoch():
            pass
        assert consumer.outcomes == dict.fromkeys(range(40), ACCEPT) | {3: REJECT}
        assert (consumer.asked[:3], consumer.asked[-1]) == ([27, 9, 3], 27)

    run(body())


class SlowFunctions(FakeWork):
    """Functions take a minute; those that are in Spark hear that they are cancelled."""

    def __init__(self, *, in_spark: bool, job_s: float = 0.0) -> None:
        super().__init__(lambda _: "accept", job_s)
        self.called = 0
        self._in_spark = in_spark

    async def call(self, function: Callable[[Any, str], object], rows: pa.Table, batch_id: str) -> None:
        self.called += 1
        self._took_s = 60.0
        if await self._is_cancelled():
            raise RuntimeError("the job was cancelled")

    async def cancel(self) -> None:
        if not self._in_spark:
            await asyncio.Event().wait()
        await super().cancel()


def write(rows: pa.Table, batch_id: str) -> None:
    """Never called: `SlowFunctions` stands for it."""


@pytest.mark.parametrize(("delivery", "kind"), [(3, RELEASE), (4, REJECT)])
def test_a_function_that_takes_too_long_is_cancelled_and_its_records_count_a_delivery(
    delivery: int, kind: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), delivery=delivery))
        world = World(consumer, functions=(write,), settings=LIMITED, work=SlowFunctions(in_spark=True))
        await world.worker.epoch()
        assert consumer.outcomes == {0: kind}
        assert asyncio.get_running_loop().time() == 10.0

    run(body())
    assert "can't be written: the function write isn't done within processing_timeout_ms, 10,000 ms" in caplog.text


def test_a_function_that_cannot_be_ended_stops_the_worker_which_acknowledges_nothing() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0)))
        world = World(consumer, functions=(write,), settings=LIMITED, work=SlowFunctions(in_spark=False))
        with pytest.raises(ApplicationError, match=r"the function write isn't done within .* doesn't end when"):
            await world.worker.run(world.stopping, 20.0)
        assert consumer.outcomes == {}
        assert asyncio.get_running_loop().time() == 30.0

    run(body())


def test_job_and_functions_share_the_time_that_locks_are_renewed_for() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0)))
        work = SlowFunctions(in_spark=True, job_s=7.0)
        world = World(consumer, functions=(write, write), settings=LIMITED, work=work)
        await world.worker.epoch()
        assert (consumer.outcomes, work.called) == ({0: RELEASE}, 1)
        assert asyncio.get_running_loop().time() == 10.0

    run(body())


def test_a_pause_does_not_outlast_the_renewal_of_locks() -> None:
    async def body() -> None:
        consumer = FakeConsumer(*(acquired(job(0)) for _ in range(6)))
        world = World(consumer, lambda _: "accept", settings=LIMITED, down=["out"])
        for _ in range(6):
            await world.worker.epoch()
        assert world.slept == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]

    run(body())


@pytest.mark.parametrize(("took_s", "kind"), [(10.0, ACCEPT), (60.0, RELEASE)])
def test_at_shutdown_the_job_under_way_has_some_time_to_end(took_s: float, kind: int) -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), delivery=4))
        world = World(consumer, lambda _: "accept", took_s=took_s)
        asyncio.get_running_loop().call_later(1, world.stopping.set)
        await world.worker.run(world.stopping, 20.0)
        assert consumer.outcomes == {0: kind}
        assert asyncio.get_running_loop().time() == min(took_s, 21.0)

    run(body())


def test_a_worker_without_records_has_not_failed() -> None:
    async def body() -> None:
        world = World(FakeConsumer(acquired(job(0))), down=["out"])
        await world.worker.epoch()
        assert world.counts.failure == "no broker"
        assert not await world.worker.epoch()
        assert world.counts.failure is None

    run(body())


def test_a_worker_that_waits_for_records_stops_at_once() -> None:
    async def body() -> None:
        world = World(FakeConsumer(), lambda _: "accept")
        asyncio.get_running_loop().call_later(1.2, world.stopping.set)
        await world.worker.run(world.stopping, 20.0)
        assert asyncio.get_running_loop().time() <= 1.5 + 1e-6

    run(body())


def test_what_was_handed_out_too_often_is_rejected_even_at_shutdown() -> None:
    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0), delivery=5))
        world = World(consumer, lambda _: "accept", took_s=60.0)
        asyncio.get_running_loop().call_later(1, world.stopping.set)
        await world.worker.run(world.stopping, 20.0)
        assert consumer.outcomes == {0: REJECT}
        assert len(world.sent["dead"]) == 1

    run(body())


def test_a_job_that_cannot_be_ended_does_not_keep_a_worker_from_stopping() -> None:
    class Stuck(FakeWork):
        async def cancel(self) -> None:
            await asyncio.Event().wait()

    async def body() -> None:
        consumer = FakeConsumer(acquired(job(0)))
        world = World(consumer, lambda _: "accept")
        world.worker._work = Stuck(lambda _: "accept", took_s=200.0)
        asyncio.get_running_loop().call_later(1, world.stopping.set)
        await world.worker.run(world.stopping, 20.0)
        assert consumer.outcomes == {}
        assert asyncio.get_running_loop().time() == 41.0

    run(body())


def test_the_event_loop_goes_on_while_values_are_read_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        heard: list[bool] = []

        def waiting(function: Callable[..., Any]) -> Callable[..., Any]:
            def called(*args: Any) -> Any:
                event = threading.Event()
                loop.call_soon_threadsafe(event.set)
                heard.append(event.wait(10))
                return function(*args)

            return called

        consumer = FakeConsumer(acquired(job(0)))
        world = World(consumer, beside=beside_loop)
        monkeypatch.setattr(world.worker._decoder, "decode", waiting(world.worker._decoder.decode))
        monkeypatch.setattr(worker_module, "output_records", waiting(worker_module.output_records))
        await world.worker.epoch()
        assert (heard, consumer.outcomes) == ([True, True], {0: ACCEPT})

    asyncio.run(body())
