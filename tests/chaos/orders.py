"""Orders and payments: records for the application that joins them and counts sessions, and what must come of them.

Times go back by some seconds; nothing comes too late. What waits for time to pass comes out at a round's end: records
of each partition, for each partition of the repartition topic, show that all before them has gone through, and others
make time jump ahead.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from kohort.protocol.records.partitioner import partition_of

from .committed import CommittedRecords
from .scenarios import Delivered, Record

__all__ = [
    "CALLED_MS",
    "GAP_MS",
    "GRACE_MS",
    "PAYABLE_MS",
    "REMINDED_MS",
    "SHELF_GAP_MS",
    "SHELVES",
    "Expected",
    "OrderRecord",
    "OrdersAndPayments",
    "PaymentRecord",
    "expected",
]

PAYABLE_MS: Final = 15_000
"""How long after an order its payment may come (event time)."""
GRACE_MS: Final = 3_600_000
"""Rows of a round go through tasks that are far apart: none is later than that."""
REMINDED_MS: Final = 3_600_000
CALLED_MS: Final = 3_000
"""By the clock, after an order was read."""
GAP_MS: Final = 10_000
"""A customer who orders nothing for longer begins another visit."""
SHELVES: Final = 10
SHELF_GAP_MS: Final = 2_000
"""Orders from a shelf that are no further apart are one rush."""
_PARTITIONS: Final = 4
_BEGIN_MS: Final = 1_356_998_400_000  # 2013
_STEP_MS: Final = 100
_BACK_MS: Final = 5_000
_JUMP_MS: Final = 4 * 3_600_000
"""More than anything waits for."""


class OrderRecord(NamedTuple):
    """An order, as it is written."""

    id: str
    customer: str
    amount: int
    at: int

    @property
    def topic(self) -> str:
        """Of orders."""
        return "orders"

    @property
    def key(self) -> str:
        """They lie by customer."""
        return self.customer

    @property
    def value(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self._asdict())


class PaymentRecord(NamedTuple):
    """A payment, as it is written."""

    order: str
    paid: int
    paid_at: int

    @property
    def topic(self) -> str:
        """Of payments."""
        return "payments"

    @property
    def key(self) -> str:
        """They lie by order."""
        return self.order

    @property
    def value(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self._asdict())


class BillRecord(OrderRecord):
    """The same order, where it lies by what it is joined by."""

    @property
    def topic(self) -> str:
        """Of bills."""
        return "bills"

    @property
    def key(self) -> str:
        """They lie by order."""
        return self.id


class ReceiptRecord(PaymentRecord):
    """The same payment, which is joined with a bill."""

    @property
    def topic(self) -> str:
        """Of receipts."""
        return "receipts"


class OrdersAndPayments:
    """Orders with their payments, and both as bills and receipts, each order again when timers say so, and sessions."""

    name = "orders"
    inputs = ("orders", "payments", "bills", "receipts")
    outputs = ("paid-orders", "paid-bills", "reminders", "calls", "closed-visits", "rushes")

    def __init__(self) -> None:
        self._now = _BEGIN_MS
        self._made = 0

    def first(self) -> tuple[()]:
        """Nothing."""
        return ()

    def made_up(self, seed: int, number: int) -> list[OrderRecord | PaymentRecord]:
        """Orders, of which some are paid, some twice, some too late or without an order."""
        draw = random.Random(seed)
        records: list[tuple[int, OrderRecord | PaymentRecord]] = []
        while len(records) < number:
            self._now += _STEP_MS
            at = self._now - draw.randrange(_BACK_MS)
            order = OrderRecord(self._id(), f"customer-{draw.randrange(40)}", draw.randrange(1_000), at)
            records += ((self._now, order), (self._now, BillRecord(*order)))
            for _ in range(draw.choices((0, 1, 2), (30, 60, 10))[0]):
                paid = at + draw.randrange(PAYABLE_MS * 5 // 4)
                name = order.id if draw.random() < 0.95 else f"nobody-{self._id()}"
                payment = PaymentRecord(name, draw.randrange(1_000), paid)
                records += ((max(paid, self._now), payment), (max(paid, self._now), ReceiptRecord(*payment)))
        records.sort(key=lambda each: each[0])
        self._now = max(self._now, records[-1][0])
        return [record for _, record in records]

    def endings(self) -> Iterator[list[OrderRecord | PaymentRecord]]:
        """What shows that all has gone through, then what makes time jump."""
        yield list(self._everywhere())
        self._now += _JUMP_MS
        yield list(self._everywhere())

    def outcome(self, servers: str, partitions: int) -> Rows:
        """Follow all rows."""
        return Rows(servers, partitions)

    def _everywhere(self) -> Iterator[OrderRecord | PaymentRecord]:
        """Orders in each partition, for each partition that they are joined in, and their payments."""
        for customer in range(_PARTITIONS):
            for place in range(_PARTITIONS):
                order = OrderRecord(self._id(place), _lying(customer, "end"), 1, self._now)
                payment = PaymentRecord(order.id, 1, self._now)
                yield from (order, payment, BillRecord(*order), ReceiptRecord(*payment))

    def _id(self, partition: int | None = None) -> str:
        self._made += 1
        name = f"order-{self._made}"
        return name if partition is None else _lying(partition, name)


class Expected(NamedTuple):
    """Rows that must have come by now, and how often.

    Attributes:
        paid: orders with payments, or without: identifier, amount, what was paid.
        bills: the same of bills and receipts.
        reminders: customers and orders.
        calls: customers and orders, of all orders: when is up to the clock, but that it comes, and once, is not.
        visits: those that are over: customer, start (ms), orders, amount.
        rushes: the newest row of each: shelf, start (ms), orders, amount.
    """

    paid: Counter[tuple[object, ...]]
    bills: Counter[tuple[object, ...]]
    reminders: Counter[tuple[object, ...]]
    calls: Counter[tuple[object, ...]]
    visits: Counter[tuple[object, ...]]
    rushes: Counter[tuple[object, ...]]


def expected(delivered: Iterable[Delivered]) -> Expected:
    """All pairs; orders and payments without a match for which it is too late; reminders that are due; sessions.

    Too late is when both topics have come further, in the partition that the two are joined in.
    """
    by_topic: defaultdict[str, list[Record]] = defaultdict(list)
    read: Counter[int] = Counter()
    for partition, _, record in delivered:
        by_topic[record.topic].append(record)
        if type(record) is OrderRecord:
            read[partition] = max(read[partition], record.at)
    orders = {each.id: each for each in by_topic["orders"] if isinstance(each, OrderRecord)}
    due = [each for each in orders.values() if each.at + REMINDED_MS <= read[_place(each.customer)]]
    visits = [
        each
        for each in _sessions(((order.customer, order) for order in orders.values()), GAP_MS)
        if each.end + GAP_MS + GRACE_MS < read[_place(str(each.group))]
    ]
    rushes = _sessions(((order.amount % SHELVES, order) for order in orders.values()), SHELF_GAP_MS)
    return Expected(
        _pairs(by_topic["orders"], by_topic["payments"]),
        _pairs(by_topic["bills"], by_topic["receipts"]),
        Counter((each.customer, each.id) for each in due),
        Counter((each.customer, each.id) for each in orders.values()),
        Counter(each.row for each in visits),
        Counter(each.row for each in rushes),
    )


def _pairs(orders: Iterable[Record], payments: Iterable[Record]) -> Counter[tuple[object, ...]]:
    """Orders with their payments, and either alone where it is too late."""
    left: dict[str, OrderRecord] = {}
    right: defaultdict[str, list[PaymentRecord]] = defaultdict(list)
    ordered: Counter[int] = Counter()
    paid: Counter[int] = Counter()
    for order in orders:
        assert isinstance(order, OrderRecord)
        left[order.id] = order
        ordered[_place(order.id)] = max(ordered[_place(order.id)], order.at)
    for payment in payments:
        assert isinstance(payment, PaymentRecord)
        right[payment.order].append(payment)
        paid[_place(payment.order)] = max(paid[_place(payment.order)], payment.paid_at)
    rows: Counter[tuple[object, ...]] = Counter()
    for name in left.keys() | right.keys():
        now = min(ordered[_place(name)], paid[_place(name)])
        found, its = left.get(name), right.get(name, [])
        matched = [] if found is None else [each for each in its if 0 <= each.paid_at - found.at <= PAYABLE_MS]
        for each in its:
            if each in matched:
                assert found is not None
                rows[name, found.amount, each.paid] += 1
            elif each.paid_at + GRACE_MS < now:
                rows[name, None, each.paid] += 1
        if found is not None and not matched and found.at + PAYABLE_MS + GRACE_MS < now:
            rows[name, found.amount, None] += 1
    return rows


class _Session(NamedTuple):
    """Orders of a group that are near each other; times in ms."""

    group: object
    start: int
    end: int
    count: int
    spent: int

    @property
    def row(self) -> tuple[object, ...]:
        return self.group, self.start, self.count, self.spent


def _sessions(orders: Iterable[tuple[object, OrderRecord]], gap_ms: int) -> Iterator[_Session]:
    """The sessions of each group."""
    groups: defaultdict[object, list[OrderRecord]] = defaultdict(list)
    for group, order in orders:
        groups[group].append(order)
    for group, its in groups.items():
        its.sort(key=lambda order: order.at)
        first = 0
        for number in range(1, len(its) + 1):
            if number == len(its) or its[number].at - its[number - 1].at > gap_ms:
                some = its[first:number]
                yield _Session(group, some[0].at, some[-1].at, len(some), sum(each.amount for each in some))
                first = number


class Rows:
    """All rows that have come, and how often each; of rushes the newest ones."""

    def __init__(self, servers: str, partitions: int) -> None:
        self._records = CommittedRecords(servers, OrdersAndPayments.outputs, partitions)
        self._come = Expected(*(Counter() for _ in Expected._fields))
        self._rushes: dict[tuple[object, int], tuple[object, ...]] = {}

    def close(self) -> None:
        """Disconnect."""
        self._records.close()

    def read(self, seconds: float = 0.5) -> None:
        """Take what has come."""
        for message in self._records.take(seconds):
            key, value = message.key() or b"", message.value()
            topic = message.topic()
            if topic == "rushes":
                named = json.loads(key)
                self._rushes.pop((named["shelf"], _ms(named["window"])), None)
            if value is None:
                continue  # a session that is part of another now
            row = json.loads(value)
            if topic == "paid-orders":
                self._come.paid[row["id"], row.get("amount"), row.get("paid")] += 1
            elif topic == "paid-bills":
                self._come.bills[row["id"], row.get("amount"), row.get("paid")] += 1
            elif topic == "reminders":
                self._come.reminders[row["customer"], row["id"]] += 1
            elif topic == "calls":
                self._come.calls[row["customer"], row["id"]] += 1
            elif topic == "closed-visits":
                self._come.visits[row["customer"], _ms(row["window"]), row["n"], row["spent"]] += 1
            else:
                shelf, start = row["shelf"], _ms(row["window"])
                self._rushes[shelf, start] = shelf, start, row["n"], row["spent"]

    def differences(self, delivered: Collection[Delivered]) -> list[str]:
        """Rows that are missing, and such as shouldn't be there, or not as often."""
        wanted = expected(delivered)
        found = []
        come = self._come._replace(rushes=Counter(self._rushes.values()))
        for what, rows, some in zip(Expected._fields, come, wanted, strict=True):
            found += [f"{what}: {row} is missing, {count} times" for row, count in (some - rows).items()]
            found += [f"{what}: {row} is too much, {count} times" for row, count in (rows - some).items()]
        return found

    def summary(self, delivered: Collection[Delivered]) -> str:
        """What was compared."""
        paid = self._come.paid
        alone = sum(1 for _, amount, each in paid if amount is None or each is None)
        return (
            f"{paid.total() - alone:,} pairs, {alone:,} without a match, {self._come.bills.total():,} bills, "
            f"{self._come.reminders.total():,} reminders, {self._come.calls.total():,} calls, "
            f"{self._come.visits.total():,} visits, {len(self._rushes):,} rushes"
        )


def _ms(text: str) -> int:
    """A time, as JSON has it, in ms since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _place(key: str) -> int:
    return partition_of(key.encode(), _PARTITIONS)


def _lying(partition: int, name: str) -> str:
    """A name like this that lies in a partition."""
    return next(some for some in (f"{name}-{n}" for n in range(1_000)) if _place(some) == partition)
