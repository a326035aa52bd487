"""Nexmark's events: persons, auctions and bids, as the crate `nexmark` 0.2.0 draws them by default.

Of 50 events one is a person, three are auctions, and 46 bids, in this order. Each kind counts its ids upwards from
1,000. What the numbers mean is in `Shape`; texts are random letters, as long as the crate's. The crate draws each event
from its number; here, `CHUNK` events have a generator of random numbers, so that they are drawn as columns. So single
events differ from the crate's, and distributions don't: tests/spark/test_nexmark_events.py
compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.nexmark.letters import HOT_CHANNELS, channels, letters, padding

PERSONS, AUCTIONS, BIDS = 1, 3, 46
CYCLE: Final = PERSONS + AUCTIONS + BIDS
"""Events of which so many are of each kind."""
CHUNK: Final = 1_000 * CYCLE
"""Events that are drawn at a time."""
NUMBER: Final = "number"
"""The column of an event's number, which no topic has. It tells events of the same time apart."""
TIME: Final = pa.timestamp("ms", "UTC")

_STATES: Final = ("az", "ca", "id", "or", "wa", "wy")
_CITIES: Final = (
    "phoenix", "los angeles", "san francisco", "boise", "portland", "bend", "redmond", "seattle", "kent", "cheyenne",
)  # fmt: skip
_FIRST_NAMES: Final = (
    "peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "deiter", "walter",
)  # fmt: skip
_LAST_NAMES: Final = ("shultz", "abrams", "spencer", "white", "bartels", "walton", "smith", "jones", "noris")
_HOT: Final = 100
"""Of so many persons or auctions in a row, one is the hot seller, bidder or auction while they are the newest."""

CLOSING_MS: Final = 3_600_000
"""So long after the last event the closing ones are."""
_FAR: Final = 1_000_000_000
"""Ids that no other event has, from here on."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """What the events are like.

    Attributes:
        seed: of the random numbers.
        start_ms: the first event's time, in ms since 1970: by default such that half of two million are of 2024.
        rate: events of a second.
        first_id: of persons and of auctions.
        first_category, categories: of auctions.
        active_people: the newest so many persons bid and sell, and `lead` that there aren't yet.
        in_flight: the newest so many auctions get bids, and `lead` that there aren't yet. An auction lasts as long as
            it takes to open so many, on average.
        hot_sellers, hot_bidders, hot_auctions, hot_channels: of so many draws all but one are the hot one.
    """

    seed: int = 17
    start_ms: int = int(datetime(2023, 12, 31, 23, 58, 20, tzinfo=UTC).timestamp() * 1000)
    rate: int = 10_000
    first_id: int = 1_000
    first_category: int = 10
    categories: int = 5
    active_people: int = 1_000
    in_flight: int = 100
    lead: int = 10
    hot_sellers: int = 4
    hot_bidders: int = 4
    hot_auctions: int = 2
    hot_channels: int = 2

    def time(self, events: Numbers) -> Numbers:
        """When events happen, by their numbers, in ms since 1970."""
        return self.start_ms + (events * 1_000_000 // self.rate + 500) // 1_000


@dataclass(frozen=True)
class Events:
    """Some of the events, by their kind: tables with the columns of Nexmark's own, and `NUMBER`."""

    persons: pa.Table
    auctions: pa.Table
    bids: pa.Table


def generate(events: int, shape: Shape | None = None) -> Iterator[Events]:
    """So many events, at most `CHUNK` at a time."""
    shape = shape or Shape()
    urls = channels(np.random.default_rng(shape.seed))
    for start in range(0, events, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, events))
        draw = np.random.default_rng([shape.seed, start])
        rest = numbers % CYCLE
        yield Events(
            _persons(draw, shape, numbers[rest < PERSONS]),
            _auctions(draw, shape, numbers[(rest >= PERSONS) & (rest < PERSONS + AUCTIONS)]),
            _bids(draw, shape, numbers[rest >= PERSONS + AUCTIONS], urls),
        )


def closing_ms(events: int, shape: Shape | None = None) -> int:
    """When the closing events are, after so many others: in ms since 1970."""
    return int((shape or Shape()).time(np.array([events]))[0]) + CLOSING_MS


def closing(events: int, shape: Shape | None = None) -> Events:
    """A person, an auction and a bid long after so many others, which have nothing to do with any, or each other."""
    one, at = next(generate(CYCLE, shape)), closing_ms(events, shape)
    columns = {
        "persons": {"id": _FAR, "dateTime": at},
        "auctions": {"id": _FAR, "seller": _FAR + 1, "dateTime": at, "expires": at + 1},
        "bids": {"auction": _FAR + 1, "bidder": _FAR, "dateTime": at},
    }
    return Events(**{kind: _with(getattr(one, kind).slice(0, 1), values) for kind, values in columns.items()})


def whole(events: int, shape: Shape | None = None) -> Events:
    """So many events at once."""
    parts = list(generate(events, shape))
    return Events(
        pa.concat_tables(part.persons for part in parts),
        pa.concat_tables(part.auctions for part in parts),
        pa.concat_tables(part.bids for part in parts),
    )


def _persons(draw: np.random.Generator, shape: Shape, numbers: Numbers) -> pa.Table:
    count = len(numbers)
    name = _joined(" ", _choice(draw, _FIRST_NAMES, count), _choice(draw, _LAST_NAMES, count))
    sevens, fives = (letters(draw, np.full(count, length)) for length in (7, 5))
    email = pc.binary_join_element_wise(_joined("@", sevens, fives), "com", ".")
    card = _joined(" ", *(_four_digits(draw, count) for _ in range(4)))
    city, state = _choice(draw, _CITIES, count), _choice(draw, _STATES, count)
    size = 8 + sum(_length(text) for text in (name, email, card, city, state))
    return pa.table({
        "id": shape.first_id + _last_person(numbers),
        "name": name,
        "emailAddress": email,
        "creditCard": card,
        "city": city,
        "state": state,
        "dateTime": _times(shape.time(numbers)),
        "extra": padding(draw, size, 200),
        NUMBER: numbers,
    })  # fmt: skip


def _auctions(draw: np.random.Generator, shape: Shape, numbers: Numbers) -> pa.Table:
    count = len(numbers)
    time = shape.time(numbers)
    until = shape.time(numbers + shape.in_flight * CYCLE // AUCTIONS)
    initial = _prices(draw, count)
    hot = draw.integers(0, shape.hot_sellers, count) > 0
    seller = np.where(hot, _last_person(numbers) // _HOT * _HOT, _any_person(draw, shape, numbers))
    return pa.table({
        "id": shape.first_id + _last_auction(numbers),
        "itemName": letters(draw, np.full(count, 20)),
        "description": letters(draw, np.full(count, 100)),
        "initialBid": initial,
        "reserve": initial + _prices(draw, count),
        "dateTime": _times(time),
        "expires": _times(time + 1 + draw.integers(0, np.maximum(2 * (until - time), 1))),
        "seller": shape.first_id + seller,
        "category": shape.first_category + draw.integers(0, shape.categories, count),
        "extra": padding(draw, np.full(count, 168), 500),
        NUMBER: numbers,
    })  # fmt: skip


def _bids(draw: np.random.Generator, shape: Shape, numbers: Numbers, urls: pa.Table) -> pa.Table:
    count = len(numbers)
    hot_auction = draw.integers(0, shape.hot_auctions, count) > 0
    hot_bidder = draw.integers(0, shape.hot_bidders, count) > 0
    hot_channel = draw.integers(0, shape.hot_channels, count) > 0
    newest = _last_auction(numbers)
    oldest = np.maximum(newest - shape.in_flight, 0)
    auction = np.where(hot_auction, newest // _HOT * _HOT, draw.integers(oldest, newest + 1 + shape.lead))
    # The hot seller's neighbour, so that nobody is both.
    bidder = np.where(hot_bidder, _last_person(numbers) // _HOT * _HOT + 1, _any_person(draw, shape, numbers))
    few = len(HOT_CHANNELS)
    channel = np.where(hot_channel, draw.integers(0, few, count), draw.integers(few, urls.num_rows, count))
    return pa.table({
        "auction": shape.first_id + auction,
        "bidder": shape.first_id + bidder,
        "price": _prices(draw, count),
        "channel": urls["channel"].take(channel),
        "url": urls["url"].take(channel),
        "dateTime": _times(shape.time(numbers)),
        "extra": padding(draw, np.full(count, 32), 100),
        NUMBER: numbers,
    })  # fmt: skip


def _last_person(numbers: Numbers) -> Numbers:
    """The newest person when an event happens, counted from 0."""
    return numbers // CYCLE * PERSONS + np.minimum(numbers % CYCLE, PERSONS - 1)


def _last_auction(numbers: Numbers) -> Numbers:
    """The newest auction when an auction opens or a bid is made, counted from 0."""
    return numbers // CYCLE * AUCTIONS + np.minimum(numbers % CYCLE - PERSONS, AUCTIONS - 1)


def _any_person(draw: np.random.Generator, shape: Shape, numbers: Numbers) -> Numbers:
    people = _last_person(numbers) + 1
    active = np.minimum(people, shape.active_people)
    return people - active + draw.integers(0, active + shape.lead)


def _prices(draw: np.random.Generator, count: int) -> Numbers:
    """In cents, from a dollar to a million: as likely between 10 and 100 as between 100,000 and a million."""
    # In 32 bits, as the crate: so large prices are multiples of 2, 4 or 8.
    exponents = draw.random(count, np.float32) * np.float32(6)
    return np.round(np.float32(10) ** exponents * np.float32(100)).astype(np.int64)


def _choice(draw: np.random.Generator, texts: tuple[str, ...], count: int) -> pa.StringArray:
    return pa.array(texts).take(draw.integers(0, len(texts), count))


def _four_digits(draw: np.random.Generator, count: int) -> pa.StringArray:
    return pc.utf8_lpad(pa.array(draw.integers(0, 10_000, count)).cast(pa.string()), 4, "0")


def _joined(separator: str, *texts: pa.StringArray) -> pa.StringArray:
    return pc.binary_join_element_wise(*texts, separator)


def _length(texts: pa.StringArray) -> Numbers:
    lengths: Numbers = pc.utf8_length(texts).to_numpy().astype(np.int64)
    return lengths


def _with(row: pa.Table, values: Mapping[str, int]) -> pa.Table:
    """A row with other values in some columns."""
    for name, value in values.items():
        place = row.schema.get_field_index(name)
        row = row.set_column(place, name, pa.array([value]).cast(row.schema.field(place).type))
    return row


def _times(milliseconds: Numbers) -> pa.Array:
    return pa.array(milliseconds).cast(TIME)
