"""Protobuf's wire format, read without a protobuf runtime and without generated code.

A `Message` lists its fields once; what stands in a nested message is looked at when it is asked for, so the parts of a
file that nobody wants are stepped over. Every length is checked against the message that holds it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hlotrace.errors import ParseError

MAX_DEPTH = 100
"""How deep messages may nest, as in protobuf's own readers."""

_SIGN = 1 << 63
_WRAP = 1 << 64

Value = int | slice
"""A varint or fixed-width integer as unsigned bits, or where a field's bytes stand."""


class Message:
    """One message of a file.

    Singular fields give the default when they are absent; of a singular field that is repeated the last one counts.

    Args:
        data: the whole file.
        place: the file's name, for errors.
        start, end: the message's bytes; all of them when not given.
        depth: how many messages hold this one.
        skip: the number of a field that is only stepped over.

    Raises:
        ParseError: a field is cut, longer than the message, or of no known wire type; or messages nest too deep.
    """

    __slots__ = ("data", "depth", "end", "fields", "place", "start")

    def __init__(
        self, data: bytes, place: str, start: int = 0, end: int | None = None, depth: int = 0, skip: int = -1
    ) -> None:
        if depth > MAX_DEPTH:
            raise damage(place, start, f"messages within messages more than {MAX_DEPTH} deep")
        self.data = data
        self.place = place
        self.start = start
        self.end = len(data) if end is None else end
        self.depth = depth
        self.fields = _fields(data, start, self.end, place, skip)

    def __contains__(self, number: int) -> bool:
        return number in self.fields

    def integer(self, number: int, default: int = 0) -> int:
        """A signed 64-bit integer, bool or enum."""
        held = self.fields.get(number)
        if held is None:
            return default
        value = held[-1]
        if not isinstance(value, int):
            raise self._other(number, "an integer")
        return value - _WRAP if value >= _SIGN else value

    def integers(self, number: int) -> list[int]:
        """Repeated signed integers, packed or not."""
        out: list[int] = []
        for value in self.fields.get(number, ()):
            if isinstance(value, int):
                out.append(value)
            else:
                out.extend(_packed(self.data, value, self.place))
        return [value - _WRAP if value >= _SIGN else value for value in out]

    def double(self, number: int) -> float:
        """A 64-bit float."""
        value = self.fields.get(number, [0])[-1]
        return float(struct.unpack("<d", struct.pack("<Q", value))[0]) if isinstance(value, int) else 0.0

    def float(self, number: int) -> float:
        """A 32-bit float."""
        value = self.fields.get(number, [0])[-1]
        return float(struct.unpack("<f", struct.pack("<I", value))[0]) if isinstance(value, int) else 0.0

    def raw(self, number: int) -> bytes:
        """The bytes of a string, bytes or message field; empty when absent."""
        held = self.fields.get(number)
        if held is None:
            return b""
        value = held[-1]
        if isinstance(value, int):
            raise self._other(number, "bytes")
        return self.data[value]

    def text(self, number: int) -> str:
        """A string; bytes that are no UTF-8 are replaced, since XLA writes binary configurations there too."""
        return self.raw(number).decode("utf-8", "replace")

    def texts(self, number: int) -> list[str]:
        """Repeated strings."""
        return [self.data[span].decode("utf-8", "replace") for span in self.spans(number)]

    def message(self, number: int, skip: int = -1) -> Message:
        """A nested message, less its field `skip`; one without fields when absent."""
        spans = self.spans(number)
        if not spans:
            return Message(self.data, self.place, 0, 0)
        return Message(self.data, self.place, spans[-1].start, spans[-1].stop, self.depth + 1, skip)

    def messages(self, number: int) -> Iterator[Message]:
        """Repeated nested messages."""
        for span in self.spans(number):
            yield Message(self.data, self.place, span.start, span.stop, self.depth + 1)

    def string_map(self, number: int) -> dict[str, str]:
        """A map from string to string."""
        return {entry.text(1): entry.text(2) for entry in self.messages(number)}

    def spans(self, number: int) -> list[slice]:
        """Where the bytes of each field of that number stand in the file."""
        spans = self.fields.get(number, [])
        for span in spans:
            if type(span) is int:
                raise self._other(number, "bytes")
        return spans  # type: ignore[return-value]

    def _other(self, number: int, expected: str) -> ParseError:
        return damage(self.place, self.start, f"field {number} of another kind, where {expected} should stand")


def damage(place: str, at: int, found: str) -> ParseError:
    """The error for bytes that are no protobuf message."""
    return ParseError(
        f"expected a protobuf message, found {found}",
        place=f"{place} at byte {at}",
        remedy="The file is cut, damaged, or no protobuf: make the dump again.",
    )


def _varint(data: bytes, at: int, end: int, place: str) -> tuple[int, int]:
    value = shift = 0
    start = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (_WRAP - 1), at
        shift += 7
        if shift == 70:
            raise damage(place, start, "a varint longer than ten bytes")
    raise damage(place, start, "a varint that runs past its end")


def _packed(data: bytes, span: slice, place: str) -> list[int]:
    at, end = span.start, span.stop
    piece = data[at:end]
    if piece.isascii():
        return list(piece)
    out = []
    while at < end:
        value, at = _varint(data, at, end, place)
        out.append(value)
    return out


def _fields(data: bytes, at: int, end: int, place: str, skip: int) -> dict[int, list[Value]]:
    """Every field by its number; the one-byte cases stand inline since nearly all tags and lengths are such."""
    found: dict[int, list[Value]] = {}
    while at < end:
        start = at
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = _varint(data, start, end, place)
        wire = tag & 7
        value: Value
        if wire == 2:
            size = data[at] if at < end else 0x80
            at += 1
            if size > 0x7F:
                size, at = _varint(data, at - 1, end, place)
            value = slice(at, at + size)
            at += size
        elif wire == 0:
            value = data[at] if at < end else 0x80
            at += 1
            if value > 0x7F:
                value, at = _varint(data, at - 1, end, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value = int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise damage(place, start, f"wire type {wire}, which is a group or unknown")
        if at > end:
            raise damage(place, start, "a field longer than the message that holds it")
        if tag < 8:
            raise damage(place, start, "field number 0")
        number = tag >> 3
        if number in found:
            found[number].append(value)
        elif number != skip:
            found[number] = [value]
    return found
