"""The bytes in use of one allocation over the schedule, each address counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import kernel

if TYPE_CHECKING:
    from hlotrace.native import Ints


@kernel
def sweep(
    positions: Ints, segments: Ints, first: Ints, last: Ints, begins: Ints, ends: Ints, users: Ints, occupied: Ints
) -> int:
    """Add to `occupied[p]` the bytes of the segments that some value uses at position p.

    Args:
        positions: values twice over: value v at 2 v begins, at 2 v + 1 ends, in the order in which that happens.
        segments: bytes of each segment of the allocation, cut at every address where a value begins or ends.
        first, last: the segments of each value, `last` not included.
        begins, ends: the first and last position of each value.
        users: scratch, zeros, one a segment.
        occupied: int64, one a position.
    """
    live, at, done = 0, 0, 0
    for event in positions:
        value = event >> 1
        starts = event & 1 == 0
        when = begins[value] if starts else ends[value] + 1
        while at < when and at < len(occupied):
            occupied[at] += live
            at += 1
        for segment in range(first[value], last[value]):
            if starts:
                live += segments[segment] if users[segment] == 0 else 0
                users[segment] += 1
            else:
                users[segment] -= 1
                live -= segments[segment] if users[segment] == 0 else 0
        done += 1
    return done
