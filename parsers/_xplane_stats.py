"""Stats of a trace: what is attached to events, to what events share, and to planes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.parsers import _xplane_kernels as kernels
from hlotrace.parsers._wire_columns import scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.parsers.xplane import Line, Plane

Value = int | float | str | bytes

_Slots = tuple["NDArray[np.int32]", "NDArray[np.int64]", "NDArray[np.int32]", int]
_WRAP = 1 << 64


@dataclass(frozen=True)
class Stats:
    """Stats in columns.

    Attributes:
        owner: [n] the row of the event or metadata each belongs to.
        ids: [n] their stat metadata ids.
        kinds: [n] of which kind the value is, as `_xplane_kernels` numbers them; 0 for none.
        values: [n] the integer, a double's bits, or for text and bytes where the length before them stands.
    """

    data: bytes
    names: Mapping[int, str]
    owner: NDArray[np.int32]
    ids: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    values: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[int, str, Value]]:
        """Owner, name and value of each."""
        rows = zip(self.owner.tolist(), self.ids.tolist(), self.kinds.tolist(), self.values.tolist(), strict=True)
        for owner, name, kind, value in rows:
            if kind:
                yield owner, self.names.get(name, ""), stat_value(self.data, self.names, kind, value)

    def named(self, name: str) -> dict[int, Value]:
        """The value of the stat of that name by owner, for those that have it."""
        ids = [key for key, text in self.names.items() if text == name]
        rows = np.flatnonzero(np.isin(self.ids, ids) & (self.kinds > 0)).tolist()
        return {
            int(self.owner[row]): stat_value(self.data, self.names, int(self.kinds[row]), int(self.values[row]))
            for row in rows
        }


def stat_value(data: bytes, names: Mapping[int, str], kind: int, value: int) -> Value:
    """A stat's value as Python has it; a `ref` is the text it points at."""
    if kind == kernels.DOUBLE:
        return float(struct.unpack("<d", struct.pack("<q", value))[0])
    if kind == kernels.UINT64:
        return value % _WRAP
    if kind == kernels.REF:
        return names.get(value, "")
    if kind in (kernels.TEXT, kernels.BYTES):
        held = _prefixed(data, value)
        return held.decode("utf-8", "replace") if kind == kernels.TEXT else held
    return value


def _prefixed(data: bytes, at: int) -> bytes:
    """The bytes behind the length at `at`, which was checked when it was read."""
    size = shift = 0
    while data[at] > 127:
        size |= (data[at] & 127) << shift
        shift += 7
        at += 1
    size |= data[at] << shift
    return data[at + 1 : at + 1 + size]


def message_stats(
    data: bytes,
    place: str,
    owner: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    names: Mapping[int, str],
) -> Stats:
    """The stats whose messages stand at `starts` to `ends`."""
    faults: list[tuple[int, str]] = []
    found = scan(data, place, starts, ends, faults=faults)
    ids = found.integers(1)
    kinds, values = np.zeros(len(starts), np.uint8), np.zeros(len(starts), np.int64)
    raw = np.frombuffer(data, np.uint8)
    for kind in (kernels.DOUBLE, kernels.UINT64, kernels.INT64, kernels.TEXT, kernels.BYTES, kernels.REF):
        rows = found.last(kind)
        there = np.flatnonzero(rows >= 0)
        value = found.value[rows[there]]
        if kind == kernels.DOUBLE:
            value = np.array(
                [int.from_bytes(raw[at : at + 8].tobytes(), "little", signed=True) for at in value], np.int64
            )
        elif kind in (kernels.TEXT, kernels.BYTES):
            value = np.array(
                [at - _length_bytes(int(end - at)) for at, end in zip(value, found.stop[rows[there]], strict=True)],
                np.int64,
            )
        kinds[there], values[there] = kind, value
    return Stats(data, names, owner.astype(np.int32), ids, kinds, values)


def _length_bytes(size: int) -> int:
    """How many bytes the length before so many bytes takes."""
    return max(1, -(-size.bit_length() // 7))


def wanted_slots(names: Mapping[int, str], wanted: Sequence[str]) -> _Slots:
    """Which stat id goes into which slot, as `read_events` takes it; two ids of one name share a slot."""
    near = np.full(kernels.NEAR_IDS, -1, np.int32)
    places = {name: slot for slot, name in enumerate(wanted)}
    far = []
    for key, name in names.items():
        slot = places.get(name)
        if slot is None:
            continue
        if 0 <= key < kernels.NEAR_IDS:
            near[key] = slot
        else:
            far.append((key, slot))
    keys = np.array([key for key, _ in far], np.int64)
    return near, keys, np.array([slot for _, slot in far], np.int32), len(far)


@dataclass(frozen=True)
class Events:
    """The events of one line in columns, [n] each.

    Attributes:
        columns: [4, n] metadata id, offset in ps from the line's timestamp, duration in ps, number of occurrences.
        held_kinds, held_values: [stats asked for, n] the kind (0 for none) and value of each as `Stats` has them.
        stats: every stat, where all were asked for.
    """

    plane: Plane
    line: Line
    asked: tuple[str, ...]
    columns: NDArray[np.int64]
    held_kinds: NDArray[np.uint8]
    held_values: NDArray[np.int64]
    stats: Stats

    def __len__(self) -> int:
        return self.columns.shape[1]

    @property
    def metadata_ids(self) -> NDArray[np.int64]:
        """[n] the ids of their metadata."""
        return self.columns[0]

    @property
    def offset_ps(self) -> NDArray[np.int64]:
        """[n] where they begin, from the line's timestamp."""
        return self.columns[1]

    @property
    def duration_ps(self) -> NDArray[np.int64]:
        """[n] how long they last."""
        return self.columns[2]

    @property
    def occurrences(self) -> NDArray[np.int64]:
        """[n] how many events each stands for, where a line holds sums; 0 for a plain event."""
        return self.columns[3]

    def held(self, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """[n] kinds and values of a stat that was asked for."""
        slot = self.asked.index(name)
        return self.held_kinds[slot], self.held_values[slot]

    @classmethod
    def empty(cls, plane: Plane, line: Line, room: int, asked: tuple[str, ...], stat_room: int) -> Events:
        """Room for so many events and stats; what is not written is no memory yet."""
        stats = Stats(
            plane.data,
            plane.stat_names,
            np.zeros(stat_room, np.int32),
            np.zeros(2 * stat_room, np.int64),
            np.zeros(stat_room, np.uint8),
            np.zeros(0, np.int64),
        )
        kinds, values = np.zeros((len(asked), room), np.uint8), np.zeros((len(asked), room), np.int64)
        return cls(plane, line, asked, np.zeros((4, room), np.int64), kinds, values, stats)

    def room_for(self, slots: _Slots) -> tuple[object, ...]:
        """What `read_events` fills, in its order."""
        stats = self.stats
        held = (self.held_kinds.reshape(-1), self.held_values.reshape(-1))
        return (
            len(self),
            self.columns.reshape(-1),
            *slots,
            *held,
            len(stats.kinds),
            stats.owner,
            stats.kinds,
            stats.ids,
        )

    def cut(self, count: int, stat_count: int) -> Events:
        """The first events and stats, which are those that were read."""
        stats, room = self.stats, len(self.stats.kinds)
        kept = Stats(
            stats.data,
            stats.names,
            stats.owner[:stat_count],
            stats.ids[:stat_count],
            stats.kinds[:stat_count],
            stats.ids[room : room + stat_count],
        )
        columns, kinds, values = self.columns[:, :count], self.held_kinds[:, :count], self.held_values[:, :count]
        return Events(self.plane, self.line, self.asked, columns, kinds, values, kept)
