"""The lanes of an XSpace, and the HLO modules that it carries.

TPU ops say what they are in the metadata that events share; GPU kernels and the CPU's ops say it in stats of each
event. A GPU's host repeats those stats on the calls that launch kernels, so events of a host are ops only where no
device ran any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hlotrace.devices import chip_by_device_kind
from hlotrace.parsers import _xplane_kernels as kinds
from hlotrace.parsers._xplane_stats import Value, stat_value
from hlotrace.trace.lanes import NONE, Lane, Op, Role, Trace, device_of, instruction_of, role_of, run_of, signed
from hlotrace.trace.spans import groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlotrace.parsers._xplane_stats import Events
    from hlotrace.parsers.xplane import Line, Plane, XSpace

_METADATA = "/host:metadata"
_HLO_PROTO, _PROGRAM = "Hlo Proto", "program_id"
_KEYS = ("hlo_op", "hlo_module", "program_id", "device_ordinal")
_SAID = ("name", "tf_op", "source", "flops", "bytes_accessed", "hlo_category")
"""Stats that describe an op, wherever they stand."""
_OWN = ("device_offset_ps", "device_duration_ps")
_ASKED = (*_KEYS, "run_id", "step_num", *_OWN, *_SAID)
_MANY_NS = 10**15
"""A timestamp beyond this many nanoseconds (11 days) counts from 1970, not from the trace's start."""


def trace_of(space: XSpace, host: str) -> Trace:
    """The lanes of a trace; `host` where it does not name its host itself."""
    reader = _Reader(space, space.hostnames[0] if space.hostnames else host)
    return Trace(reader.host, reader.platform, reader.lanes, space.problems, reader.device_kind)


def modules_in(space: XSpace) -> list[tuple[int | None, str, bytes]]:
    """Program id, name and HloProto of each module that a trace carries."""
    found = []
    for plane in space.planes:
        if plane.name != _METADATA:
            continue
        metadata = plane.event_metadata
        protos, ids = metadata.stats.named(_HLO_PROTO), metadata.stats.named(_PROGRAM)
        for row, proto in protos.items():
            if isinstance(proto, bytes) and proto:
                name, number = run_of(metadata.names[row])
                known = ids.get(row, number)
                found.append((signed(known) if isinstance(known, int) else None, name, proto))
    return found


@dataclass(frozen=True)
class _Reader:
    space: XSpace
    host: str

    @cached_property
    def _devices(self) -> list[tuple[Plane, str]]:
        found = [(plane, device_of(plane.name)) for plane in self.space.planes]
        return [(plane, device) for plane, device in found if device is not None]

    @cached_property
    def platform(self) -> str | None:
        for plane, device in self._devices:
            if any(role_of(device, line.name) == "ops" and plane.count(line) for line in plane.lines):
                return device[:3].lower()
        hosts = [plane for plane in self.space.planes if plane.name.startswith("/host:")]
        return "cpu" if any("hlo_op" in plane.stat_names.values() for plane in hosts) else None

    @cached_property
    def program_names(self) -> dict[int, str]:
        """The module of each program id that a plane of modules or a device's runs name, as `jit_f(12)`."""
        named = [plane for plane in self.space.planes if plane.name == _METADATA or device_of(plane.name)]
        found = (run_of(name) for plane in named for name in plane.event_metadata.names if name.endswith(")"))
        return {program: module for module, program in found if program is not None and ":" not in module}

    @cached_property
    def _base_ns(self) -> int:
        stamps = [line.timestamp_ns for plane in self.space.planes for line in plane.lines]
        return min((stamp for stamp in stamps if stamp > _MANY_NS), default=0)

    @property
    def device_kind(self) -> str | None:
        """What the first device says it is, by the compiler's own spelling where it is a chip that is known here."""
        for plane, _ in self._devices:
            said = plane.stats.get("device_type_string") or plane.stats.get("gpu_device_name")
            if isinstance(said, str):
                chip = chip_by_device_kind(said)
                return chip.device_kinds[0] if chip else said
        return None

    def lanes(self, only_telling: bool) -> Iterator[Lane]:
        """The lanes of all planes, in the order of the file."""
        for plane in self.space.planes:
            device = device_of(plane.name)
            reader = _PlaneReader(self, plane, device, self._takes_ops(device))
            for line in plane.lines:
                role = role_of(device, line.name or line.display_name)
                if not only_telling or reader.is_telling(role):
                    lane = reader.lane(line, role)
                    if len(lane):
                        yield lane

    def _takes_ops(self, device: str | None) -> bool:
        return device is not None or self.platform == "cpu"

    def start_of(self, line: Line) -> int:
        """Where a line begins, in ps."""
        stamp = line.timestamp_ns - (self._base_ns if line.timestamp_ns > _MANY_NS else 0)
        return stamp * 1000


@dataclass(frozen=True)
class _PlaneReader:
    reader: _Reader
    plane: Plane
    device: str | None
    takes_ops: bool

    def is_telling(self, role: Role) -> bool:
        """Whether lines of that role may hold ops, runs or steps."""
        if role == "host":
            wanted = ("hlo_op", "step_num") if self.takes_ops else ("step_num",)
            return not set(wanted).isdisjoint(self._stat_names)
        return role != "other"

    @cached_property
    def _stat_names(self) -> frozenset[str]:
        return frozenset(self.plane.stat_names.values())

    @cached_property
    def _names(self) -> list[str]:
        metadata = self.plane.event_metadata
        return [*map(_shown, metadata.names, metadata.display_names), ""]

    @cached_property
    def _said(self) -> dict[str, dict[int, Value]]:
        stats = self.plane.event_metadata.stats
        return {name: stats.named(name) for name in ("program_id", *_SAID)}

    def lane(self, line: Line, role: Role) -> Lane:
        """One line, read."""
        asked = tuple(name for name in _ASKED if name in self._stat_names) if role != "other" else ()
        events = self.plane.read(line, asked)
        rows = self.plane.event_metadata.rows(events.metadata_ids)
        name = np.where(rows < 0, len(self._names) - 1, rows).astype(np.int32)
        ops, op = self._ops(events, name) if self.takes_ops and role in ("ops", "async", "host") else ([], None)
        return Lane(
            host=self.reader.host,
            plane=self.plane.name,
            line=line.name or line.display_name,
            role=role,
            device=self.device,
            names=self._names,
            name=name,
            start_ps=events.offset_ps + self.reader.start_of(line),
            duration_ps=events.duration_ps,
            ops=ops,
            op=np.full(len(name), -1, np.int32) if op is None else op,
            run_id=_column(events, "run_id"),
            step_number=_column(events, "step_num"),
            own_start_ps=_column(events, _OWN[0]) if _OWN[0] in asked else None,
            own_duration_ps=_column(events, _OWN[1]) if _OWN[1] in asked else None,
        )

    def _ops(self, events: Events, rows: NDArray[np.int32]) -> tuple[list[Op], NDArray[np.int32]]:
        """What the events ran: one op for each different combination of metadata and identifying stats."""
        keys = sum(name in events.asked for name in _KEYS)
        first, group = groups(rows, events.held_kinds[:keys], _interned(events, keys))
        found = [self._op(events, int(rows[at]), int(at)) for at in first]
        kept = [op for op in found if op is not None]
        places = np.cumsum([op is not None for op in found], dtype=np.int32) - 1
        places[[op is None for op in found]] = -1
        return kept, places[group]

    def _op(self, events: Events, row: int, at: int) -> Op | None:
        """What one event ran; None for an event of the host that ran nothing."""
        instruction = _text(_stat(events, "hlo_op", at))
        if self.device is None and instruction is None:
            return None
        metadata = self.plane.event_metadata
        text = metadata.names[row] if row < len(metadata.names) else ""
        display = metadata.display_names[row] if row < len(metadata.names) else ""
        if (written := instruction_of(text)) is not None:
            instruction = written
        elif instruction is None and "hlo_category" in self._said and row in self._said["hlo_category"]:
            instruction = display or text
        said = {name: _stat(events, name, at) for name in _SAID}
        said = {name: self._said[name].get(row) if value is None else value for name, value in said.items()}
        program = _stat(events, "program_id", at)
        program = self._said["program_id"].get(row) if program is None else program
        program = signed(program) if isinstance(program, int) else None
        ordinal = _stat(events, "device_ordinal", at)
        return Op(
            device=self.device or f"CPU:{ordinal if isinstance(ordinal, int) else 0}",
            module=_text(_stat(events, "hlo_module", at)) or self.reader.program_names.get(program or 0),
            program_id=program,
            instruction=instruction,
            name=_shown(text, display),
            hlo_category=_text(said["hlo_category"]),
            op_name=_op_name(said["name"], said["tf_op"]),
            source=_text(said["source"]),
            flops=_integer(said["flops"]),
            hbm_bytes=_integer(said["bytes_accessed"]),
        )


def _shown(name: str, display: str) -> str:
    """An event's name: the instruction's where the name is its whole text."""
    return instruction_of(name) or name or display


def _op_name(name: Value | None, tf_op: Value | None) -> str | None:
    """The framework's name of an op; `XlaModule:` says nothing."""
    for value in (name, tf_op):
        text = _text(value)
        if text is not None and not text.startswith("XlaModule") and text.rstrip(":"):
            return text.rstrip(":")
    return None


def _text(value: Value | None) -> str | None:
    return value if isinstance(value, str) and value else None


def _integer(value: Value | None) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _stat(events: Events, name: str, at: int) -> Value | None:
    """A stat of one event; None where it has none."""
    if name not in events.asked:
        return None
    kind, value = events.held(name)
    return stat_value(events.plane.data, events.plane.stat_names, int(kind[at]), int(value[at])) if kind[at] else None


def _column(events: Events, name: str) -> NDArray[np.int64]:
    """[n] an integer stat, NONE where an event has none."""
    if name not in events.asked:
        return np.full(len(events), NONE, np.int64)
    kind, value = events.held(name)
    return np.where((kind == kinds.INT64) | (kind == kinds.UINT64), value, NONE)


def _interned(events: Events, keys: int) -> NDArray[np.int64]:
    """[keys, n] the first stats in integers that are equal where their values are: texts are numbered."""
    kinds_of, values = events.held_kinds[:keys], events.held_values[:keys]
    is_text = (kinds_of == kinds.TEXT) | (kinds_of == kinds.BYTES)
    if not is_text.any():
        return values
    values = values.copy()
    numbers: dict[Value, int] = {}
    for key, at in zip(*np.nonzero(is_text), strict=True):
        text = stat_value(events.plane.data, {}, int(kinds_of[key, at]), int(values[key, at]))
        values[key, at] = numbers.setdefault(text, len(numbers))
    return values
