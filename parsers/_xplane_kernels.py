"""The loops that read the events of one line of an XSpace, and their stats, into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner, kernel
from hlotrace.parsers._wire_kernels import (
    CUT_VARINT,
    after_field,
    after_varint,
    fixed,
    integer,
)

if TYPE_CHECKING:
    from hlotrace.native import BytesAt, Ints32At, IntsAt

DOUBLE, UINT64, INT64, TEXT, BYTES, REF = 2, 3, 4, 5, 6, 7
"""The kinds of a stat's value, by XStat's field numbers; 0 is none."""

NEAR_IDS = 4096
"""Stat ids below this are looked up in a table, others are compared one by one."""

FAULT, FAULT_AT, STATS = 0, 1, 2
"""What stands where in `state`: a number of FAULTS, the byte where it is, and how many stats were read."""

_EVENT, _STAT = 34, 34
_ID, _OFFSET, _DURATION, _OCCURRENCES = 8, 16, 24, 40
"""Tags: the field's number times eight, plus its wire type."""


@inner
def _fail(state: IntsAt, fault: int, at: int) -> int:
    """Write a fault down; gives -1, which no place is."""
    state[FAULT], state[FAULT_AT] = fault, at
    return -1


@inner
def _slot(name: int, near: Ints32At, far: IntsAt, far_slots: Ints32At, far_count: int) -> int:
    """The slot of a stat's id, -1 where it is not held."""
    if 0 <= name < NEAR_IDS:
        return near[name]
    for other in range(far_count):
        if far[other] == name:
            return far_slots[other]
    return -1


@inner
def _content(data: BytesAt, tag: int, at: int, end: int, state: IntsAt) -> int:
    """Where the content of the field at `at` begins, with a tag of one byte or more; -1 at a fault."""
    content = at + 1 if tag < 128 else after_varint(data, at, end)
    if content < 0 or content >= end:
        return _fail(state, CUT_VARINT, at)
    return content


@inner
def _read_stat(
    data: BytesAt,
    at: int,
    end: int,
    row: int,
    room: int,
    near: Ints32At,
    far: IntsAt,
    far_slots: Ints32At,
    far_count: int,
    held_kind: BytesAt,
    held: IntsAt,
    stat_room: int,
    stat_event: Ints32At,
    stat_kind: BytesAt,
    stat: IntsAt,
    state: IntsAt,
) -> int:
    """Put one stat into its slot and into its row; gives -1 at a fault."""
    name, kind, value = 0, 0, 0
    while at < end:
        begin = at
        tag = integer(data, at, end)
        at = _content(data, int(data[at]), at, end, state)
        if at < 0:
            return -1
        following = after_field(data, tag, at, end)
        if following < 0:
            return _fail(state, -1 - following, begin)
        if tag == _ID:
            name = integer(data, at, end)
            if stat_room == 0 and _slot(name, near, far, far_slots, far_count) < 0:
                return 0
        elif tag == 8 * DOUBLE + 1:
            kind, value = DOUBLE, fixed(data, at)
        elif tag in (8 * UINT64, 8 * INT64, 8 * REF):
            kind, value = tag >> 3, integer(data, at, end)
        elif tag in (8 * TEXT + 2, 8 * BYTES + 2):
            kind, value = tag >> 3, at
        at = following
    slot = _slot(name, near, far, far_slots, far_count)
    if slot >= 0:
        held_kind[slot * room + row], held[slot * room + row] = kind, value
    count = state[STATS]
    if count < stat_room:
        stat_event[count], stat_kind[count], stat[count], stat[stat_room + count] = row, kind, name, value
        state[STATS] = count + 1
    return 0


@inner
def _read_event(
    data: BytesAt,
    at: int,
    end: int,
    row: int,
    room: int,
    events: IntsAt,
    near: Ints32At,
    far: IntsAt,
    far_slots: Ints32At,
    far_count: int,
    held_kind: BytesAt,
    held: IntsAt,
    stat_room: int,
    stat_event: Ints32At,
    stat_kind: BytesAt,
    stat: IntsAt,
    state: IntsAt,
) -> int:
    """Put one event into its row; gives -1 at a fault."""
    while at < end:
        begin = at
        tag = integer(data, at, end)
        at = _content(data, int(data[at]), at, end, state)
        if at < 0:
            return -1
        following = after_field(data, tag, at, end)
        if following < 0:
            return _fail(state, -1 - following, begin)
        if tag == _STAT:
            read = _read_stat(
                data, after_varint(data, at, end), following, row, room, near, far, far_slots, far_count,
                held_kind, held, stat_room, stat_event, stat_kind, stat, state,
            )  # fmt: skip
            if read < 0:
                return -1
        elif tag == _ID:
            events[row] = integer(data, at, end)
        elif tag in (_OFFSET, _DURATION):
            events[room * (tag >> 3) - room + row] = integer(data, at, end)
        elif tag == _OCCURRENCES:
            events[3 * room + row] = integer(data, at, end)
        at = following
    return 0


@inner
def _skip_to_events(data: BytesAt, at: int, end: int, state: IntsAt) -> int:
    """The place of the next event's field in a line; `end` where there is none, -1 at a fault."""
    while at < end:
        tag = integer(data, at, end)
        if tag == _EVENT:
            return at
        content = _content(data, int(data[at]), at, end, state)
        if content < 0:
            return -1
        after = after_field(data, tag, content, end)
        if after < 0:
            return _fail(state, -1 - after, at)
        at = after
    return at


@kernel
def count_events(data: BytesAt, start: int, end: int, with_stats: int, counts: IntsAt, state: IntsAt) -> int:
    """Count the events of a line up to the first fault, and their stats if asked; fills `counts` with both."""
    events, stats = 0, 0
    at = _skip_to_events(data, start, end, state)
    while 0 <= at < end:
        content = after_varint(data, at, end)
        after = after_field(data, _EVENT, content, end)
        if after < 0:
            break
        events += 1
        inside = after_varint(data, content, end)
        while with_stats and 0 <= inside < after:
            tag = int(data[inside])
            stats += tag == _STAT
            inside = after_field(data, tag, inside + 1, after)
        at = _skip_to_events(data, after, end, state)
    counts[0], counts[1] = events, stats
    return 0


@kernel
def read_events(
    data: BytesAt,
    start: int,
    end: int,
    room: int,
    events: IntsAt,
    near: Ints32At,
    far: IntsAt,
    far_slots: Ints32At,
    far_count: int,
    held_kind: BytesAt,
    held: IntsAt,
    stat_room: int,
    stat_event: Ints32At,
    stat_kind: BytesAt,
    stat: IntsAt,
    state: IntsAt,
) -> int:
    """Fill the columns with the events of a line, as far as there is room; gives how many there are.

    Args:
        events: [4 * room] the metadata ids of all, then the offsets, the durations, and the numbers of occurrences.
        near, far, far_slots: which stats to hold one a kind: the slot of each id below NEAR_IDS or -1, and other ids
            with their slots.
        held_kind, held: [slots * room] the kind and value of the stat in each slot of each event.
        stat_event, stat_kind: [stat_room] the event and the kind of every stat; not filled where the room is 0.
        stat: [2 * stat_room] their ids, then their values: the integer, a double's bits, or for text and bytes where
            the length before them stands.
        state: filled as FAULT, FAULT_AT and STATS say.
    """
    row = 0
    at = _skip_to_events(data, start, end, state)
    while 0 <= at < end and row < room:
        content = after_varint(data, at, end)
        after = after_field(data, _EVENT, content, end) if content >= 0 else -1 - CUT_VARINT
        if after < 0:
            _fail(state, -1 - after, at)
            return row
        stats = state[STATS]
        read = _read_event(
            data, after_varint(data, content, end), after, row, room, events, near, far, far_slots, far_count,
            held_kind, held, stat_room, stat_event, stat_kind, stat, state,
        )  # fmt: skip
        if read < 0:
            state[STATS] = stats
            return row
        row += 1
        at = _skip_to_events(data, after, end, state)
    return row
