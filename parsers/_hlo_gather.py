"""String columns out of spans of a text, and the lines of places in it; compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.native import inner, kernel
from hlotrace.parsers._hlo_lex import NEWLINES, count_marks, eight_bytes, marks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.native import BytesAt, Ints32At, IntsAt

_HIGH = 1 << 40
"""Added to a string's length by `_unescape` when an escape gave a byte that is not ASCII."""


@inner
def _hex_digit(char: int) -> int:
    if 48 <= char <= 57:
        return char - 48
    lower = char | 32
    return lower - 87 if 97 <= lower <= 102 else -1


@inner
def _simple_escape(char: int) -> int:
    """The byte that an escaped letter stands for; the character itself for all others."""
    if char == 110:
        return 10
    if char == 116:
        return 9
    if char == 114:
        return 13
    if 97 <= char <= 98:
        return char - 90
    if char == 102:
        return 12
    return 11 if char == 118 else char


@inner
def _unescape(text: BytesAt, at: int, end: int, out: BytesAt, out_at: int) -> int:
    """Write a string's bytes with C escapes resolved; how many they are, plus `_HIGH` where an escape is above 127."""
    begin = out_at
    high = 0
    while at < end:
        char = int(text[at])
        at += 1
        if char == 92 and at < end:
            char = int(text[at])
            at += 1
            if 48 <= char <= 55:
                char -= 48
                for _ in range(2):
                    if at < end and 48 <= text[at] <= 55:
                        char = char * 8 + text[at] - 48
                        at += 1
                high |= char > 127
            elif (char == 120 or char == 88) and at < end and _hex_digit(text[at]) >= 0:
                char = _hex_digit(text[at])
                at += 1
                if at < end and _hex_digit(text[at]) >= 0:
                    char = char * 16 + _hex_digit(text[at])
                    at += 1
                high |= char > 127
            else:
                char = _simple_escape(char)
        out[out_at] = char
        out_at += 1
    return out_at - begin + (_HIGH if high else 0)


@kernel
def _gather(
    text: BytesAt, spans: IntsAt, count: int, unquote: int, offsets: Ints32At, out: BytesAt, odd: IntsAt
) -> int:
    """Copy spans one after another; with `unquote`, strings without their quotes and escapes."""
    at = 0
    offsets[0] = 0
    for row in range(count):
        start, end = spans[2 * row], spans[2 * row + 1]
        if start >= 0:
            if unquote and (text[start] == 34 or text[start] == 39):
                length = _unescape(text, start + 1, end - 1, out, at)
                if length >= _HIGH:
                    length -= _HIGH
                    odd[0] += 1
                at += length
            else:
                for place in range(end - start):
                    out[at + place] = text[start + place]
                at += end - start
        offsets[row + 1] = at
    return 0


@kernel
def _join(text: BytesAt, pieces: IntsAt, count: int, owners: IntsAt, rows: int, offsets: Ints32At, out: BytesAt) -> int:
    """Copy the pieces of each row, sorted by owner, joined by a comma and a space."""
    at = 0
    piece = 0
    offsets[0] = 0
    for row in range(rows):
        begin = at
        while piece < count and owners[piece] == row:
            if at > begin:
                out[at] = 44
                out[at + 1] = 32
                at += 2
            for place in range(pieces[2 * piece], pieces[2 * piece + 1]):
                out[at] = text[place]
                at += 1
            piece += 1
        offsets[row + 1] = at
    return 0


@kernel
def _count_lines(text: BytesAt, places: IntsAt, count: int, at: int, line: int, out: Ints32At) -> int:
    """The line of each place; places ascend, and `at` is in line `line`."""
    for row in range(count):
        end = places[row]
        while at + 8 <= end:
            line += count_marks(marks(eight_bytes(text, at), NEWLINES))
            at += 8
        while at < end:
            line += text[at] == 10
            at += 1
        out[row] = line
    return 0


def gather(text: NDArray[np.uint8], spans: NDArray[np.int64], *, unquote: bool = False) -> pa.StringArray:
    """A string for each span [n, 2]; null where it begins below 0."""
    spans = np.ascontiguousarray(spans, np.int64)
    count = len(spans)
    present = spans[:, 0] >= 0
    offsets = np.empty(count + 1, np.int32)
    out = np.empty(int(np.where(present, spans[:, 1] - spans[:, 0], 0).sum()) + 1, np.uint8)
    odd = np.zeros(1, np.int64)
    _gather(text, spans.ravel(), count, unquote, offsets, out, odd)
    strings = _string_array(offsets, out, present)
    return _readable(strings) if odd[0] else strings


def join_pieces(
    text: NDArray[np.uint8], pieces: NDArray[np.int64], owners: NDArray[np.int64], rows: int
) -> pa.StringArray:
    """For each row its pieces [n, 2], in the order of `owners`, joined by `, `."""
    pieces = np.ascontiguousarray(pieces, np.int64)
    owners = np.ascontiguousarray(owners, np.int64)
    offsets = np.empty(rows + 1, np.int32)
    out = np.empty(int((pieces[:, 1] - pieces[:, 0]).sum()) + 2 * len(pieces) + 1, np.uint8)
    _join(
        *(text, pieces.ravel(), len(pieces), owners, rows),
        *(offsets, out),
    )
    return _string_array(offsets, out, None)


def lines(text: NDArray[np.uint8], places: NDArray[np.int64], at: int, line: int) -> NDArray[np.int32]:
    """The line of each of some ascending places, given the line of the place `at` before them."""
    places = np.ascontiguousarray(places, np.int64)
    out = np.empty(len(places), np.int32)
    _count_lines(text, places, len(places), at, line, out)
    return out


def _string_array(
    offsets: NDArray[np.int32], out: NDArray[np.uint8], present: NDArray[np.bool_] | None
) -> pa.StringArray:
    bitmap = None
    if present is not None and not present.all():
        bitmap = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(out), bitmap)


def _readable(strings: pa.StringArray) -> pa.StringArray:
    """Strings in which escapes gave bytes that may be no UTF-8: those bytes are written as escapes again."""
    values = strings.cast(pa.binary()).to_pylist()
    return pa.array(
        [None if value is None else value.decode("utf-8", "backslashreplace") for value in values], pa.string()
    )
