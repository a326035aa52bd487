from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.administration.group_types import GroupListing, GroupType
from kohort.console.group_book import KnownGroup, Summary
from kohort.console.group_list import COLUMNS, SORTS, TYPES, Choice, choose, list_view
from kohort.console.paging import PAGE_SIZE, page_of


def known(
    name: str, kind: str = "consumer", state: str = "Stable", lag: int | None = None, rebalances: int | None = None
) -> KnownGroup:
    listing = GroupListing(name, GroupType(kind), state, "", 1)
    return KnownGroup(listing, None if lag is None else Summary(1, lag), rebalances=rebalances)


GROUPS = [
    known("Orders", lag=5),
    known("orders-eu", "share", "Empty", 70),
    known("app", "streams"),
    known("old", "classic"),
]


def ids(choice: Choice) -> list[str]:
    return [group.listing.group_id for group in choose(GROUPS, choice).items]


def test_groups_are_filtered_and_sorted() -> None:
    assert ids(Choice()) == ["Orders", "app", "old", "orders-eu"]
    assert ids(Choice(text="ORDERS")) == ["Orders", "orders-eu"]
    assert ids(Choice(type="streams")) == ["app"]
    assert ids(Choice(state="empty")) == ["orders-eu"]
    assert ids(Choice(sort="lag")) == ["orders-eu", "Orders", "app", "old"]


def test_a_group_that_rebalances_again_and_again_stands_out() -> None:
    groups = [known("calm", lag=1, rebalances=0), known("new", lag=1), known("flaps", lag=1, rebalances=12)]
    view = list_view(choose(groups, Choice(sort="rebalances")))
    at = COLUMNS.index(">Rebalances, 10 min")
    cells = {name: row[at] for name, row in view.tables["groups"].rows.items()}
    assert [*cells] == ["flaps", "calm", "new"]
    assert [(cell.text, cell.tone) for cell in cells.values()] == [("12", "warn"), ("0", ""), ("–", "")]


@given(st.lists(st.integers(), max_size=200), st.integers(-5, 50), st.integers(1, 20))
def test_pages_have_all_items_once(items: list[int], number: int, size: int) -> None:
    first = page_of(items, 1, size)
    assert [item for at in range(1, first.pages + 1) for item in page_of(items, at, size).items] == items
    assert 1 <= page_of(items, number, size).number <= first.pages


@given(
    st.dictionaries(
        st.sampled_from(["q", "type", "state", "sort", "page", "odd"]),
        st.one_of(st.text(max_size=12), st.sampled_from([*TYPES, *SORTS, "2", "²", "-1"])),
    )
)
def test_any_parameters_make_a_page_whose_address_leads_back(fields: dict[str, str]) -> None:
    from urllib.parse import parse_qsl

    choice = Choice.of(fields)
    again = Choice.of(dict(parse_qsl(choice.query(), encoding="utf-8")))
    assert again == choice
    choose(GROUPS, choice)


def test_ten_thousand_groups_make_a_page_of_fifty_rows() -> None:
    page = choose([known(f"group-{number:05}", lag=number) for number in range(10_000)], Choice(sort="lag", page=2))
    view = list_view(page)
    rows = view.tables["groups"].rows
    assert view.texts["count"] == "10,000 groups, page 2 of 200"
    assert len(rows) == PAGE_SIZE
    first = next(iter(rows.values()))
    assert [cell.text for cell in first] == [
        "group-09949",
        "Stable",
        "9,949",
        "not known yet",
        "–",
        "–",
        "1",
        "consumer",
    ]
    assert len(first) == len(COLUMNS)
