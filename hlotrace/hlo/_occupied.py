"""The bytes in use of one allocation over the schedule, each address counted once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import kernel

if TYPE_CHECKING:
    from hlotrace.native import Ints


@kernel
def sweep(
    events: Ints, segments: Ints, begins: Ints, ends: Ints, first: Ints, last: Ints, users: Ints, occupied: Ints
) -> int:
    """Add to `occupied[p]` the bytes of the segments that some value uses at position p.

    Args:
        events: values twice over: value v at 2 v begins, at 2 v + 1 ends, in the order in which that happens.
        segments: bytes of each segment of the allocation, cut at every address where a value begins or ends.
        begins, ends: the segments of each value, `ends` not included.
        first, last: the first and last position of each value.
        users: scratch, zeros, one a segment.
        occupied: int64, one a position.
    """
    live, at, done = 0, 0, 0
    for event in events:
        value = event >> 1
        starts = event & 1 == 0
        when = first[value] if starts else last[value] + 1
        while at < when and at < len(occupied):
            occupied[at] += live
            at += 1
        for segment in range(begins[value], ends[value]):
            if starts:
                live += segments[segment] if users[segment] == 0 else 0
                users[segment] += 1
            else:
                users[segment] -= 1
                live -= segments[segment] if users[segment] == 0 else 0
        done += 1
    return done
