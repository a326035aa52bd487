"""The programs of docs/coming-from-*.md, as they stand there. Those of Kafka Streams give the same in Java."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import kohort.spark
from kohort.spark import StreamsApp
from kohort.spark.testing import TestDriver
from tests.interop.java.build import MAVEN_S
from tests.pages import under
from tests.tools import MAVEN

from .kafka_streams_programs import Driver, Programs

pytestmark = pytest.mark.timeout(MAVEN_S)

Start = Callable[..., TestDriver]
Rewritten = Callable[[str], TestDriver | Driver]
"""Starts a program of docs/coming-from-kafka-streams.md by its heading."""


def program(page: str, heading: str) -> Callable[..., None]:
    """The function over an application under a heading."""
    text = under(f"docs/coming-from-{page}.md", heading, "python")
    scope: dict[str, Any] = {name: getattr(kohort.spark, name) for name in kohort.spark.__all__}
    scope["__name__"] = heading
    exec(compile(text, f"coming-from-{page}.md, {heading}", "exec"), scope)
    name = re.findall(r"^def (\w+)\(app\b", text, re.MULTILINE)[-1]
    return scope[name]  # type: ignore[no-any-return]


def started(start: Start, page: str, heading: str, *arguments: Any) -> TestDriver:
    app = StreamsApp("rewritten")
    program(page, heading)(app, *arguments)
    return start(app)


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    MAVEN.require()
    programs = Programs(tmp_path_factory.mktemp("java"))
    yield programs
    programs.close()


@pytest.fixture(params=["python", "java"])
def rewritten(request: pytest.FixtureRequest) -> Rewritten:
    """Here, and in Kafka Streams."""
    if request.param == "java":
        programs: Programs = request.getfixturevalue("java")
        return lambda heading: Driver(programs, heading)
    start: Start = request.getfixturevalue("kohort_test_driver")
    return lambda heading: started(start, "kafka-streams", heading)


def at(minutes: float) -> datetime:
    return datetime.fromtimestamp(1_356_998_400 + 60 * minutes, UTC)  # 2013


def start_of(row: dict[str, Any]) -> float:
    """The minute at which a row's window begins."""
    return (datetime.fromisoformat(row["window"]) - at(0)).total_seconds() / 60


def test_counting_words(rewritten: Rewritten) -> None:
    driver = rewritten("Counting words")
    driver.pipe("lines", ["all streams lead to Kafka", "hello kafka streams"])
    counts = {row["word"]: row["n"] for row in driver.output("word-counts")}
    assert counts == {"all": 1, "streams": 2, "lead": 1, "to": 1, "kafka": 2, "hello": 1}


def test_views_of_pages_by_region(rewritten: Rewritten) -> None:
    driver = rewritten("Views of pages by region")
    driver.pipe("profiles", [{"user": "ann", "region": "europe"}])
    driver.pipe("views", [{"user": user, "page": "/", "at": at(4.5)} for user in ("ann", "bob", "ann")])
    counts = {(row["region"], start_of(row)): row["n"] for row in driver.output("views-by-region")}
    assert counts == {(region, start): n for region, n in (("europe", 2), ("unknown", 1)) for start in range(5)}


def test_users_with_few_events(rewritten: Rewritten) -> None:
    driver = rewritten("Users with few events")
    times = {"ann": (0, 20, 59, 69), "bob": (30, 59)}
    driver.pipe("events", [{"user": user, "at": at(each)} for user, some in times.items() for each in some])
    assert driver.output("alerts") == []
    driver.pipe("events", [{"user": "eve", "at": at(71)}])
    assert [(row["user"], row["n"]) for row in driver.output("alerts")] == [("bob", 2)]


def test_a_stream_joined_with_a_stream(rewritten: Rewritten) -> None:
    driver = rewritten("A stream joined with a stream")
    driver.pipe("left", [{"id": each, "l": 1, "at": at(10)} for each in ("a", "b")], step=False)
    driver.pipe("right", [{"id": "a", "r": 0.5, "then": at(5)}, {"id": "b", "r": 0.5, "then": at(16)}])
    driver.pipe("left", [{"id": "c", "l": 2, "at": at(300)}], step=False)
    driver.pipe("right", [{"id": "c", "r": 2.5, "then": at(300)}])
    found = sorted((row["id"], row["l"], row.get("r")) for row in driver.output("joined"))
    assert found == [("a", 1, 0.5), ("b", 1, None), ("c", 2, 2.5)]


def clicked(driver: TestDriver, topic: str) -> list[tuple[Any, ...]]:
    """What becomes of three impressions, of which one is clicked in time, and one too late."""
    driver.pipe("impressions", [{"ad": ad, "site": "s", "shown": at(0)} for ad in ("one", "two", "three")])
    driver.pipe("clicks", [{"ad": "one", "clicked": at(59)}, {"ad": "two", "clicked": at(61)}])
    driver.pipe("impressions", [{"ad": "later", "site": "s", "shown": at(300)}], step=False)
    driver.pipe("clicks", [{"ad": "nobody", "clicked": at(300)}])
    return sorted((row["ad"], row.get("clicked") is not None) for row in driver.output(topic))


def test_visits_to_a_site(rewritten: Rewritten) -> None:
    driver = rewritten("Visits to a site")
    times = (0, 3, 8, 14, 40)
    driver.pipe("clicks", [{"user": "ann", "page": "/", "at": at(each)} for each in times])
    visits = [(start_of(row), row["clicks"]) for row in driver.output("visits")]
    assert sorted(visits) == [(0, 3), (14, 1)]


def test_a_punctuator(kohort_test_driver: Start) -> None:
    driver = started(kohort_test_driver, "kafka-streams", "A punctuator")

    def say(line: str, seconds: float) -> list[tuple[str, int]]:
        driver.pipe("lines", [{"line": line, "at": at(seconds / 60)}])
        return sorted((row["word"], row["n"]) for row in driver.output("counts"))

    driver.pipe("lines", [{"line": "whenever"}])  # without a time no timer can be set
    assert say("To be", 0.1) == []
    assert say("or not to", 0.2) == []
    assert say("be", 1.1) == [("be", 2), ("not", 1), ("or", 1), ("to", 2)]
    assert say("that", 2.5) == [("be", 2)]


def test_a_punctuator_tells_the_words_of_seconds_that_are_over(rewritten: Rewritten) -> None:
    """Kafka Streams tells those of the last line, too: the page says which, and when."""
    driver = rewritten("A punctuator")
    told: dict[str, int] = {}
    for line, seconds in (("To be", 0.1), ("or not to", 0.2), ("be", 1.1), ("that", 2.5), ("end", 9.0)):
        driver.pipe("lines", [{"line": line, "at": at(seconds / 60)}])
        told |= {row["word"]: row["n"] for row in driver.output("counts")}
    told.pop("end", None)
    assert told == {"to": 2, "be": 2, "or": 1, "not": 1, "that": 1}


def test_a_whole_job(kohort_test_driver: Start) -> None:
    driver = started(kohort_test_driver, "structured-streaming", "A whole job")
    driver.pipe("products", [{"product": "tea", "category": "drinks"}, {"product": "jam", "category": "food"}])
    orders = [("tea", 2.0, 5), ("jam", 1.0, 10), ("tea", 3.0, 59), ("tea", 0.0, 30), ("pen", 1.0, 30)]
    driver.pipe("orders", [{"product": name, "amount": amount, "at": at(when)} for name, amount, when in orders])
    driver.pipe("orders", [{"product": "tea", "amount": 1.0, "at": at(71)}])
    found = [
        (start_of(row), row["until"], row["category"], row["n"], row["total"])
        for row in driver.output("orders-by-category")
    ]
    until = "2013-01-01T01:00:00.000Z"
    assert sorted(found) == [(0, until, "drinks", 2, 5.0), (0, until, "food", 1, 1.0)]


def test_the_whole_job_of_structured_streaming_is_python() -> None:
    page = "docs/coming-from-structured-streaming.md"
    compile(under(page, "A whole job", "text"), page, "exec")


def test_words_in_windows(kohort_test_driver: Start) -> None:
    driver = started(kohort_test_driver, "structured-streaming", "Words in windows")
    driver.pipe("words", [{"word": "cat", "at": at(12)}, {"word": "cat", "at": at(14)}, {"word": "dog", "at": at(40)}])
    counts = {(row["word"], start_of(row)): row["n"] for row in driver.output("word-counts")}
    assert counts == {("cat", 5): 2, ("cat", 10): 2}


def test_events_that_come_twice(kohort_test_driver: Start) -> None:
    driver = started(kohort_test_driver, "structured-streaming", "Events that come twice")
    driver.pipe("events", [{"id": each, "what": "x", "at": at(0)} for each in ("a", "b", "a")])
    driver.pipe("events", [{"id": each, "what": "x", "at": at(59)} for each in ("a", "c")])
    assert sorted(row["id"] for row in driver.output("events-once")) == ["a", "b", "c"]


def test_clicks_on_impressions(kohort_test_driver: Start) -> None:
    driver = started(kohort_test_driver, "structured-streaming", "Clicks on impressions")
    assert clicked(driver, "clicked-impressions") == [("one", True), ("three", False), ("two", False)]


def test_sessions_whose_gap_depends_on_the_row(kohort_test_driver: Start) -> None:
    driver = started(kohort_test_driver, "structured-streaming", "Sessions whose gap depends on the row")
    rows = [("ann", "tv", 0), ("bob", "phone", 0), ("ann", "tv", 90), ("bob", "phone", 90), ("eve", "phone", 1_000)]
    driver.pipe("events", [{"user": user, "device": device, "at": at(each)} for user, device, each in rows])
    sessions = [(row["user"], start_of(row), row["events"]) for row in driver.output("sessions")]
    assert sorted(sessions) == [("ann", 0, 2), ("bob", 0, 1), ("bob", 90, 1)]


def test_state_of_ones_own(kohort_test_driver: Start) -> None:
    driver = started(kohort_test_driver, "structured-streaming", "State of one's own")
    driver.pipe("readings", [{"sensor": "a", "last": at(0)}, {"sensor": "b", "last": at(0)}, {"sensor": "d"}])
    driver.pipe("readings", [{"sensor": "b", "last": at(0.5)}])
    driver.pipe("readings", [{"sensor": "c", "last": at(1.2)}])
    assert [row["sensor"] for row in driver.output("silent")] == ["a"]


def test_rows_into_a_database(kohort_test_driver: Start) -> None:
    written: dict[str, list[str]] = {}

    def write(rows: Any, batch_id: str) -> None:
        written[batch_id] = [row.flight for row in rows.collect()]

    driver = started(kohort_test_driver, "structured-streaming", "Rows into a database", write)
    driver.pipe("delays", [{"flight": "a", "minutes": 20}, {"flight": "b", "minutes": 2}])
    driver.pipe("delays", [{"flight": "c", "minutes": 30}])
    assert written == {"delays-0:0-2": ["a"], "delays-0:2-3": ["c"]}
