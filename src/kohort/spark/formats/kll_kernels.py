"""KLL quantile sketches made, merged and asked by compiled loops; their bytes are those of Apache DataSketches.

A sketch keeps values in levels; one of level L stands for 2^L of those that came. When there is no room for more, a
level that is full is sorted, every second value of it goes up a level, and the others are dropped.

All loops work on keys: int64 numbers in the order of the values (`_key`), so that there is one compiled code for whole
numbers and for doubles. A sketch that is being worked on lies in `items`, a row of `width` keys for each level.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kohort.protocol.records.jit import copy_bytes, kernel

FAULTS: Final = (
    "",
    "its bytes end too soon",
    "it isn't of the KLL family",
    "its form isn't one of the compact ones",
    "its k and m can't be",
    "its flags aren't those of its form",
    "its levels can't be",
    "its levels don't hold as many values as it counts",
    "its minimum is above its maximum",
    "there are bytes after its end",
)

_CUT, _FAMILY, _FORM, _K, _FLAGS, _LEVELS, _COUNT, _MINIMUM, _MORE = range(1, 10)

N, MIN_K, LEVELS, RETAINED, ITEMS, SORTED = range(6)
"""What `inspect` finds out about a sketch: values that came, k of its error, levels, values kept, where these lie in
the data, whether level 0 is sorted."""

MOST_LEVELS: Final = 61
M: Final = 8
"""The least room of a level in sketches that are made here."""

_LOW, _HIGH = 4, 5  # of what is being worked on, beside N, MIN_K, LEVELS and RETAINED
_EMPTY_FLAG, _SORTED_FLAG, _SINGLE_FLAG = 1, 2, 4
_EMPTY: Final = 2 | 1 << 8 | _EMPTY_FLAG << 24
_SINGLE: Final = 2 | 2 << 8 | _SINGLE_FLAG << 24
_FULL: Final = 5 | 1 << 8
"""What tells the forms apart in the first four bytes: words of the head, version, flags."""
_FAMILY_KLL: Final = 15
_MAGNITUDE: Final = 2**63 - 1
_POWERS_OF_3: Final = np.array([3**power for power in range(31)], np.int64)


@kernel
def _key(bits: Any) -> Any:
    """A double's bits as a number in the order of doubles (-0.0 comes before 0.0), and such a number as bits."""
    return bits ^ ((bits >> 63) & _MAGNITUDE)


@kernel
def _capacity(k: Any, m: Any, depth: Any) -> Any:
    """How many values a level is meant for, so many levels below the top: two thirds of the one above, at least m."""
    if depth > 30:  # two thirds of 65,535, and of that, 31 times, is less than 1
        return m
    return max(m, ((k << (depth + 1)) // _POWERS_OF_3[depth] + 1) >> 1)


@kernel
def capacity(k: Any, m: Any, levels: Any) -> Any:
    """How many values a sketch of so many levels keeps at most."""
    total = np.int64(0)
    for depth in range(levels):
        total += _capacity(k, m, depth)
    return total


@kernel
def _capacities(k: Any, capacities: Any, totals: Any) -> None:
    """Fill in the capacity by depth, and that of all levels by their number."""
    total = np.int64(0)
    totals[0] = 0
    for depth in range(MOST_LEVELS):
        capacities[depth] = _capacity(k, M, depth)
        total += capacities[depth]
        totals[depth + 1] = total


@kernel
def _number(data: Any, at: Any, size: Any) -> Any:
    number = np.int64(0)
    for index in range(size):
        number |= np.int64(data[at + index]) << (8 * index)
    return number


@kernel
def _put(out: Any, at: Any, size: Any, number: Any) -> Any:
    for index in range(size):
        out[at + index] = (number >> (8 * index)) & 0xFF
    return at + size


@kernel
def _value(data: Any, at: Any, whole: Any) -> Any:
    bits = _number(data, at, 8)
    return bits if whole else _key(bits)


@kernel
def _inspect(data: Any, at: Any, size: Any, whole: Any, found: Any) -> Any:
    """What is wrong with a sketch, or 0 and what it has."""
    if size < 8:
        return _CUT
    head = _number(data, at, 8)
    form, flags, k, m = head & 0xFFFF, head >> 24, (head >> 32) & 0xFFFF, (head >> 48) & 0xFF
    if (head >> 16) & 0xFF != _FAMILY_KLL:
        return _FAMILY
    if m < 2 or m > 8 or m % 2 == 1 or k < m:
        return _K
    found[SORTED] = (flags & _SORTED_FLAG) != 0
    if form == _EMPTY & 0xFFFF:
        if flags & _EMPTY_FLAG == 0:
            return _FLAGS
        found[N] = found[RETAINED] = found[LEVELS] = 0
        return _MORE if size > 8 else 0
    if flags & _EMPTY_FLAG != 0:
        return _FLAGS
    if form == _SINGLE & 0xFFFF:
        found[N] = found[RETAINED] = found[LEVELS] = 1
        found[MIN_K] = k
        found[ITEMS] = at + 8
        return _CUT if size < 16 else _MORE if size > 16 else 0
    if form != _FULL:
        return _FORM
    if size < 20:
        return _CUT
    n, head = _number(data, at + 8, 8), _number(data, at + 16, 4)
    min_k, levels = head & 0xFFFF, (head >> 16) & 0xFF
    if levels < 1 or levels > MOST_LEVELS:
        return _LEVELS
    if min_k < m or min_k > k:
        return _K
    if size < 20 + 4 * levels + 16:
        return _CUT
    top = capacity(k, m, levels)
    first = before = _number(data, at + 20, 4)
    left = n
    for level in range(levels):
        after = _number(data, at + 24 + 4 * level, 4) if level + 1 < levels else top
        if after < before or after > top:
            return _LEVELS
        if after - before > left >> level:
            return _COUNT
        left -= (after - before) << level
        before = after
    if left != 0 or n < 1:
        return _COUNT
    expected = 36 + 4 * levels + 8 * (top - first)
    if size != expected:
        return _CUT if size < expected else _MORE
    found[N], found[MIN_K], found[LEVELS], found[RETAINED] = n, min_k, levels, top - first
    found[ITEMS] = at + 36 + 4 * levels
    return _MINIMUM if _value(data, found[ITEMS] - 16, whole) > _value(data, found[ITEMS] - 8, whole) else 0


@kernel
def inspect(data: Any, starts: Any, sizes: Any, there: Any, whole: Any, found: Any, faults: Any) -> None:
    """Check sketches in full, but for their values. O(levels) each.

    Args:
        data: bytes.
        starts, sizes, there: where each sketch lies in them; bool: whether there is one.
        whole: whether values are whole numbers, or doubles.
        found: [row, what], full of zeros; it is right where there is no fault.
        faults: what is wrong with a row, as in `FAULTS`.
    """
    for row in range(len(starts)):
        if there[row]:
            faults[row] = _inspect(data, np.int64(starts[row]), np.int64(sizes[row]), whole, found[row])


@kernel
def _level_size(data: Any, start: Any, found: Any, level: Any) -> Any:
    """How many values a level has of a sketch that was inspected."""
    if found[LEVELS] == 1:
        return found[RETAINED]
    at = start + 20 + 4 * level
    if level + 1 < found[LEVELS]:
        return _number(data, at + 4, 4) - _number(data, at, 4)
    return _number(data, start + 20, 4) + found[RETAINED] - _number(data, at, 4)


@kernel
def _load(data: Any, at: Any, count: Any, whole: Any, keys: Any, raw: Any) -> None:
    """Values out of bytes into keys; `raw` is the memory of `keys`."""
    copy_bytes(raw, 0, data, at, 8 * count)
    if not whole:
        for index in range(count):
            keys[index] = _key(keys[index])


@kernel
def _sort(items: Any, start: Any, end: Any, spare: Any) -> None:
    """Sort a part: pieces of 16 by insertion, then merged two by two. O(n log n) whatever the order."""
    for first in range(start, end, 16):
        for at in range(first + 1, min(first + 16, end)):
            item = items[at]
            to = at
            while to > first and items[to - 1] > item:
                items[to] = items[to - 1]
                to -= 1
            items[to] = item
    piece = 16
    while piece < end - start:
        for first in range(start, end - piece, 2 * piece):
            right, stop = first + piece, min(first + 2 * piece, end)
            if items[right - 1] <= items[right]:
                continue
            for index in range(piece):
                spare[index] = items[first + index]
            left, to = 0, first
            while left < piece and right < stop:
                if items[right] < spare[left]:
                    items[to] = items[right]
                    right += 1
                else:
                    items[to] = spare[left]
                    left += 1
                to += 1
            for index in range(left, piece):
                items[to + index - left] = spare[index]
        piece *= 2


@kernel
def _merge_sorted(items: Any, start: Any, size: Any, more: Any, at: Any, step: Any, count: Any) -> None:
    """Merge `count` sorted keys, each `step` after the other, into the `size` ones at `start`, from the end."""
    to = start + size + count - 1
    while count > 0:
        item = more[at + (count - 1) * step]
        if size > 0 and items[start + size - 1] > item:
            items[to] = items[start + size - 1]
            size -= 1
        else:
            items[to] = item
            count -= 1
        to -= 1


@kernel
def _coin(random: Any) -> Any:
    """0 or 1, by xorshift."""
    state = random[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    random[0] = state
    return np.int64(state >> np.uint64(63))


@kernel
def _compact(
    items: Any, width: Any, sizes: Any, now: Any, free: Any, capacities: Any, totals: Any, spare: Any, random: Any
) -> None:
    """Compact the lowest full levels until there's room for `free` more."""
    while now[RETAINED] + free > totals[now[LEVELS]]:
        level = np.int64(0)
        while sizes[level] < capacities[now[LEVELS] - 1 - level]:
            level += 1
        if level == now[LEVELS] - 1:
            now[LEVELS] += 1
            sizes[level + 1] = 0
        start, size = level * width, sizes[level]
        odd, half = size & 1, size >> 1  # of an odd number the first stays
        if level == 0:
            _sort(items, odd, size, spare)
        _merge_sorted(items, start + width, sizes[level + 1], items, start + odd + _coin(random), 2, half)
        sizes[level] = odd
        sizes[level + 1] += half
        now[RETAINED] -= half


@kernel
def _start(now: Any, sizes: Any, k: Any) -> None:
    now[N] = now[RETAINED] = sizes[0] = 0
    now[LEVELS] = 1
    now[MIN_K] = k


@kernel
def _bounds(now: Any, low: Any, high: Any) -> None:
    """Take in the least and the greatest value, before the number of values."""
    now[_LOW] = low if now[N] == 0 else min(now[_LOW], low)
    now[_HIGH] = high if now[N] == 0 else max(now[_HIGH], high)


@kernel
def _add(
    keys: Any, at: Any, end: Any, items: Any, width: Any, sizes: Any, now: Any, capacities: Any, totals: Any,
    spare: Any, random: Any,
) -> None:  # fmt: skip
    """Put keys into level 0, as many at a time as there is room for."""
    while at < end:
        _compact(items, width, sizes, now, 1, capacities, totals, spare, random)
        count = min(end - at, totals[now[LEVELS]] - now[RETAINED])
        for index in range(count):
            items[sizes[0] + index] = keys[at + index]
        sizes[0] += count
        now[RETAINED] += count
        at += count


@kernel
def _write(
    out: Any, at: Any, items: Any, raw: Any, width: Any, sizes: Any, now: Any, k: Any, totals: Any, whole: Any
) -> Any:
    """Write a sketch and say where it ends. Of doubles, `items` are their bits then."""
    form = _EMPTY if now[N] == 0 else _SINGLE if now[N] == 1 else _FULL
    at = _put(out, at, 8, form | _FAMILY_KLL << 16 | k << 32 | M << 48)
    if now[N] > 1:
        at = _put(out, at, 8, now[N])
        at = _put(out, at, 4, now[MIN_K] | now[LEVELS] << 16)
        place = totals[now[LEVELS]] - now[RETAINED]
        for level in range(now[LEVELS]):
            at = _put(out, at, 4, place)
            place += sizes[level]
        at = _put(out, at, 8, now[_LOW] if whole else _key(now[_LOW]))
        at = _put(out, at, 8, now[_HIGH] if whole else _key(now[_HIGH]))
    for level in range(now[LEVELS]):
        start, size = level * width, sizes[level]
        if not whole:
            for index in range(start, start + size):
                items[index] = _key(items[index])
        copy_bytes(out, at, raw, 8 * start, 8 * size)
        at += 8 * size
    return at


@kernel
def make(
    bits: Any, groups: Any, places: Any, k: Any, whole: Any, random: Any, items: Any, raw: Any, width: Any, ends: Any,
    out: Any,
) -> None:  # fmt: skip
    """A sketch of each group's values. O(values · log k + groups).

    Args:
        bits, groups: of values, in any order: int64, of doubles their bits.
        places: where each group's values come to lie when they are in the groups' order, and one more for their end.
        k: of the sketches; `random`: uint64 that isn't 0, for chance.
        items, raw, width: room for a sketch, a row of `width` for each level it may have; the same memory as bytes.
        ends: int32: where sketches begin and end in `out`; one more than groups.
        out: uint8, with room for all.
    """
    capacities, totals = np.empty(MOST_LEVELS, np.int64), np.empty(MOST_LEVELS + 1, np.int64)
    _capacities(k, capacities, totals)
    sizes, now, spare = np.zeros(MOST_LEVELS + 1, np.int64), np.zeros(6, np.int64), np.empty(width, np.int64)
    ordered, to = np.empty(len(bits), np.int64), places.copy()
    for row in range(len(bits)):
        group = groups[row]
        ordered[to[group]] = bits[row] if whole else _key(bits[row])
        to[group] += 1
    at = np.int64(0)
    ends[0] = 0
    for group in range(len(places) - 1):
        first, end = places[group], places[group + 1]
        _start(now, sizes, k)
        if end > first:
            low = high = ordered[first]
            for index in range(first + 1, end):
                low, high = min(low, ordered[index]), max(high, ordered[index])
            _bounds(now, low, high)
            _add(ordered, first, end, items, width, sizes, now, capacities, totals, spare, random)
            now[N] = end - first
        at = _write(out, at, items, raw, width, sizes, now, k, totals, whole)
        ends[group + 1] = at


@kernel
def merge(
    data: Any, starts: Any, there: Any, found: Any, groups: Any, places: Any, k: Any, whole: Any, random: Any,
    loaded: Any, loaded_raw: Any, items: Any, raw: Any, width: Any, ends: Any, out: Any,
) -> Any:  # fmt: skip
    """Merge the sketches of each group. O(bytes · log k + groups) for sketches that aren't full, else O(k) each.

    Args:
        data, starts, there, found: sketches, as inspected.
        groups: of sketches; `places`, `k`, `random`, `items`, `raw`, `width`, `ends`, `out`: as of `make`; a row of
            `items` has room for what is kept of the result and of another sketch.
        loaded, loaded_raw: room for what a sketch keeps; the same memory as bytes.

    Returns:
        -1, or the row with which a group has more values than can be counted.
    """
    capacities, totals = np.empty(MOST_LEVELS, np.int64), np.empty(MOST_LEVELS + 1, np.int64)
    _capacities(k, capacities, totals)
    sizes, now, spare = np.zeros(MOST_LEVELS + 1, np.int64), np.zeros(6, np.int64), np.empty(width, np.int64)
    ordered, to = np.empty(len(groups), np.int64), places.copy()
    for row in range(len(groups)):
        group = groups[row]
        ordered[to[group]] = row
        to[group] += 1
    at = np.int64(0)
    ends[0] = 0
    for group in range(len(places) - 1):
        _start(now, sizes, k)
        for index in range(places[group], places[group + 1]):
            row = ordered[index]
            has = found[row]
            if not there[row] or has[N] == 0:
                continue
            if now[N] > _MAGNITUDE - has[N]:
                return row
            start, place = np.int64(starts[row]), has[ITEMS]
            _load(data, place, has[RETAINED], whole, loaded, loaded_raw)
            if has[N] == 1:
                _bounds(now, loaded[0], loaded[0])
            else:
                head = np.int64(starts[row]) + 20 + 4 * has[LEVELS]
                _bounds(now, _value(data, head, whole), _value(data, head + 8, whole))
            zero = _level_size(data, start, has, 0)
            if has[LEVELS] > 1:
                # Its upper levels come first: they raise the number of levels, and so the room for level 0.
                for level in range(now[LEVELS], has[LEVELS]):
                    sizes[level] = 0
                now[LEVELS] = max(now[LEVELS], has[LEVELS])
                now[MIN_K] = min(now[MIN_K], has[MIN_K])
                taken = zero
                for level in range(1, has[LEVELS]):
                    size = _level_size(data, start, has, level)
                    _merge_sorted(items, level * width, sizes[level], loaded, taken, 1, size)
                    sizes[level] += size
                    taken += size
                now[RETAINED] += taken - zero
                _compact(items, width, sizes, now, 0, capacities, totals, spare, random)
            _add(loaded, 0, zero, items, width, sizes, now, capacities, totals, spare, random)
            now[N] += has[N]
        at = _write(out, at, items, raw, width, sizes, now, k, totals, whole)
        ends[group + 1] = at
    return -1


@kernel
def ask(
    data: Any, starts: Any, there: Any, found: Any, ranks: Any, whole: Any, loaded: Any, loaded_raw: Any, spare: Any,
    answers: Any,
) -> None:  # fmt: skip
    """The values at ranks. O(r log r + ranks · log r) for a sketch that keeps r values.

    Args:
        data, starts, there, found: sketches, as inspected; nothing is said of empty ones.
        ranks: from 0 to 1.
        loaded, loaded_raw: room for what a sketch keeps; the same memory as bytes.
        spare: as much room.
        answers: [rank, row]: a double as its bits.
    """
    keys, weights = np.empty(len(loaded), np.int64), np.empty(len(loaded), np.int64)
    for row in range(len(starts)):
        has = found[row]
        if not there[row] or has[N] == 0:
            continue
        start, n, retained = np.int64(starts[row]), has[N], has[RETAINED]
        _load(data, has[ITEMS], retained, whole, loaded, loaded_raw)
        low = high = loaded[0]
        if n > 1:
            head = start + 20 + 4 * has[LEVELS]
            low, high = _value(data, head, whole), _value(data, head + 8, whole)
        taken = _level_size(data, start, has, 0)
        if not has[SORTED]:
            _sort(loaded, 0, taken, spare)
        for index in range(taken):
            keys[index], weights[index] = loaded[index], 1
        for level in range(1, has[LEVELS]):
            size = _level_size(data, start, has, level)
            _merge_weighted(keys, weights, taken, loaded, taken, size, np.int64(1) << level)
            taken += size
        total = np.int64(0)
        for index in range(retained):
            total += weights[index]
            weights[index] = total
        below_high = (
            keys[retained - 1] != high
        )  # the maximum itself isn't among what is kept: it is the last one's rank
        if below_high:
            weights[retained - 1] -= 1
        for index in range(len(ranks)):
            rank = _natural(ranks[index], n)
            if rank <= 1 and keys[0] != low:
                answer = low
            elif rank > weights[retained - 1]:
                answer = high
            else:
                first, last = 0, retained - 1
                while first < last:
                    middle = (first + last) // 2
                    if weights[middle] >= rank:
                        last = middle
                    else:
                        first = middle + 1
                answer = keys[first]
            answers[index, row] = answer if whole else _key(answer)


@kernel
def _natural(rank: Any, n: Any) -> Any:
    """A rank of n, as DataSketches rounds it: to seven places unless there are very many, then up."""
    natural = rank * n
    if n <= 10_000_000:
        scaled = natural * 1e7
        down = np.floor(scaled)
        natural = (down + 1.0 if scaled - down >= 0.5 else down) / 1e7
    return np.ceil(natural)


@kernel
def _merge_weighted(keys: Any, weights: Any, size: Any, more: Any, at: Any, count: Any, weight: Any) -> None:
    """Merge sorted keys of one weight into sorted keys of weights of their own, from the end."""
    to = size + count - 1
    while count > 0:
        if size > 0 and keys[size - 1] > more[at + count - 1]:
            size -= 1
            keys[to], weights[to] = keys[size], weights[size]
        else:
            count -= 1
            keys[to], weights[to] = more[at + count], weight
        to -= 1
