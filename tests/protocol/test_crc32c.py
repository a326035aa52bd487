from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.crc32c import crc32c

LARGE = bytes(range(256)) * 4096


def by_definition(data: bytes) -> int:
    """Bit by bit, with the reflected polynomial 0x82F63B78."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@given(st.binary(max_size=500), st.integers(0, 500))
def test_it_goes_on_from_the_checksum_of_what_came_before(data: bytes, at: int) -> None:
    assert crc32c(data[at:], crc32c(data[:at])) == crc32c(data) == by_definition(data)


def test_any_buffer_is_read() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32/ISCSI
    for buffer in (bytearray(b"0123456789"), memoryview(b"0123456789"), memoryview(bytearray(b"0123456789"))):
        assert crc32c(buffer[1:]) == 0xE3069283


def test_threads_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(crc32c, [LARGE] * 200)) == {crc32c(LARGE)}
