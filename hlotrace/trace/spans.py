"""Arithmetic on the spans of events: groups, nesting, what they cover together and what of a span is covered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.trace import _kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_ROOM = 1 << 12


def groups(
    name: NDArray[np.int32], kinds: NDArray[np.uint8], values: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The different events numbered in the order they come: the first row of each, and [n] the number of each row.

    Args:
        name: [n].
        kinds, values: [keys, n] what else makes events different.
    """
    flat = np.ascontiguousarray(kinds).reshape(-1), np.ascontiguousarray(values).reshape(-1)
    group = np.zeros(len(name), np.int32)
    room = _FIRST_ROOM
    while True:
        first = np.zeros(room // 2, np.int32)
        count = _kernels.number_groups(name, *flat, len(kinds), np.full(room, -1, np.int32), first, group)
        if count >= 0:
            return first[:count], group
        room *= 8


def in_order(start: NDArray[np.int64], duration: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The order by start, of equal ones the longest first; None where they are in it."""
    step = np.diff(start)
    if (step > 0).all() or not ((step < 0) | ((step == 0) & (np.diff(duration) > 0))).any():
        return None
    return np.lexsort((-duration, start))


def nested(start: NDArray[np.int64], duration: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The self time of events in order, and whether no other is inside them."""
    self_time, is_leaf = np.zeros(len(start), np.int64), np.zeros(len(start), np.uint8)
    stack = np.zeros(len(start), np.int32)
    _kernels.nest(np.ascontiguousarray(start), np.ascontiguousarray(duration), stack, self_time, is_leaf)
    return self_time, is_leaf.astype(bool)


@dataclass(frozen=True)
class Cover:
    """What events cover together: intervals in order that do not touch."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, start: NDArray[np.int64], duration: NDArray[np.int64]) -> Cover:
        """The cover of events in any order."""
        order = np.argsort(start, kind="stable")
        start, duration = start[order], duration[order]
        begins, ends = np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
        count = _kernels.merge(start, duration, begins, ends)
        return cls(begins[:count], ends[:count])

    @property
    def total(self) -> int:
        """All of its length."""
        return int((self.ends - self.begins).sum())

    @cached_property
    def _before(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.ends - self.begins)])

    def _until(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """How much of it lies before each place."""
        if not len(self.begins):
            return np.zeros(len(at), np.int64)
        place = np.searchsorted(self.begins, at, "right") - 1
        inside = np.maximum(place, 0)
        part = np.clip(at - self.begins[inside], 0, self.ends[inside] - self.begins[inside])
        return np.where(place < 0, 0, self._before[inside] + part)

    def within(self, start: NDArray[np.int64], duration: NDArray[np.int64]) -> NDArray[np.int64]:
        """How much of it lies within each span."""
        return self._until(start + duration) - self._until(start)


def added_up(
    group: NDArray[np.int32], values: NDArray[np.int64], groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[groups] how many values each group has, and their exact sum."""
    counts, totals = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    _kernels.add_up(group, np.ascontiguousarray(values), counts, totals)
    return counts, totals


def medians(group: NDArray[np.int32], values: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """[groups] the median of each group's values, which are not negative; 0 where there are none."""
    bits = int(values.max(initial=0)).bit_length()
    if bits + len(counts).bit_length() < 63 and (values >= 0).all():
        ordered = np.sort(group.astype(np.int64) << bits | values) & ((1 << bits) - 1)
    else:
        ordered = values[np.lexsort((values, group))]
    ends = np.cumsum(counts)
    held = counts > 0
    low, high = (ends - counts + (counts - 1) // 2)[held], (ends - counts + counts // 2)[held]
    found = np.zeros(len(counts), np.int64)
    found[held] = (ordered[low] + ordered[high]) // 2
    return found
