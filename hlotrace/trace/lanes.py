"""A trace as lanes: the events of one line of one plane in columns, whichever format they were read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE = -(1 << 63)
"""An integer that is not known."""

Role = Literal["ops", "async", "modules", "steps", "host", "other"]
"""What the events of a line are: ops as the device runs them one after another, spans of asynchronous ops, runs of
programs, steps, calls on a thread of the host, or something else."""

_ROLES: dict[str, Role] = {
    "XLA Ops": "ops",
    "Sparse Core Ops": "ops",
    "Async XLA Ops": "async",
    "XLA Modules": "modules",
    "Sparse Core Modules": "modules",
    "Steps": "steps",
    "Sparse Core Steps": "steps",
}
_DEVICE = re.compile(r"/device:((?:TPU|GPU):\d+(?: .*)?)$")
_INSTRUCTION = re.compile(r"%?([\w.\-]+) = ")
_RUN = re.compile(r"(.*)\((-?\d+)\)$", re.DOTALL)
_WRAP, _SIGN = 1 << 64, 1 << 63


@dataclass(frozen=True)
class Op:
    """What an event of a device ran, by what the trace itself says of it; None is not known.

    Attributes:
        device: such as `TPU:0`.
        module: the HLO module name; `program_id` the id behind it.
        instruction: the HLO instruction's name; None for what is no instruction, such as a copy between memories.
        name: the event's name; of a GPU the kernel's.
        hlo_category: the trace's own category.
        op_name: the framework's name.
        source: `file:line`.
        flops, hbm_bytes: of one execution.
    """

    device: str
    module: str | None
    program_id: int | None
    instruction: str | None
    name: str
    hlo_category: str | None = None
    op_name: str | None = None
    source: str | None = None
    flops: int | None = None
    hbm_bytes: int | None = None


@dataclass(frozen=True)
class Lane:
    """The events of a line.

    Attributes:
        device: the device of the plane; None for a host.
        names: the texts that `name` counts in.
        name: [n] the event's name.
        start_ps, duration_ps: [n].
        ops: what `op` counts in.
        op: [n] the op of each event, -1 where it is none.
        run_id, step_number: [n], NONE where the event has none.
        own_start_ps, own_duration_ps: [n] by the device's own clock, NONE where an event does not say; None for a line
            of which no event does.
    """

    host: str
    plane: str
    line: str
    role: Role
    device: str | None
    names: list[str]
    name: NDArray[np.int32]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    ops: list[Op]
    op: NDArray[np.int32]
    run_id: NDArray[np.int64]
    step_number: NDArray[np.int64]
    own_start_ps: NDArray[np.int64] | None = None
    own_duration_ps: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.name)

    def own_spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Begin and duration of each event by the device's own clock; by the trace's where not all have that."""
        start, duration = self.own_start_ps, self.own_duration_ps
        if start is None or duration is None or (start == NONE).any() or (duration == NONE).any():
            return self.start_ps, self.duration_ps
        return start, duration


@dataclass(frozen=True)
class Trace:
    """The trace of one host.

    Attributes:
        lanes: reads the lanes anew at each call, one at a time; with True only those that hold ops, programs' runs
            or steps.
        platform: `tpu`, `gpu`, `cpu`, or None where no device ran anything.
        problems: (place, what, consequence), added to as lanes are read.
        device_kind: the kind of its devices, where the trace names it.
    """

    host: str
    platform: str | None
    lanes: Callable[[bool], Iterator[Lane]]
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    device_kind: str | None = None


def device_of(plane: str) -> str | None:
    """The device that a plane's name names, such as `TPU:0`; None for hosts and for planes that are no device."""
    found = _DEVICE.match(plane)
    return found[1] if found else None


def role_of(device: str | None, line: str) -> Role:
    """What the events of a line of that name are."""
    if device is None:
        return "host"
    if line.startswith("Stream #"):
        return "ops"
    return _ROLES.get(line, "other")


def instruction_of(text: str) -> str | None:
    """The instruction's name of `%fusion.1 = f32[…] fusion(…)`; None where the text is no instruction."""
    found = _INSTRUCTION.match(text)
    return found[1] if found else None


def run_of(name: str) -> tuple[str, int | None]:
    """Module and program id of a run that is named `jit_f(12)`."""
    found = _RUN.match(name)
    return (found[1], signed(int(found[2]))) if found else (name, None)


def signed(value: int) -> int:
    """A 64-bit id as tables hold it: those from 2**63 on are negative."""
    value %= _WRAP
    return value - _WRAP if value >= _SIGN else value
