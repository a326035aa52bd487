from __future__ import annotations

import pytest

from kohort.protocol.share_in_flight import InFlight, decode_in_flight, encode_in_flight

RECORDS = [InFlight(0, 4, "acquired", 1, "m", 1_700_000_000_000), InFlight(5, 5, "available", 2)]


def test_what_is_in_flight_comes_back() -> None:
    assert decode_in_flight(encode_in_flight(RECORDS)) == RECORDS
    assert encode_in_flight(RECORDS[1:]) == b'[[5,5,"available",2,null,null]]'


@pytest.mark.parametrize("data", [b"", b"x", b"7", b"[7]", b"[[1]]", b"\xff"])
def test_something_else_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_in_flight(data)
