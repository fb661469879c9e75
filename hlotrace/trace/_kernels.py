"""Loops over the events of a lane: groups of equal keys, self times where events nest, intervals merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner, kernel

if TYPE_CHECKING:
    from hlotrace.native import Bytes, Ints, Ints32

_MIX = 0x9E3779B97F4A7C1


@inner
def _hash(name: Ints32, kinds: Bytes, values: Ints, count: int, row: int) -> int:
    mixed = int(name[row])
    for key in range(count):
        at = key * len(name) + row
        mixed = (mixed ^ values[at] ^ kinds[at]) * _MIX
        mixed ^= mixed >> 29
    return mixed


@inner
def _equal(name: Ints32, kinds: Bytes, values: Ints, count: int, one: int, other: int) -> bool:
    same = name[one] == name[other]
    for key in range(count):
        at = key * len(name)
        same &= kinds[at + one] == kinds[at + other] and values[at + one] == values[at + other]
    return same


@kernel
def number_groups(
    name: Ints32, kinds: Bytes, values: Ints, keys: int, table: Ints32, first: Ints32, group: Ints32
) -> int:
    """Number the different events, by name and keys, in the order they come; gives how many, -1 for too many.

    Args:
        name: [n].
        kinds, values: [keys * n] of every key the kind (0 for none) and the value of each event.
        table: [a power of two] room to work in, filled with -1; half of it is the most there may be.
        first: filled with the first place of each group.
        group: [n] filled with the number of each place.
    """
    count = 0
    mask = len(table) - 1
    for row in range(len(name)):
        at = _hash(name, kinds, values, keys, row) & mask
        while table[at] >= 0 and not _equal(name, kinds, values, keys, first[table[at]], row):
            at = (at + 1) & mask
        if table[at] < 0:
            if 2 * count >= len(table) or count >= len(first):
                return -1
            table[at] = count
            first[count] = row
            count += 1
        group[row] = table[at]
    return count


@kernel
def add_up(group: Ints32, values: Ints, counts: Ints, totals: Ints) -> int:
    """Count the values of each group, and add them up."""
    for row in range(len(group)):
        counts[group[row]] += 1
        totals[group[row]] += values[row]
    return 0


@kernel
def nest(start: Ints, duration: Ints, stack: Ints32, self_time: Ints, is_leaf: Bytes) -> int:
    """Fill the time of each event that is in no event inside it, and whether there is none inside it.

    Args:
        start, duration: sorted by start; of equal ones the longest first.
        stack: [n] room to work in.
    """
    depth = 0
    for row in range(len(start)):
        begin, end = start[row], start[row] + duration[row]
        while depth > 0 and start[stack[depth - 1]] + duration[stack[depth - 1]] <= begin:
            depth -= 1
        self_time[row] = duration[row]
        is_leaf[row] = 1
        if depth > 0 and duration[row] > 0:
            parent = stack[depth - 1]
            inside = min(end, start[parent] + duration[parent]) - begin
            self_time[parent] -= inside
            is_leaf[parent] = 0
        stack[depth] = row
        depth += 1
    return 0


@kernel
def merge(start: Ints, duration: Ints, begins: Ints, ends: Ints) -> int:
    """Fill `begins` and `ends` with the intervals that the events cover together, sorted by start as they are."""
    count = 0
    for row in range(len(start)):
        begin, end = start[row], start[row] + duration[row]
        if count and begin <= ends[count - 1]:
            if end > ends[count - 1]:
                ends[count - 1] = end
        elif end > begin:
            begins[count], ends[count] = begin, end
            count += 1
    return count
