from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.hosts import is_allowed, is_own


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8090", "127.0.0.1:8090", "[::1]:8090", "[::1]", "10.1.2.3", "kafka.example:80"]
)
def test_the_names_of_the_console(host: str) -> None:
    assert is_allowed(host, {"kafka.example"})


@pytest.mark.parametrize(
    "host",
    [
        None, "", ":8090", "evil.example", "evil.example:8090", "127.0.0.1.evil.example", "localhost.evil.example",
        "localhost:8090:1", "localhost:x", "[::1", "[localhost]", "[::1]x", "::1", "127.0.0.1@evil.example",
    ],
)  # fmt: skip
def test_names_of_others(host: str | None) -> None:
    assert not is_allowed(host, {"kafka.example"})


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("http://localhost:8090", "localhost:8090", True), ("https://console.example", "Console.example", True),
        ("http://[::1]:8090", "[::1]:8090", True), ("http://localhost:3000", "localhost:8090", False),
        ("http://evil.example", "10.1.2.3:8090", False), ("null", "localhost:8090", False), ("null", None, False),
        ("", None, False),
    ],
)  # fmt: skip
def test_whose_page_asks(origin: str, host: str | None, own: bool) -> None:
    assert is_own(origin, host) is own


@given(st.text(max_size=30))
def test_any_host_is_judged(host: str) -> None:
    is_allowed(host, ())


@given(st.from_regex(r"[a-z][a-z0-9-]{0,20}(\.[a-z]{2,5}){1,3}(:[0-9]{1,5})?", fullmatch=True))
def test_a_name_has_to_be_given(host: str) -> None:
    assert not is_allowed(host, ())
    assert is_allowed(host, {host.partition(":")[0]})
