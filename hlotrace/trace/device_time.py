"""What each device of a trace ran and when: its ops with their self times, runs of programs, and step marks."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotrace.trace.lanes import NONE, Lane, Op, Trace, run_of
from hlotrace.trace.spans import Cover, in_order, nested

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class OpEvents:
    """Events of ops in columns, [n] each: which op, when, and the time in no other op inside it.

    Attributes:
        start_ps, duration_ps: on the trace's clock, which all devices and the host share.
        own_start_ps, own_duration_ps: by the device's own clock where the trace has that too; they are what the device
            measured, and the same as the others elsewhere.
        self_ps: by the device's own clock.
        is_leaf: whether no other op is inside it, as there is in a loop's.
    """

    op: NDArray[np.int32]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    own_start_ps: NDArray[np.int64]
    own_duration_ps: NDArray[np.int64]
    self_ps: NDArray[np.int64]
    is_leaf: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.op)

    @classmethod
    def joined(cls, pieces: list[OpEvents]) -> OpEvents:
        """All events of the pieces."""
        kinds: dict[str, type] = {"op": np.int32, "is_leaf": np.bool_}
        names = [item.name for item in fields(cls)]
        none: dict[str, Any] = {name: np.zeros(0, kinds.get(name, np.int64)) for name in names}
        return cls(**{name: np.concatenate([none[name], *(getattr(one, name) for one in pieces)]) for name in names})


@dataclass(frozen=True)
class Run:
    """One run of a program, or one step where a line marks steps."""

    name: str
    program_id: int | None
    run_id: int | None
    start_ps: int
    duration_ps: int


@dataclass
class DeviceTime:
    """Everything that a device did.

    Attributes:
        ops: what `OpEvents.op` counts in.
        runs: of programs, from the device's own line; empty where it has none.
        steps: from the device's own line.
        spans: of asynchronous ops, as a line of their own gives them.
    """

    host: str
    device: str
    ops: list[Op] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    steps: list[Run] = field(default_factory=list)
    _numbers: dict[Op, int] = field(default_factory=dict, repr=False)
    _pieces: list[OpEvents] = field(default_factory=list, repr=False)
    _spans: list[OpEvents] = field(default_factory=list, repr=False)

    def number(self, ops: list[Op]) -> NDArray[np.int32]:
        """The places of ops among this device's, those not met before added."""
        for op in ops:
            if op not in self._numbers:
                self._numbers[op] = len(self.ops)
                self.ops.append(op)
        return np.array([self._numbers[op] for op in ops], np.int32)

    @cached_property
    def events(self) -> OpEvents:
        """Its op events; ops that name no program are placed in the program that ran meanwhile."""
        return self._placed(OpEvents.joined(self._pieces))

    @cached_property
    def spans(self) -> OpEvents:
        """Spans of asynchronous ops."""
        return self._placed(OpEvents.joined(self._spans))

    @cached_property
    def busy(self) -> Cover:
        """When it ran any op."""
        return Cover.of(self.events.start_ps, self.events.duration_ps)

    def _placed(self, events: OpEvents) -> OpEvents:
        homeless = np.array([op.program_id is None and op.module is None for op in self.ops], bool)
        if not self.runs or not homeless.any() or not len(events):
            return events
        run = np.where(homeless[events.op], enclosing(self.runs, events.start_ps), -1)
        pairs, back = np.unique(np.stack([events.op, run]), axis=1, return_inverse=True)
        ops = [self._in_run(int(op), int(run)) for op, run in pairs.T]
        return replace(events, op=self.number(ops)[back.reshape(-1)])

    def _in_run(self, op: int, run: int) -> Op:
        if run < 0:
            return self.ops[op]
        return replace(self.ops[op], module=self.runs[run].name, program_id=self.runs[run].program_id)

    def add_ops(self, lane: Lane, chosen: NDArray[np.bool_] | None = None) -> None:
        """Take in the op events of a lane, or the chosen ones."""
        events = _op_events(self.number(lane.ops), lane, chosen)
        (self._spans if lane.role == "async" else self._pieces).append(events)

    def add_runs(self, lane: Lane) -> None:
        """Take in a line of programs' runs, or of steps."""
        rows = zip(
            lane.name.tolist(), lane.run_id.tolist(), lane.start_ps.tolist(), lane.duration_ps.tolist(), strict=True
        )
        for name, run_id, start, duration in rows:
            module, program = run_of(lane.names[name])
            run = Run(module, program, None if run_id == NONE else run_id, start, duration)
            (self.steps if lane.role == "steps" else self.runs).append(run)


def enclosing(runs: list[Run], at_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which run, of those that do not overlap, each time is in; -1 for none."""
    if not runs:
        return np.full(len(at_ps), -1, np.int64)
    starts = np.array([run.start_ps for run in runs])
    ends = np.array([run.start_ps + run.duration_ps for run in runs])
    order = np.argsort(starts, kind="stable")
    before = np.searchsorted(starts[order], at_ps, "right") - 1
    run = order[before]
    return np.where((before >= 0) & (at_ps < ends[run]), run, -1)


def _op_events(places: NDArray[np.int32], lane: Lane, chosen: NDArray[np.bool_] | None) -> OpEvents:
    """The op events of a lane in the order of time, nested among themselves only."""
    keep = lane.op >= 0 if chosen is None else chosen
    op, start, duration = lane.op[keep], lane.start_ps[keep], lane.duration_ps[keep]
    own_start, own_duration = (column[keep] for column in lane.own_spans())
    order = in_order(own_start, own_duration)
    if order is not None:
        op, start, duration = op[order], start[order], duration[order]
        own_start, own_duration = own_start[order], own_duration[order]
    self_ps, is_leaf = own_duration, np.ones(len(op), bool)
    if lane.role != "async":
        self_ps, is_leaf = nested(own_start, own_duration)
    return OpEvents(places[op], start, duration, own_start, own_duration, self_ps, is_leaf)


@dataclass(frozen=True)
class Annotation:
    """A step that the program marked on a thread of the host."""

    name: str
    number: int
    start_ps: int
    duration_ps: int


@dataclass(frozen=True)
class HostTime:
    """What the devices of one host did, and the steps that its program marked, in the order of time."""

    host: str
    platform: str | None
    devices: list[DeviceTime]
    annotations: list[Annotation]


def read_host(trace: Trace) -> HostTime:
    """One pass over the lanes of a trace that say something of devices or steps."""
    devices: dict[str, DeviceTime] = {}
    annotations: list[Annotation] = []
    for lane in trace.lanes(True):
        if lane.role == "host":
            annotations += _annotations(lane)
        if lane.role in ("modules", "steps") and lane.device is not None:
            devices.setdefault(lane.device, DeviceTime(trace.host, lane.device)).add_runs(lane)
        _add_ops(devices, trace.host, lane)
    found = [device for device in devices.values() if device.runs or len(device.events)]
    return HostTime(trace.host, trace.platform, found, sorted(annotations, key=lambda step: step.start_ps))


def _add_ops(devices: dict[str, DeviceTime], host: str, lane: Lane) -> None:
    names = dict.fromkeys(op.device for op in lane.ops)
    for name in names:
        device = devices.setdefault(name, DeviceTime(host, name))
        if len(names) == 1:
            device.add_ops(lane)
        else:
            of_device = np.array([op.device == name for op in lane.ops] + [False])
            device.add_ops(lane, of_device[lane.op])


def _annotations(lane: Lane) -> list[Annotation]:
    rows = np.flatnonzero(lane.step_number != NONE).tolist()
    return [
        Annotation(
            lane.names[lane.name[row]],
            int(lane.step_number[row]),
            int(lane.start_ps[row]),
            int(lane.duration_ps[row]),
        )
        for row in rows
    ]
