"""The loops over records, compiled by numba.

They work on numpy arrays, without Arrow. A fault is returned as a code with its position; `FAULTS` has the texts. All
reads are checked against the bounds of their batch, so malformed input never reads or writes outside.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import copy_bytes, inlined, kernel

__all__ = [
    "FAULTS", "crc32_rows", "decode_headers", "decode_records", "encode_records", "measure_headers", "murmur2_rows",
    "plan_batches",
]  # fmt: skip

SHORT: Final = 16
"""Up to this many bytes, a loop copies faster than memcpy."""

OK: Final = 0
TRUNCATED: Final = 1
BAD_LENGTH: Final = 2
BAD_KEY: Final = 3
BAD_VALUE: Final = 4
BAD_HEADERS: Final = 5
BAD_OFFSET: Final = 6
LEFT_OVER: Final = 7

FAULTS: Final = {
    TRUNCATED: "a record is cut off",
    BAD_LENGTH: "a record's length doesn't fit its content",
    BAD_KEY: "a key is longer than its record",
    BAD_VALUE: "a value is longer than its record",
    BAD_HEADERS: "headers don't fit their record",
    BAD_OFFSET: "a record's offset is outside its batch or out of order",
    LEFT_OVER: "bytes are left over after the last record",
}

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Ints = np.ndarray[Any, np.dtype[np.int32]]
Longs = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@kernel
def read_varint(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Returns the zig-zag varint at `pos`, of at most ten bytes, and the position after it, or -1 if it doesn't end."""
    if pos < end:
        byte = np.int64(data[pos])
        if byte < 128:
            return (byte >> 1) ^ -(byte & 1), pos + 1
    value = np.uint64(0)
    shift = np.uint64(0)
    while pos < end and shift < 70:
        unit = np.uint64(data[pos])
        pos += 1
        if shift == np.uint64(63) and unit > 1:
            return np.int64(0), -1
        value |= (unit & np.uint64(127)) << shift
        if unit < 128:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), pos
        shift += np.uint64(7)
    return np.int64(0), -1


@inlined
def copy_blob(data: Bytes, pos: int, end: int, target: Bytes, at: int) -> tuple[int, int]:
    """Copies the length-prefixed bytes at `pos` to `target` at `at`.

    Returns:
        Their number, or -1 for null, and the position after them, or -1 if they aren't before `end` or don't fit into
        `target`.
    """
    size, pos = read_varint(data, pos, end)
    if pos < 0 or size < -1 or size > end - pos or size > len(target) - at:
        return size, -1
    if size <= 0:
        return size, pos
    if size > SHORT:
        copy_bytes(target, at, data, pos, size)
    else:
        for i in range(size):
            target[at + i] = data[pos + i]
    return size, pos + size


@kernel
def decode_records(
    data: Bytes,
    starts: Longs,
    ends: Longs,
    counts: Longs,
    base_offsets: Longs,
    last_deltas: Longs,
    base_timestamps: Longs,
    append_times: Longs,
    appended: Flags,
    offsets: Longs,
    timestamps: Longs,
    key_ends: Ints,
    keys: Bytes,
    key_valid: Flags,
    value_ends: Ints,
    values: Bytes,
    value_valid: Flags,
    header_ends: Ints,
    header_at: Longs,
) -> tuple[int, int, int, int]:
    """Decodes batches into columns.

    Args:
        data: the uncompressed records of all batches; those of batch i are from `starts[i]` to `ends[i]`.
        counts, base_offsets, last_deltas, base_timestamps: of each batch.
        append_times, appended: the timestamp of all records of a batch, where `appended`; otherwise each has its own.
        offsets, timestamps, key_valid, value_valid: out, an entry a record.
        key_ends, value_ends, header_ends: out, an entry a record and one more: the ends in each column.
        keys, values: out, the bytes.
        header_at: out, an entry a record: where its headers start in `data`.

    Returns:
        The fault or 0, its batch, and the total bytes of headers' names and values.
    """
    row = 0
    key_end = 0
    value_end = 0
    header_end = 0
    name_bytes = 0
    header_bytes = 0
    for batch in range(len(starts)):
        pos = starts[batch]
        batch_end = ends[batch]
        base_offset = base_offsets[batch]
        base_timestamp = base_timestamps[batch]
        append_time = append_times[batch]
        last_delta = last_deltas[batch]
        previous = np.int64(-1)
        for _ in range(counts[batch]):
            length, pos = read_varint(data, pos, batch_end)
            if pos < 0:
                return TRUNCATED, batch, 0, 0
            if length < 0 or length > batch_end - pos:
                return TRUNCATED, batch, 0, 0
            end = pos + length
            timestamp_delta, pos = read_varint(data, pos + 1, end)
            if pos < 0:
                return BAD_LENGTH, batch, 0, 0
            offset_delta, pos = read_varint(data, pos, end)
            if pos < 0:
                return BAD_LENGTH, batch, 0, 0
            if offset_delta <= previous or offset_delta > last_delta:
                return BAD_OFFSET, batch, 0, 0
            previous = offset_delta
            offsets[row] = base_offset + offset_delta
            timestamps[row] = append_time if appended[batch] else base_timestamp + timestamp_delta

            size, pos = copy_blob(data, pos, end, keys, key_end)
            if pos < 0:
                return BAD_KEY, batch, 0, 0
            key_valid[row] = size >= 0
            key_end += max(size, 0)
            key_ends[row + 1] = key_end

            size, pos = copy_blob(data, pos, end, values, value_end)
            if pos < 0:
                return BAD_VALUE, batch, 0, 0
            value_valid[row] = size >= 0
            value_end += max(size, 0)
            value_ends[row + 1] = value_end

            number, pos = read_varint(data, pos, end)
            if pos < 0 or number < 0 or number > end - pos:
                return BAD_HEADERS, batch, 0, 0
            header_at[row] = pos
            header_end += number
            header_ends[row + 1] = header_end
            if number == 0:
                if pos != end:
                    return BAD_LENGTH, batch, 0, 0
            else:
                for _ in range(number):
                    size, pos = read_varint(data, pos, end)
                    if pos < 0 or size < 0 or size > end - pos:
                        return BAD_HEADERS, batch, 0, 0
                    pos += size
                    name_bytes += size
                    size, pos = read_varint(data, pos, end)
                    if pos < 0 or size < -1 or size > end - pos:
                        return BAD_HEADERS, batch, 0, 0
                    size = max(size, 0)
                    pos += size
                    header_bytes += size
                if pos != end:
                    return BAD_HEADERS, batch, 0, 0
            row += 1
        if pos != batch_end:
            return LEFT_OVER, batch, 0, 0
    return OK, 0, name_bytes, header_bytes


@kernel
def decode_headers(
    data: Bytes,
    header_at: Longs,
    header_ends: Ints,
    key_ends: Ints,
    keys: Bytes,
    value_ends: Ints,
    values: Bytes,
    value_valid: Flags,
) -> int:
    """Decodes the headers of records that `decode_records` has found and measured.

    Returns:
        0, or a fault if they have changed, as something else writes to `data`.
    """
    row = 0
    key_end = 0
    value_end = 0
    for record in range(len(header_at)):
        pos = header_at[record]
        for _ in range(header_ends[record + 1] - header_ends[record]):
            size, pos = copy_blob(data, pos, len(data), keys, key_end)
            if pos < 0 or size < 0:
                return BAD_HEADERS
            key_end += size
            key_ends[row + 1] = key_end
            size, pos = copy_blob(data, pos, len(data), values, value_end)
            if pos < 0:
                return BAD_HEADERS
            value_valid[row] = size >= 0
            value_end += max(size, 0)
            value_ends[row + 1] = value_end
            row += 1
    return OK


@kernel
def varint_size(value: int) -> int:
    """The size of a zig-zag varint in bytes."""
    zigzag = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> 63)
    size = 1
    while zigzag > np.uint64(127):
        zigzag >>= np.uint64(7)
        size += 1
    return size


@kernel
def write_varint(data: Bytes, pos: int, value: int) -> int:
    """Writes a zig-zag varint, and returns the position after it."""
    zigzag = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> 63)
    while zigzag > np.uint64(127):
        data[pos] = np.uint8(zigzag & np.uint64(127)) | np.uint8(128)
        zigzag >>= np.uint64(7)
        pos += 1
    data[pos] = np.uint8(zigzag)
    return pos + 1


@inlined
def write_blob(data: Bytes, pos: int, ends: Ints, source: Bytes, valid: bool, row: int) -> int:
    """Writes value `row` of a column with a length prefix, or null, and returns the position after it."""
    if not valid:
        data[pos] = 1  # -1
        return pos + 1
    start = np.int64(ends[row])
    size = np.int64(ends[row + 1]) - start
    pos = write_varint(data, pos, size)
    if size > SHORT:
        copy_bytes(data, pos, source, start, size)
    else:
        for i in range(size):
            data[pos + i] = source[start + i]
    return pos + size


@kernel
def blob_size(ends: Ints, valid: bool, row: int) -> int:
    """The number of bytes that `write_blob` writes."""
    if not valid:
        return 1
    size: int = np.int64(ends[row + 1]) - ends[row]
    return size + int(varint_size(size))


@kernel
def plan_batches(
    timestamps: Longs,
    offsets: Longs,
    key_ends: Ints,
    key_valid: Flags,
    value_ends: Ints,
    value_valid: Flags,
    header_sizes: Longs,
    max_bytes: int,
    sizes: Longs,
    firsts: Longs,
    lengths: Longs,
) -> int:
    """Splits records into batches of at most `max_bytes` bytes of records; a larger record gets a batch of its own.

    Args:
        timestamps, offsets, key_valid, value_valid: an entry a record.
        key_ends, value_ends: an entry a record and one more, with the ends of each in its column.
        header_sizes: bytes of each record's headers, with their count.
        max_bytes: bytes of records in a batch.
        sizes: out, the length of each record, without the length field.
        firsts, lengths: out, an entry a batch: its first record, and its bytes of records.

    Returns:
        The number of batches.
    """
    batches = 0
    total = np.int64(0)
    first = 0
    for row in range(len(timestamps)):
        fixed = 1 + np.int64(header_sizes[row])
        fixed += blob_size(key_ends, key_valid[row], row) + blob_size(value_ends, value_valid[row], row)
        body = fixed + varint_size(timestamps[row] - timestamps[first]) + varint_size(offsets[row] - offsets[first])
        size = body + varint_size(body)
        if row == 0 or total + size > max_bytes or offsets[row] - offsets[first] > 2147483647:
            if row > 0:
                lengths[batches - 1] = total
            first = row
            firsts[batches] = row
            batches += 1
            total = np.int64(0)
            body = fixed + 2  # both deltas are 0 now
            size = body + varint_size(body)
        sizes[row] = body
        total += size
    if batches > 0:
        lengths[batches - 1] = total
    return batches


@kernel
def encode_records(
    timestamps: Longs,
    offsets: Longs,
    key_ends: Ints,
    keys: Bytes,
    key_valid: Flags,
    value_ends: Ints,
    values: Bytes,
    value_valid: Flags,
    header_ends: Longs,
    header_key_ends: Ints,
    header_keys: Bytes,
    header_value_ends: Ints,
    header_values: Bytes,
    header_value_valid: Flags,
    sizes: Longs,
    firsts: Longs,
    positions: Longs,
    data: Bytes,
) -> None:
    """Writes the records of each batch from its position in `data` on, as planned by `plan_batches`."""
    for batch in range(len(firsts)):
        first = firsts[batch]
        last = firsts[batch + 1] if batch + 1 < len(firsts) else len(timestamps)
        pos = positions[batch]
        for row in range(first, last):
            pos = write_varint(data, pos, np.int64(sizes[row]))
            data[pos] = 0
            pos = write_varint(data, pos + 1, timestamps[row] - timestamps[first])
            pos = write_varint(data, pos, offsets[row] - offsets[first])
            pos = write_blob(data, pos, key_ends, keys, key_valid[row], row)
            pos = write_blob(data, pos, value_ends, values, value_valid[row], row)
            if len(header_ends) == 0:
                data[pos] = 0
                pos += 1
                continue
            pos = write_varint(data, pos, np.int64(header_ends[row + 1]) - header_ends[row])
            for header in range(header_ends[row], header_ends[row + 1]):
                pos = write_blob(data, pos, header_key_ends, header_keys, True, header)
                pos = write_blob(data, pos, header_value_ends, header_values, header_value_valid[header], header)


@kernel
def measure_headers(header_ends: Longs, key_ends: Ints, value_ends: Ints, value_valid: Flags, sizes: Longs) -> None:
    """Sets `sizes` to the bytes of each record's headers, with their count."""
    for row in range(len(sizes)):
        size = np.int64(varint_size(np.int64(header_ends[row + 1]) - header_ends[row]))
        for header in range(header_ends[row], header_ends[row + 1]):
            size += blob_size(key_ends, True, header) + blob_size(value_ends, value_valid[header], header)
        sizes[row] = size


@kernel
def murmur2_rows(ends: Ints, data: Bytes, hashes: Ints) -> None:
    """Austin Appleby's MurmurHash2 (32 bits) of each row, with the seed that Kafka's Java client uses."""
    m = np.uint32(0x5BD1E995)
    for row in range(len(hashes)):
        pos = np.int64(ends[row])
        length = np.int64(ends[row + 1]) - pos
        h = np.uint32(0x9747B28C) ^ np.uint32(length)
        while length >= 4:
            k = (
                np.uint32(data[pos])
                | np.uint32(data[pos + 1]) << np.uint32(8)
                | np.uint32(data[pos + 2]) << np.uint32(16)
                | np.uint32(data[pos + 3]) << np.uint32(24)
            )
            k = np.uint32(k * m)
            k ^= k >> np.uint32(24)
            k = np.uint32(k * m)
            h = np.uint32(h * m) ^ k
            pos += 4
            length -= 4
        if length == 3:
            h ^= np.uint32(data[pos + 2]) << np.uint32(16)
        if length >= 2:
            h ^= np.uint32(data[pos + 1]) << np.uint32(8)
        if length >= 1:
            h ^= np.uint32(data[pos])
            h = np.uint32(h * m)
        h ^= h >> np.uint32(13)
        h = np.uint32(h * m)
        h ^= h >> np.uint32(15)
        hashes[row] = np.int32(h)


@kernel
def crc32_rows(ends: Ints, data: Bytes, checks: Ints) -> None:
    """The CRC-32 of each row, as zlib's and librdkafka's."""
    table = np.empty(256, np.uint32)
    for number in range(256):
        check = np.uint32(number)
        for _ in range(8):
            check = np.uint32(0xEDB88320) ^ check >> np.uint32(1) if check & np.uint32(1) else check >> np.uint32(1)
        table[number] = check
    for row in range(len(checks)):
        check = np.uint32(0xFFFFFFFF)
        for pos in range(ends[row], ends[row + 1]):
            check = table[(check ^ np.uint32(data[pos])) & np.uint32(0xFF)] ^ check >> np.uint32(8)
        checks[row] = np.int32(check ^ np.uint32(0xFFFFFFFF))
