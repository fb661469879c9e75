"""XSpace (`.xplane.pb`), the profiler's trace, read into columns without a protobuf runtime.

    space = read_space(data, place="host.xplane.pb")
    for plane in space.planes:
        for line in plane.lines:
            events = plane.read(line, stats=("hlo_op", "run_id"))

Nothing but the list of planes is read before it is asked for, and events are read a line at a time, so `data` is best a
memory map. Field numbers are those of XLA's `xplane.proto`. A damaged message ends where its damage begins: what stands
before it is read, and `XSpace.problems` says where that was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.errors import ParseError
from hlotrace.parsers import _xplane_kernels as kernels
from hlotrace.parsers._wire_columns import Fields, scan
from hlotrace.parsers._wire_kernels import FAULTS
from hlotrace.parsers._xplane_damage import fields_up_to_damage, note
from hlotrace.parsers._xplane_stats import Events, Stats, Value, message_stats, wanted_slots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_PLANE_LINE, _EVENT_METADATA, _STAT_METADATA, _PLANE_STAT = 3, 4, 5, 6
_LINE_EVENTS = 4
_LEAST_EVENT_BYTES, _MOST_SMALL_EVENTS = 8, 100_000


@dataclass(frozen=True)
class Line:
    """One line of a plane: a stream, a thread, or a kind of device events.

    Attributes:
        timestamp_ns: what the offsets of its events are counted from.
        start, end: where its message stands in the file.
    """

    id: int
    name: str
    timestamp_ns: int
    duration_ps: int
    display_id: int
    display_name: str
    start: int
    end: int


@dataclass(frozen=True)
class EventMetadata:
    """What the events of a plane share, one row a metadata message.

    Attributes:
        ids: [n] as events name them.
        names, display_names: [n] text, empty where there is none.
        payloads: [n] bytes of the `metadata` field.
        stats: their stats; `Stats.owner` is a row of these.
    """

    ids: NDArray[np.int64]
    names: list[str]
    display_names: list[str]
    payloads: list[bytes]
    stats: Stats

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each id, -1 where there is no such metadata."""
        return _places(self.ids, ids)


@dataclass(frozen=True)
class XSpace:
    """A trace of one host.

    Attributes:
        problems: (place, what, consequence) of all damage met so far; it grows as planes and lines are read.
    """

    data: bytes
    place: str
    planes: list[Plane]
    hostnames: list[str]
    errors: list[str]
    warnings: list[str]
    problems: list[tuple[str, str, str]]


@dataclass(frozen=True)
class Plane:
    """One plane of a trace, such as a device; everything in it is read when it is asked for."""

    data: bytes
    place: str
    start: int
    end: int
    name: str
    id: int
    problems: list[tuple[str, str, str]] = field(repr=False)

    @cached_property
    def _fields(self) -> Fields:
        return fields_up_to_damage(self.data, self.place, self.start, self.end, self.problems, f"in plane {self.name} ")

    @cached_property
    def lines(self) -> list[Line]:
        """Its lines, in the order of the file."""
        _, starts, ends = self._fields.spans(_PLANE_LINE)
        return [self._line(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]

    def _line(self, start: int, end: int) -> Line:
        faults: list[tuple[int, str]] = []
        header = scan(self.data, self.place, np.array([start]), np.array([end]), skip=_LINE_EVENTS, faults=faults)
        integers = {number: int(header.integers(number)[0]) for number in (1, 3, 9, 10)}
        return Line(
            id=integers[1],
            name=header.texts(2)[0],
            timestamp_ns=integers[3],
            duration_ps=integers[9],
            display_id=integers[10],
            display_name=header.texts(11)[0],
            start=start,
            end=end,
        )

    @cached_property
    def _stat_metadata(self) -> tuple[NDArray[np.int64], list[str]]:
        entries = self._messages(_STAT_METADATA)
        metadata = entries.child(2)
        return _keys(entries, metadata), metadata.texts(2)

    @cached_property
    def stat_names(self) -> dict[int, str]:
        """Stat metadata by id: the names of stats, and the texts that `REF` values point at."""
        ids, names = self._stat_metadata
        return dict(zip(ids.tolist(), names, strict=True))

    @cached_property
    def event_metadata(self) -> EventMetadata:
        """What its events share."""
        entries = self._messages(_EVENT_METADATA)
        metadata = entries.child(2)
        owner, starts, ends = metadata.spans(5)
        stats = message_stats(self.data, self.place, owner, starts, ends, self.stat_names)
        return EventMetadata(_keys(entries, metadata), metadata.texts(2), metadata.texts(4), metadata.raw(3), stats)

    @cached_property
    def stats(self) -> dict[str, Value]:
        """Its own stats by name."""
        owner, starts, ends = self._fields.spans(_PLANE_STAT)
        stats = message_stats(self.data, self.place, owner, starts, ends, self.stat_names)
        return {name: value for _, name, value in stats}

    def _messages(self, number: int) -> Fields:
        _, starts, ends = self._fields.spans(number)
        faults: list[tuple[int, str]] = []
        found = scan(self.data, self.place, starts, ends, faults=faults)
        note(self.problems, faults, f"what follows in the metadata of plane {self.name} is not read")
        return found

    def count(self, line: Line) -> int:
        """How many events a line has."""
        counts = np.zeros(2, np.int64)
        raw = np.frombuffer(self.data, np.uint8)
        kernels.count_events(raw, line.start, line.end, 0, counts, np.zeros(3, np.int64))
        return int(counts[0])

    def read(self, line: Line, stats: Sequence[str] = (), *, all_stats: bool = False) -> Events:
        """The events of a line in the order of the file, up to the first damage.

        Args:
            stats: names of stats to hold in a column each.
            all_stats: read every stat of every event as well, into `Events.stats`.

        Raises:
            ParseError: its events are too many for their bytes to mean anything.
        """
        raw = np.frombuffer(self.data, np.uint8)
        counts, state = np.zeros(2, np.int64), np.zeros(3, np.int64)
        kernels.count_events(raw, line.start, line.end, int(all_stats), counts, state)
        room, stat_room = counts.tolist()
        if room > _MOST_SMALL_EVENTS and (line.end - line.start) < room * _LEAST_EVENT_BYTES:
            what = f"line {line.name!r} with {room:,} events in {line.end - line.start:,} bytes"
            raise ParseError(f"expected events, found {what}", place=f"{self.place} at byte {line.start}")
        slots = wanted_slots(self.stat_names, stats)
        made = Events.empty(self, line, room, tuple(stats), stat_room)
        state[:] = 0
        count = kernels.read_events(raw, line.start, line.end, *made.room_for(slots), state)
        if state[kernels.FAULT]:
            fault = (int(state[kernels.FAULT_AT]), FAULTS[state[kernels.FAULT]])
            note(self.problems, [fault], f"line {line.name!r} of plane {self.name} ends after {count:,} events")
        return made.cut(count, int(state[kernels.STATS]) if all_stats else 0)


def read_space(data: bytes, *, place: str) -> XSpace:
    """The planes of a trace.

    Args:
        data: the file: bytes, or a memory map of it.
        place: its name, for errors.

    Raises:
        ParseError: there is no plane in it; the message says at which byte it stops being a trace.
    """
    problems: list[tuple[str, str, str]] = []
    fields = fields_up_to_damage(data, place, 0, len(data), problems, "")
    _, starts, ends = fields.spans(1)
    planes = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        header = scan(data, place, np.array([start]), np.array([end]), skip=_PLANE_LINE, faults=[])
        planes.append(Plane(data, place, start, end, header.texts(2)[0], int(header.integers(1)[0]), problems))
    if not planes:
        where, what, _ = problems[0] if problems else ("byte 0", "no plane", "")
        raise ParseError(
            f"expected a profiler trace (XSpace), found {what}",
            place=f"{place} at {where}",
            remedy="The file is cut, damaged, or something else: copy it again, or trace again.",
        )
    texts = {
        number: [data[a:b].decode("utf-8", "replace") for _, a, b in _spans(fields, number)] for number in (2, 3, 4)
    }
    return XSpace(data, place, planes, texts[4], texts[2], texts[3], problems)


def _spans(fields: Fields, number: int) -> list[tuple[int, int, int]]:
    owner, starts, ends = fields.spans(number)
    return list(zip(owner.tolist(), starts.tolist(), ends.tolist(), strict=True))


def _keys(entries: Fields, metadata: Fields) -> NDArray[np.int64]:
    """The key of each entry of a map; the id in the message where the key is left out."""
    keys = entries.integers(1)
    return np.where(keys == 0, metadata.integers(1), keys)


def _places(ids: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each wanted id stands among `ids`, -1 where it does not."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    low, high = int(ids.min()), int(ids.max())
    if low >= 0 and high < 4 * len(ids) + 4096:
        table = np.full(high + 2, -1, np.int64)
        table[ids] = np.arange(len(ids))
        return table[np.where((wanted < 0) | (wanted > high), high + 1, wanted)]
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
    return np.where(ids[order][at] == wanted, order[at], -1)
