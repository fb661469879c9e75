"""Varints and fields of a protobuf message, for loops over millions of them: every step gives a single number.

A tuple would be put together and taken apart once a field, which takes most of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotrace.native import inner

if TYPE_CHECKING:
    from hlotrace.native import BytesAt

CUT_VARINT, TOO_LONG, UNKNOWN_WIRE = 1, 2, 3
FAULTS = (
    "",
    "a varint that runs past its end",
    "a field longer than the message that holds it",
    "a wire type that is a group or unknown",
)


@inner
def after_varint(data: BytesAt, at: int, end: int) -> int:
    """The byte after the varint at `at`; -1 where it does not end in time."""
    stop = min(end, at + 10)
    while at < stop:
        if data[at] < 128:
            return at + 1
        at += 1
    return -1


@inner
def varint(data: BytesAt, at: int, end: int) -> int:
    """The varint at `at`, as far as it goes."""
    value = 0
    shift = 0
    while at < end and shift < 70:
        byte = int(data[at])
        value |= (byte & 127) << shift
        if byte < 128:
            break
        at += 1
        shift += 7
    return value


@inner
def after_field(data: BytesAt, tag: int, at: int, end: int) -> int:
    """The byte after the field whose content begins at `at`; -1 less a number of FAULTS where that is beyond `end`."""
    wire = tag & 7
    if wire == 0:
        after = after_varint(data, at, end)
        return after if after >= 0 else -1 - CUT_VARINT
    size = 8
    if wire == 5:
        size = 4
    elif wire == 2:
        begin = after_varint(data, at, end)
        if begin < 0:
            return -1 - CUT_VARINT
        size = varint(data, at, end)
        at = begin
    elif wire != 1:
        return -1 - UNKNOWN_WIRE
    if size < 0 or size > end - at:
        return -1 - TOO_LONG
    return at + size


@inner
def fixed(data: BytesAt, at: int) -> int:
    """Eight bytes as an integer."""
    value = 0
    for place in range(8):
        value |= int(data[at + place]) << (8 * place)
    return value


@inner
def integer(data: BytesAt, at: int, end: int) -> int:
    """The varint at `at`, which is known to end."""
    value = int(data[at])
    return value if value < 128 else varint(data, at, end)
