"""Many protobuf messages of one type at once: their fields as columns.

One scan lists the fields of all of them; those that hold messages are scanned by the next one. So a file of a million
fields costs a handful of native loops, where `_wire.Message` would make an object a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hlotrace.native import inner, kernel
from hlotrace.parsers._wire import Message, damage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.native import Bytes, Ints

MOST_FIELDS, LEAST_FIELD_BYTES = 100_000, 16
"""How many fields a damaged file may have by its size: one costs 32 bytes of columns."""

_VARINT = -1
"""What `Fields.stop` holds for a varint, whose value stands in `Fields.value`."""

_FAULTS = (
    "",
    "a varint that runs past its end",
    "a varint longer than ten bytes",
    "a field longer than the message that holds it",
    "field number 0",
    "a wire type that is a group or unknown",
)
CUT_FAULTS = (_FAULTS[1], _FAULTS[3])
"""Those that the end of a file makes where it is cut."""


@inner
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """The varint at `at`: its value, the byte after it, and a number of _FAULTS."""
    value = 0
    shift = 0
    while at < end and shift < 70:
        byte = int(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at, 0
        shift += 7
    return value, at, 2 if shift == 70 else 1


@inner
def _field(data: Bytes, at: int, end: int) -> tuple[int, int, int, int, int]:
    """The field at `at`, as five numbers.

    Its number, its value or the first byte of its content, the byte after that or _VARINT, the byte after the field,
    and a number of _FAULTS.
    """
    tag, at, fault = _varint(data, at, end)
    number, wire = (tag >> 3) & ((1 << 60) - 1), tag & 7
    if fault == 0 and number == 0:
        fault = 4
    if fault != 0:
        return number, 0, _VARINT, at, fault
    if wire == 0:
        value, at, fault = _varint(data, at, end)
        return number, value, _VARINT, at, fault
    size = 8
    if wire == 5:
        size = 4
    elif wire == 2:
        size, at, fault = _varint(data, at, end)
    elif wire != 1:
        fault = 5
    if fault == 0 and (size < 0 or size > end - at):
        fault = 3
    return number, at, at + size, at + size, fault


@kernel
def _scan(
    data: Bytes, starts: Ints, ends: Ints, skip: int, owner: Ints, number: Ints, value: Ints, stop: Ints, fault: Ints
) -> int:
    """Fill the columns, as far as they have room, with the fields of the messages; gives how many there are.

    Args:
        skip: the number of a field that is only stepped over.
        fault: filled with a number of _FAULTS and the byte where it is, where there is one.
    """
    row = 0
    for message in range(len(starts)):
        at = starts[message]
        while at < ends[message]:
            found, held, after, following, wrong = _field(data, at, ends[message])
            if wrong != 0:
                fault[0], fault[1] = wrong, at
                return row
            at = following
            if found == skip:
                continue
            if row < len(owner):
                owner[row], number[row], value[row], stop[row] = message, found, held, after
            row += 1
    return row


@kernel
def _unpack(data: Bytes, value: Ints, stop: Ints, counts: Ints, out: Ints, fault: Ints) -> int:
    """Fill `out`, as far as it has room, with the integers of fields that may be packed.

    Gives how many there are; `counts` is filled with how many each field has.
    """
    total = 0
    for row in range(len(value)):
        if stop[row] < 0:
            if total < len(out):
                out[total] = value[row]
            total += 1
            counts[row] = 1
            continue
        at, before = value[row], total
        while at < stop[row]:
            item, following, wrong = _varint(data, at, stop[row])
            if wrong != 0:
                fault[0], fault[1] = wrong, at
                return total
            if total < len(out):
                out[total] = item
            total += 1
            at = following
        counts[row] = total - before
    return total


@dataclass(frozen=True)
class Fields:
    """The fields of `count` messages of one type, in the order of the file.

    Attributes:
        data, place: the whole file and its name.
        starts, ends: [count] where the messages stand.
        owner: for each field which message it belongs to, 0 to count - 1.
        number: its number.
        value: a varint's value, else the first byte of its content.
        stop: the byte after its content, -1 for a varint.
    """

    data: bytes
    place: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    owner: NDArray[np.int64]
    number: NDArray[np.int64]
    value: NDArray[np.int64]
    stop: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many messages these are."""
        return len(self.starts)

    @cached_property
    def _by_number(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self.number, kind="stable")
        return order, self.number[order]

    def rows(self, number: int) -> NDArray[np.int64]:
        """The rows of the fields of that number."""
        order, numbers = self._by_number
        low, high = np.searchsorted(numbers, [number, number + 1])
        return order[low:high]

    def last(self, number: int) -> NDArray[np.int64]:
        """[count] the row of each message's last field of that number, -1 where it has none."""
        found = np.full(self.count, -1, np.int64)
        rows = self.rows(number)
        found[self.owner[rows]] = rows
        return found

    def has(self, number: int) -> NDArray[np.bool_]:
        """[count] whether each message has the field."""
        return self.last(number) >= 0

    def integers(self, number: int, default: int = 0) -> NDArray[np.int64]:
        """[count] an integer, bool or enum of each message."""
        rows = self.last(number)
        out = np.full(self.count, default, np.int64)
        there = rows >= 0
        self._check(rows[there], number, is_varint=True)
        out[there] = self.value[rows[there]]
        return out

    def lists(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Repeated integers, packed or not: [count + 1] where each message's begin, and all of them."""
        rows = self.rows(number)
        value, stop = self.value[rows], self.stop[rows]
        counts, fault = np.zeros(len(rows), np.int64), np.zeros(2, np.int64)
        raw = np.frombuffer(self.data, np.uint8)
        total = _unpack(raw, value, stop, counts, np.zeros(0, np.int64), fault)
        out = np.zeros(total, np.int64)
        _unpack(raw, value, stop, counts, out, fault)
        if fault[0]:
            raise damage(self.place, int(fault[1]), _FAULTS[fault[0]])
        sizes = np.zeros(self.count, np.int64)
        np.add.at(sizes, self.owner[rows], counts)
        return np.concatenate([[0], np.cumsum(sizes)]), out

    def spans(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Owner, first byte and end of every field of that number."""
        rows = self.rows(number)
        self._check(rows, number, is_varint=False)
        return self.owner[rows], self.value[rows], self.stop[rows]

    def raw(self, number: int) -> list[bytes]:
        """[count] the bytes of a field of each message, empty where it is absent."""
        rows = self.last(number)
        there = np.flatnonzero(rows >= 0)
        self._check(rows[there], number, is_varint=False)
        out = [b""] * self.count
        data = self.data
        begins, stops = self.value[rows[there]].tolist(), self.stop[rows[there]].tolist()
        for message, begin, stop in zip(there.tolist(), begins, stops, strict=True):
            out[message] = data[begin:stop]
        return out

    def texts(self, number: int) -> list[str]:
        """[count] a string of each message, empty where it is absent; bytes that are no UTF-8 are replaced."""
        return [piece.decode("utf-8", "replace") for piece in self.raw(number)]

    def strings(self, number: int) -> pa.StringArray:
        """[count] a string of each message, null where it is absent or empty."""
        return pa.array([text or None for text in self.texts(number)], pa.string())

    def children(self, number: int) -> tuple[NDArray[np.int64], Fields]:
        """The messages in the fields of that number: whose each is, and their own fields."""
        owner, starts, ends = self.spans(number)
        return owner, scan(self.data, self.place, starts, ends)

    def child(self, number: int) -> Fields:
        """[count] a message in a field of each message; one without fields where it is absent."""
        rows = self.last(number)
        there = rows >= 0
        self._check(rows[there], number, is_varint=False)
        starts, ends = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        starts[there], ends[there] = self.value[rows[there]], self.stop[rows[there]]
        return scan(self.data, self.place, starts, ends)

    def message(self, at: int) -> Message:
        """One of the messages by itself."""
        return Message(self.data, self.place, int(self.starts[at]), int(self.ends[at]))

    def _check(self, rows: NDArray[np.int64], number: int, *, is_varint: bool) -> None:
        wrong = rows[(self.stop[rows] < 0) != is_varint]
        if len(wrong):
            expected = "an integer" if is_varint else "bytes"
            found = f"field {number} of another kind, where {expected} should stand"
            raise damage(self.place, int(self.starts[self.owner[wrong[0]]]), found)


def scan(
    data: bytes,
    place: str,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    *,
    skip: int = -1,
    faults: list[tuple[int, str]] | None = None,
) -> Fields:
    """The fields of the messages that stand at `starts` to `ends` of `data`.

    Args:
        skip: the number of a field that is only stepped over.
        faults: where it is given, a fault is added to it, as the byte and what is there, and ends the fields; else it
            is raised.

    Raises:
        ParseError: a field is cut, longer than its message, or of no known wire type; or there are so many fields in
            so few bytes that they are no messages of any use, and their columns would take many times the file.
    """
    raw = np.frombuffer(data, np.uint8)
    starts, ends = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
    fault, none = np.zeros(2, np.int64), np.zeros(0, np.int64)
    count = _scan(raw, starts, ends, skip, none, none, none, none, fault)
    if fault[0] and faults is None:
        raise damage(place, int(fault[1]), _FAULTS[fault[0]])
    if faults is not None and count > MOST_FIELDS + len(raw) // LEAST_FIELD_BYTES:
        raise damage(place, int(starts[0]), f"{count:,} fields in {len(raw):,} bytes")
    if fault[0] and faults is not None:
        faults.append((int(fault[1]), _FAULTS[fault[0]]))
    columns = [np.zeros(count, np.int64) for _ in range(4)]
    _scan(raw, starts, ends, skip, *columns, fault)
    return Fields(data, place, starts, ends, *columns)


def scan_message(message: Message) -> Fields:
    """The fields of one message, as a message among none other."""
    return scan(message.data, message.place, np.array([message.start]), np.array([message.end]))
