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


def groups(*columns: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Equal rows numbered in the order they come: the first row of each group, and [n] the group of each row."""
    keys = np.ascontiguousarray(np.stack(columns), np.int64)
    group = np.zeros(keys.shape[1], np.int32)
    room = _FIRST_ROOM
    while True:
        first = np.zeros(room // 2, np.int32)
        count = _kernels.number_groups(keys, np.full(room, -1, np.int32), first, group)
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


@dataclass(frozen=True)
class Grouped:
    """Values in groups: [groups] how many, their sum and their median, 0 where there are none."""

    count: NDArray[np.int64]
    total: NDArray[np.int64]
    median: NDArray[np.int64]


def in_groups(group: NDArray[np.int64], values: NDArray[np.int64], groups: int) -> Grouped:
    """The values in groups; sums are exact."""
    order = np.lexsort((values, group))
    ordered = values[order]
    count = np.bincount(group, minlength=groups)
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    held = np.flatnonzero(count)
    total, median = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    if len(held):
        total[held] = np.add.reduceat(ordered, starts[held])
        low, high = starts[held] + (count[held] - 1) // 2, starts[held] + count[held] // 2
        median[held] = (ordered[low] + ordered[high]) // 2
    return Grouped(count, total, median)
