"""Writes XSpace messages by hand: a tiny protobuf writer, and planes from plain Python values."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    value &= MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def block(number: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


class Ref(str):
    """A text that is written as a reference to stat metadata."""


class Unsigned(int):
    """An integer that is written as uint64."""


Value = int | float | str | bytes


@dataclass
class Event:
    name: str
    offset_ps: int = 0
    duration_ps: int = 0
    stats: Mapping[str, Value] = field(default_factory=dict)
    occurrences: int | None = None


@dataclass
class Line:
    name: str
    events: Sequence[Event] = ()
    id: int = 0
    timestamp_ns: int = 0


@dataclass
class Metadata:
    """What is said of the events of one name."""

    display_name: str = ""
    stats: Mapping[str, Value] = field(default_factory=dict)
    payload: bytes = b""


class Plane:
    """A plane that numbers its names as it meets them, from `first_id` on."""

    def __init__(
        self,
        name: str,
        lines: Sequence[Line] = (),
        stats: Mapping[str, Value] | None = None,
        metadata: Mapping[str, Metadata] | None = None,
        first_id: int = 1,
    ) -> None:
        self.name, self.lines, self.stats, self.metadata = name, lines, stats or {}, metadata or {}
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._first = first_id

    def event_id(self, name: str) -> int:
        return self._events.setdefault(name, self._first + len(self._events))

    def stat_id(self, name: str) -> int:
        return self._stats.setdefault(name, self._first + len(self._stats))

    def stat(self, name: str, value: Value) -> bytes:
        head = integer(1, self.stat_id(name))
        if isinstance(value, Ref):
            return head + integer(7, self.stat_id(value))
        if isinstance(value, str | bytes):
            return head + block(5 if isinstance(value, str) else 6, value)
        if isinstance(value, float):
            return head + double(2, value)
        return head + integer(3 if isinstance(value, Unsigned) else 4, value)

    def stats_of(self, number: int, stats: Mapping[str, Value]) -> bytes:
        return b"".join(block(number, self.stat(name, value)) for name, value in stats.items())

    def event(self, event: Event) -> bytes:
        out = integer(1, self.event_id(event.name))
        out += integer(2, event.offset_ps) if event.occurrences is None else integer(5, event.occurrences)
        return out + integer(3, event.duration_ps) + self.stats_of(4, event.stats)

    def line(self, line: Line) -> bytes:
        out = integer(1, line.id) + block(2, line.name) + integer(3, line.timestamp_ns)
        return out + b"".join(block(4, self.event(event)) for event in line.events)

    def encode(self) -> bytes:
        body = b"".join(block(3, self.line(line)) for line in self.lines) + self.stats_of(6, self.stats)
        for name in self.metadata:
            self.event_id(name)
        entries = b""
        for name, key in self._events.items():
            held = self.metadata.get(name, Metadata())
            message = integer(1, key) + block(2, name) + block(3, held.payload) + block(4, held.display_name)
            entries += block(4, integer(1, key) + block(2, message + self.stats_of(5, held.stats)))
        for name, key in self._stats.items():
            entries += block(5, integer(1, key) + block(2, integer(1, key) + block(2, name)))
        return block(2, self.name) + body + entries


def space(planes: Iterable[Plane], hostname: str = "") -> bytes:
    out = b"".join(block(1, plane.encode()) for plane in planes)
    return out + (block(4, hostname) if hostname else b"")
